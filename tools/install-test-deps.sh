#!/bin/sh
# install-test-deps.sh   installs the Debian packages that the tests need and this machine lacks: a C compiler
# (the race detector and the verbs shim are C), MPICH (real MPI programs run under our launcher, and ours
# under theirs), Slurm (ours run under its srun), ssh with its server, ip and unshare (jobs on several hosts, made of namespaces), the header of libibverbs (our declarations are compared with it),
# gdb (the page on debugging), a browser without a screen (the launcher's page is looked at), node with npm (Perfetto opens our traces) and an emulator of arm64
# processors (our assembly for them runs in it). It asks nothing and touches no network when everything is there.
set -eu

missing=
need() { # need PACKAGE COMMAND...: the package is missing unless the command succeeds
	package=$1
	shift
	"$@" >/dev/null 2>&1 || missing="$missing $package"
}
browser() { command -v chromium-headless-shell || command -v chromium || command -v chromium-browser || command -v google-chrome; }
emulator() { command -v qemu-aarch64 || command -v qemu-aarch64-static; }
headers() { echo '#include <stdlib.h>' | gcc -E -; }

need gcc command -v gcc
need libc6-dev headers
need git command -v git
need mpich command -v mpiexec.hydra
need libmpich-dev command -v mpicc.mpich
need gdb command -v gdb
need chromium-headless-shell browser
need nodejs command -v node
need npm command -v npm
need slurmctld test -e /usr/sbin/slurmctld
need slurmd test -e /usr/sbin/slurmd
need slurm-client command -v srun
need slurm-wlm-basic-plugins test -e "$(dpkg -L slurm-wlm-basic-plugins 2>/dev/null | grep -m1 mpi_pmi2.so)"
need munge test -e /usr/sbin/munged
need openssh-client command -v ssh-keygen
need openssh-server test -e /usr/sbin/sshd
need iproute2 command -v ip
need util-linux command -v unshare
[ "$(uname -m)" = aarch64 ] || need qemu-user emulator
need libibverbs-dev test -e /usr/include/infiniband/verbs.h

[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null; then
	echo "the tests need these Debian packages or their like:$missing" >&2
	exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
	echo "the tests need packages that only root can install; run: sudo apt-get install$missing" >&2
	exit 1
fi
echo "installing$missing"
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # a list of words
install() { apt-get install -y -q --no-install-recommends $missing </dev/null >/dev/null; }
install 2>/dev/null || { apt-get update -q </dev/null >/dev/null && install; } || {
	echo "could not install$missing; install them by hand, then try again" >&2
	exit 1
}
