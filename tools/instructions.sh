#!/bin/bash
# instructions.sh PACKAGE BENCHMARK [functions]   prints how many instructions the code of each package spends on one operation of a Go
# benchmark (a pattern as for -bench), or each function does. For instance, the library's own part of short operations:
#
#	for op in put8 get8 fetchadd put8x64; do tools/instructions.sh ./internal/proto "Brief/$op\$"; done
#
# It is what two runs of different length under valgrind's callgrind (Debian: valgrind) differ by, so what comes before the loop does not count,
# and the load of the machine changes nothing but how often a wait looks. What is inlined counts for whom it is inlined into; one of the runtime's
# instructions more or less means nothing. NICs that run beside the caller, as the loop-back's agents, are counted too.
set -euo pipefail
package=$1 benchmark=$2 by=${3:-packages}
command -v valgrind >/dev/null || { echo "instructions.sh: no valgrind here: apt-get install valgrind" >&2; exit 1; }
short=2000 long=12000 # operations in the two runs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go test -c -vet=off -o "$work/test" "$package"
cd "$package"
for n in $short $long; do # no signals, which callgrind cannot follow on a goroutine's stack, and no collections
	GODEBUG=asyncpreemptoff=1 GOGC=off valgrind -q --tool=callgrind --callgrind-out-file="$work/$n" \
		"$work/test" -test.run '^$' -test.bench "$benchmark" -test.benchtime "${n}x" >"$work/log" 2>&1 ||
		{ cat "$work/log" >&2; exit 1; }
	grep -q '^Benchmark' "$work/log" || { echo "instructions.sh: no benchmark $benchmark in $package" >&2; exit 1; }
done
# The format is described in valgrind's manual: fn= begins a function's lines, whose second number is its own cost; the line behind calls= is
# what a call costs. A name stands beside its number the first time only.
awk -v short=$short -v long=$long -v by="$by" '
function named(text,   id) {
	id = text; sub(/ .*/, "", id)
	if (text ~ / /) { name[id] = text; sub(/^[^ ]* /, "", name[id]) }
	return name[id]
}
function package(f) { # up to the first dot behind the last slash
	if (!match(f, /^.*\//)) return f ~ /^[a-z]+\./ ? substr(f, 1, index(f, ".") - 1) : "runtime"
	rest = substr(f, RLENGTH + 1); sub(/\..*/, "", rest)
	return substr(f, 1, RLENGTH) rest
}
FNR == 1 { sign = NR == 1 ? -1 : 1; split("", name) }
/^fn=/ { f = named(substr($0, 4)); sub(/\x27[0-9]+$/, "", f); k = by == "functions" ? f : package(f); next }
/^cfn=/ { named(substr($0, 5)); next }
/^calls=/ { getline; next }
/^[0-9+*-]/ { cost[k] += sign * $2 }
END {
	for (k in cost) {
		each = cost[k] / (long - short)
		if (each >= 0.5) printf "%10.1f  %s\n", each, k
	}
}' "$work/$short" "$work/$long" | sort -rn
