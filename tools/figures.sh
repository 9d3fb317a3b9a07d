#!/bin/sh
# figures.sh DIR   makes the figures of docs/reproduction.md anew in DIR: tables (CSV, JSON) and charts (SVG).
set -eu
dir=$1
mkdir -p bin "$dir"
go build -o bin/ ./cmd/pgasbench ./cmd/pgasrun
reg() { bin/pgasbench reg --out "$dir" "$@"; }

# In real time, some six minutes; on a quiet machine with two cores or more.
reg --reps 3 reuse noreuse overhead costs impossible
reg --reps 2 seats
reg latency
reg --spikes 0.04 recorded

for pinned in 24M 512M; do
	PGAS_TRANSPORT=soft PGAS_LOCAL=off PGAS_MAX_PINNED=$pinned bin/pgasrun -n 2 bin/pgasbench sets --span 134217728 --csv \
		--plot "$dir/sets-$pinned.svg" >"$dir/sets-$pinned.csv"
done
edges() { PGAS_TRANSPORT=soft PGAS_LOCAL=off PGAS_MAX_PINNED=24M bin/pgasrun -n 2 bin/pgasbench sets --edges --span 134217728 --csv "$@"; }
edges --plot "$dir/edges.svg" >"$dir/edges.csv"
for policy in leavepinned predictive; do
	PGAS_REG=$policy PGAS_IDLE_CORES=always edges --compute 500us --only F+V/2 >"$dir/edges-$policy.csv"
done
PGAS_TRANSPORT=soft PGAS_LOCAL=off PGAS_MAX_PINNED=256M bin/pgasrun -n 2 bin/pgasbench sets --buckets --span 1073741824 --target-time 1ms \
	--csv --plot "$dir/buckets.svg" >"$dir/buckets.csv"

# Small and large transfers, some two minutes. Two threads are busy at most: where other programs run,
# "BUSY='chrt -f 10' tools/figures.sh DIR" keeps them out of it (root).
figure() { ${BUSY:-} bin/pgasbench "$1" --out "$dir" --reps "$2" "$3"; }
figure bulk 3 soft
figure bulk 3 native
figure bulk 3 isx
figure eager 1 ping
figure eager 3 spectrum
figure eager 3 search
figure eager 1 adapt
BUSY= figure select 2 matrix # tcp has more busy threads than two

# The choice where the target's memory is in buckets, and what each protocol is estimated to cost: tables only, some three minutes.
for nic in soft tcp; do
	PGAS_TRANSPORT=$nic PGAS_LOCAL=off PGAS_MAX_PINNED=64M bin/pgasrun -n 2 bin/pgasbench targets --span 134217728 >"$dir/targets-$nic.txt"
	PGAS_TRANSPORT=$nic PGAS_LOCAL=off PGAS_MAX_PINNED=1G bin/pgasbench --explain >"$dir/explain-$nic.txt"
done

# Programs are recorded, and how they use their small buffers is counted.
traces=$(mktemp -d)
trap 'rm -rf "$traces"' EXIT
set --
for program in cg heat isx transpose histogram indexgather matmul; do
	mkdir "$traces/$program"
	PGAS_TRANSPORT=soft PGAS_LOCAL=off PGAS_TRACE=$traces/$program bin/pgasrun -n 4 "./examples/$program" >&2
	set -- "$@" --trace "$program=$traces/$program"
done
bin/pgasbench eager --out "$dir" "$@" tables

# In virtual time: the same on every machine.
reg --spikes 0.04 accuracy
reg windows jitter toolarge nas grouping scaling cores hoses
bin/pgasbench bulk --out "$dir" --fine sim
