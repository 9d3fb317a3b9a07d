#!/bin/sh
# empty.sh COMMAND...   fails if the command fails or prints anything on its standard output.
out=$("$@") || exit 1
[ -z "$out" ] && exit 0
echo "expected no output from: $*"
echo "$out"
exit 1
