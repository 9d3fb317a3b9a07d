#!/bin/sh
# figures.sh DIR   makes the figures of docs/reproduction.md anew in DIR: tables (CSV, JSON) and charts (SVG).
set -eu
dir=$1
mkdir -p bin "$dir"
go build -o bin/ ./cmd/pgasbench ./cmd/pgasrun
reg() { bin/pgasbench reg --out "$dir" "$@"; }

# In real time, some four minutes; on a quiet machine with two cores or more.
reg --reps 3 reuse noreuse overhead costs impossible
reg latency
reg --spikes 0.06 recorded

for pinned in 24M 512M; do
	PGAS_TRANSPORT=soft PGAS_LOCAL=off PGAS_MAX_PINNED=$pinned bin/pgasrun -n 2 bin/pgasbench sets --span 134217728 --csv \
		--plot "$dir/sets-$pinned.svg" >"$dir/sets-$pinned.csv"
done
PGAS_TRANSPORT=soft PGAS_LOCAL=off PGAS_MAX_PINNED=128M bin/pgasrun -n 2 bin/pgasbench sets --buckets --span 1073741824 --target-time 1ms \
	--csv --plot "$dir/buckets.svg" >"$dir/buckets.csv"

# In virtual time: the same on every machine.
reg --spikes 0.04 accuracy
reg windows jitter toolarge nas grouping scaling cores
