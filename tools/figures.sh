#!/bin/sh
# figures.sh DIR   makes the figures of docs/reproduction.md anew in DIR: tables (CSV, JSON) and charts (SVG).
set -eu
dir=$1
mkdir -p bin "$dir"
go build -o bin/pgasbench ./cmd/pgasbench
reg() { bin/pgasbench reg --out "$dir" "$@"; }

# In real time, some four minutes; on a quiet machine with two cores or more.
reg --reps 3 reuse noreuse overhead costs impossible
reg latency
reg --reps 3 firehose
reg --spikes 0.06 recorded

# In virtual time: the same on every machine.
reg --spikes 0.04 accuracy
reg windows jitter toolarge nas grouping scaling cores
