#!/bin/bash
# fuzz.sh SECONDS   runs every fuzz target of the module, each for an equal share of the time, at least 1 s.
#
# Before go 1.27 the end of -fuzztime is at times reported as a failure, "context deadline exceeded" with no
# failing input (https://go.dev/issue/75804). Such a run shows nothing either way and is repeated.
set -euo pipefail
total=$1
log=$(mktemp)
trap 'rm -f "$log"' EXIT

attempt() { # attempt PACKAGE TARGET SECONDS
	go test -run '^$' -fuzz "^$2\$" -fuzztime "$3s" -fuzzminimizetime 5s "$1" </dev/null 2>&1 | tee "$log"
}
raced() {
	grep -q 'context deadline exceeded' "$log" && ! grep -q -e 'Failing input' -e '^panic:' "$log"
}

list=$(go test -list '^Fuzz' ./...) # the names of a package, then its line "ok package time"
targets=$(awk '/^Fuzz/ { names[n++] = $1 } /^ok/ { for (i = 0; i < n; i++) print $2, names[i]; n = 0 }' <<<"$list")
[ -n "$targets" ] || { echo "no fuzz targets"; exit 0; }
count=$(wc -l <<<"$targets")
share=$((total / count))
[ "$share" -ge 1 ] || share=1
while read -r pkg name; do
	echo "-- $name in $pkg, $share s of $total"
	for try in 1 2 3; do
		if attempt "$pkg" "$name" "$share"; then
			break
		elif [ "$try" -eq 3 ] || ! raced; then
			exit 1
		fi
		echo "-- the clock ran out within an execution: again"
	done
done <<<"$targets"
