#!/bin/sh
# step.sh NAME COMMAND...   runs the command without its output, which is shown only if it fails, and prints
# the step's name and seconds.
name=$1
shift
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
trap 'exit 130' INT TERM
printf '%-28s' "$name"
start=$(date +%s)
"$@" >"$out" 2>&1 </dev/null
code=$?
seconds=$(($(date +%s) - start))
if [ "$code" -eq 0 ]; then
	printf '%4ds\n' "$seconds"
else
	printf '%4ds  FAILED: %s\n' "$seconds" "$*"
	cat "$out"
fi
exit "$code"
