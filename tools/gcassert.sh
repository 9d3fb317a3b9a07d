#!/bin/sh
# gcassert.sh   checks the //gcassert: directives (inline, bce, noescape) against what the compiler did. The
# tool leaves a log in the temporary folder on every run, so it gets one of its own.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
TMPDIR=$dir go tool -modfile=tools/go.mod gcassert ./...
