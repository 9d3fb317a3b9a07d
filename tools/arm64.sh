#!/bin/sh
# arm64.sh   vets everything for arm64, and runs the tests of the packages with arm64 assembly, and of the cache that lives on what
# it captures, on an emulated processor (Debian's qemu-user, see install-test-deps.sh). On an arm64 machine they run as they are.
#
# Emulation shows that the instructions do what is claimed for one thread. Of memory ordering it shows less: the emulator's
# host orders more than an arm64 processor does, so a missing barrier need not show, and test/litmus is left out.
set -eu

export GOARCH=arm64 CGO_ENABLED=0
go vet ./...
packages=$(go list -f '{{if .SFiles}}{{.ImportPath}}{{end}}' ./...)
[ -n "$packages" ]
if [ "$(uname -m)" = aarch64 ]; then
	run=
else
	run=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) || {
		echo "no qemu-aarch64: run tools/install-test-deps.sh" >&2
		exit 1
	}
fi
# shellcheck disable=SC2086 # lists of words
go test -count=1 -timeout 2m ${run:+-exec "$run"} $packages
# The emulator answers madvise(MADV_POPULATE_WRITE) with success without asking the kernel.
go test -count=1 -timeout 2m ${run:+-exec "$run" -skip TestReadOnlyMemory} ./regmgr
