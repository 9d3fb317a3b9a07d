#!/bin/sh
# gcassert.sh   checks the //gcassert: directives (inline, bce, noescape) against what the compiler did: of the packages that have some,
# and of those that import one of them, where calls must be inlined. The tool leaves a log in the temporary folder on every run, so it gets
# one of its own.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# shellcheck disable=SC2046 # a list of words
marked=$(go list -f '{{.ImportPath}}' $(grep -rl --include='*.go' '^[[:space:]]*// *gcassert:' . | xargs -n 1 dirname | sort -u))
# shellcheck disable=SC2016 # a template's variables
folders=$(go list -f '{{.Dir}} {{.ImportPath}} {{join .Imports " "}}' ./... | grep -F -w -e "$marked" | sed "s|^$PWD|.|; s| .*||")
[ -n "$folders" ]
# shellcheck disable=SC2086 # a list of words
TMPDIR=$dir go tool -modfile=tools/go.mod gcassert $folders
