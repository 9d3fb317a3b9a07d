#!/bin/bash
# run.sh [OPTION...] -- COMMAND [ARGUMENT...]   runs a command in a throw-away virtual machine that has an RDMA device
# (Soft-RoCE), on a machine that has none: Debian's kernel under QEMU's emulation. The guest sees this machine's
# files at their own paths; what it writes is gone afterwards. Standard output and error and the exit status are
# the command's; 124: it took too long; 125: the machine did not work, standard error says why.
#
#   --nics one|pair|none   rxe0 at 10.9.0.1 | also rxe1 at 10.9.0.2, joined by a wire | no device (default one)
#   --node I --link DIR    this is machine I (0 or 1) of two that are joined by sockets in DIR; rxe0 at 10.9.1.(I+1)
#   --share DIR            a folder that the guest may write, at the same path
#   --env NAME             hand this variable of the environment on (repeatable)
#   --cpus N, --mem MIB    size of the machine (default 2, 2048)
#   --count                one processor, on which every instruction takes a nanosecond of the machine's own clock
#   --mtu BYTES            of the interfaces (default 9000)
#   --lsm NAMES            security modules of the guest's kernel, such as yama (default none)
#   --timeout SECONDS      (default 300)
#   --cache DIR            where the kernel is kept (default ~/.cache/gopgas-vm)
#   --times                print seconds of boot and run on standard error
#   --live                 print standard output as it comes, not at the end
set -euo pipefail
die() { echo "vm: $*" >&2; exit 125; }
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
nics=one node=0 link='' share='' cpus='' mem=2048 mtu=9000 lsm= limit=300 times='' live='' names=(PATH HOME)
clock=(-accel 'tcg,thread=multi')
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/gopgas-vm
while [ $# -gt 0 ] && [ "$1" != -- ]; do
	case $1 in
	--nics) nics=$2 ;;
	--node) node=$2 nics=node ;;
	--link) link=$2 ;;
	--share) share=$(realpath "$2") ;;
	--env) names+=("$2") ;;
	--cpus) cpus=$2 ;;
	--mem) mem=$2 ;;
	--mtu) mtu=$2 ;;
	--lsm) lsm=$2 ;;
	--timeout) limit=$2 ;;
	--cache) cache=$2 ;;
	--times) times=1; shift; continue ;;
	--count) clock=(-accel 'tcg,thread=single' -icount 'shift=0,sleep=off'); shift; continue ;;
	--live) live=1; shift; continue ;;
	*) die "unknown option $1; see the head of run.sh" ;;
	esac
	shift 2
done
[ $# -gt 1 ] || die "no command; see the head of run.sh"
shift
[ ${#clock[@]} = 2 ] || [ "${cpus:=1}" = 1 ] || die "--count is for one processor, and --cpus says $cpus"
case $nics in one | pair | none | node) ;; *) die "--nics $nics" ;; esac
[ "$nics" != node ] || [ -d "$link" ] || die "--node needs --link with a folder"

missing=
for need in qemu-system-x86_64:qemu-system-x86 busybox:busybox-static cpio:cpio modinfo:kmod xz:xz-utils \
	strip:binutils rdma:iproute2 apt-get:apt dpkg-deb:dpkg; do
	PATH=$PATH:/usr/sbin:/sbin command -v "${need%:*}" >/dev/null || missing="$missing ${need#*:}"
done
[ -z "$missing" ] || die "install these packages first:$missing"
bash "$here/prepare.sh" "$cache"

work=$(mktemp -d "${TMPDIR:-/tmp}/vm.XXXXXX")
machine='' teller=''
trap 'kill $machine $teller 2>/dev/null || :; rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

mkdir -p "$work/first/bin" "$work/first/proc" "$work/first/dev" "$work/control"
cp "$(command -v busybox)" "$work/first/bin"
cp "$here/init.sh" "$work/first/init"
chmod 755 "$work/first/init"
cp -r "$cache/modules" "$work/first"
(cd "$work/first" && find . | cpio -o -H newc --quiet) >"$work/initramfs"

cp "$here/guest.sh" "$work/control"
{
	printf '%s=%q\n' nics "$nics" node "$node" mtu "$mtu" folder "$PWD"
	for name in "${names[@]}"; do [ -z "${!name+set}" ] || printf 'export %s=%q\n' "$name" "${!name}"; done
	printf 'command=('
	printf '%q ' "$@"
	echo ')'
} >"$work/control/settings"

devices=()
files() { # files TAG DIR OPTIONS: a folder the guest can mount
	devices+=(-virtfs "local,mount_tag=$1,path=${2//,/,,},security_model=none,multidevs=remap$3")
}
files host / ,readonly=on
files control "$work/control" ''
if [ -n "$share" ]; then
	echo "$share" >"$work/control/share"
	files share "$share" ''
fi
if [ "$nics" = node ]; then
	rm -f "$link/$node"
	devices+=(-netdev "dgram,id=net,local.type=unix,local.path=$link/$node,remote.type=unix,remote.path=$link/$((1 - node))"
		-device "virtio-net-pci,netdev=net,host_mtu=$mtu,mac=52:54:00:67:6f:0$node")
else
	devices+=(-nic none)
fi
# qemu64: with newer models the C library copies by string instructions, which emulation does byte by byte.
# tsc=reliable: else reading the clock leaves the guest, which costs 2 us a time.
begin=$(date +%s%N)
timeout -k 5 "$limit" qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot \
	-machine pc "${clock[@]}" -cpu qemu64 -smp "${cpus:-2}" -m "$mem" \
	-kernel "$cache/vmlinux" -initrd "$work/initramfs" \
	-append "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable no_timer_check nowatchdog audit=0 lsm=$lsm init_on_alloc=0" \
	-chardev "file,id=console,path=$work/console" -serial chardev:console \
	"${devices[@]}" </dev/null >"$work/qemu" 2>&1 &
machine=$!
ended=0
control=$work/control
if [ -n "$live" ]; then
	: >"$control/out"
	tail -n +1 -s 0.2 -f --pid="$machine" "$control/out" & # it ends when the machine has
	teller=$!
fi
wait "$machine" || ended=$?
[ -z "$teller" ] || wait "$teller" || :
machine='' teller=''
[ -n "$live" ] || [ ! -s "$control/out" ] || cat "$control/out"
[ ! -s "$control/err" ] || cat "$control/err" >&2
[ ! -s "$control/trouble" ] || cat "$control/trouble" >&2
[ -z "$times" ] || awk -v b="$begin" -v e="$(date +%s%N)" -v u="$(cat "$control/up" 2>/dev/null)" \
	'BEGIN { printf "vm: the command began %.1f s after the kernel, %.1f s in all\n", u, (e - b) / 1e9 }' >&2
if [ -s "$control/status" ]; then
	exit "$(cat "$control/status")"
fi
cat "$work/qemu" >&2
tail -n 30 "$work/console" >&2 2>/dev/null || :
[ "$ended" != 124 ] || { echo "vm: no end within $limit s" >&2; exit 124; }
die "the machine ended without a status (QEMU's is $ended)"
