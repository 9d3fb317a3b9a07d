#!/bin/bash
# fuzz.sh SECONDS   runs every fuzz target of the module, each for an equal share of the time, at least 1 s. The tests of a package are
# built once for all its targets.
#
# Before go 1.27 the end of -fuzztime is at times reported as a failure, "context deadline exceeded" with no
# failing input (https://go.dev/issue/75804). Such a run shows nothing either way and is repeated.
set -euo pipefail
total=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
log=$work/log
corpus=$(go env GOCACHE)/fuzz # where go test keeps inputs that reached something new

attempt() { # attempt PROGRAM PACKAGE FOLDER TARGET SECONDS
	(cd "$3" && "$1" -test.run '^$' -test.fuzz "^$4\$" -test.fuzztime "$5s" -test.fuzzminimizetime 5s -test.fuzzcachedir "$corpus/$2") \
		</dev/null 2>&1 | tee "$log"
}
raced() {
	grep -q 'context deadline exceeded' "$log" && ! grep -q -e 'Failing input' -e '^panic:' "$log"
}

targets= built=0
while read -r folder pkg; do
	program=$work/$((++built)).test # tests of what is left behind look for our name
	go test -c -vet=off -fuzz . -ldflags '-s -w' -o "$program" "$pkg"
	names=$(cd "$folder" && "$program" -test.list '^Fuzz')
	for name in $names; do targets+="$program $pkg $folder $name"$'\n'; done
done < <(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -r -n 1 dirname | sort -u | xargs -r go list -f '{{.Dir}} {{.ImportPath}}')
[ -n "$targets" ] || { echo "no fuzz targets" >&2; exit 1; }
count=$(grep -c . <<<"$targets")
share=$((total / count))
[ "$share" -ge 1 ] || share=1
while read -r program pkg folder name; do
	echo "-- $name in $pkg, $share s of $total"
	for try in 1 2 3; do
		if attempt "$program" "$pkg" "$folder" "$name" "$share"; then
			break
		elif [ "$try" -eq 3 ] || ! raced; then
			exit 1
		fi
		echo "-- the clock ran out within an execution: again"
	done
done <<<"${targets%$'\n'}"
