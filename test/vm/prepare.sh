#!/bin/bash
# prepare.sh CACHE   fills the folder CACHE, once, with what run.sh boots: the kernel that Debian's linux-image-amd64
# depends on, unpacked (vmlinux), and the modules the guest loads (modules/), listed in loading order (modules/order).
# Nothing is installed and nothing needs root. A second caller waits for the first.
set -euo pipefail
cache=${1:?usage: prepare.sh CACHE}
die() { echo "vm: $*" >&2; exit 125; }

# The transports of the guest's file systems, the file systems, network interfaces, and Soft-RoCE.
wanted="virtio_pci 9pnet_virtio 9p overlay crc32_generic dummy veth virtio_net rdma_rxe ib_uverbs"

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
[ "$(cat "$cache/contents" 2>/dev/null)" != "$wanted" ] || exit 0

work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
chmod 755 "$work" # apt-get downloads as a user of its own

image=$(apt-cache depends linux-image-amd64 2>/dev/null | awk '/Depends: linux-image-[0-9]/ { print $2; exit }')
if [ -z "$image" ]; then
	apt-get update -q >"$work/log" 2>&1 || { cat "$work/log" >&2; die "apt-get update"; }
	image=$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image-[0-9]/ { print $2; exit }')
fi
[ -n "$image" ] || die "apt knows no kernel (package linux-image-amd64)"
release=${image#linux-image-}
cd "$work"
apt-get download "$image" >log 2>&1 || {
	apt-get update -q >>log 2>&1 && apt-get download "$image" >>log 2>&1
} || { cat log >&2; die "apt-get download $image"; }
dpkg-deb -x ./*.deb tree

# QEMU enters the plain ELF kernel directly (PVH), which spares the emulated processor the firmware and the
# decompression, seconds of boot. Where it lies in the image: Documentation/arch/x86/boot.rst, fields setup_sects,
# payload_offset and payload_length.
bz=tree/boot/vmlinuz-$release
field() { od -An "-tu$1" -j "$2" -N "$1" "$bz" | tr -d ' '; }
sectors=$(field 1 497)
start=$(((sectors == 0 ? 5 : sectors + 1) * 512 + $(field 4 584)))
length=$(field 4 588)
tail -c +$((start + 1)) "$bz" | head -c "$length" >payload || [ $? = 141 ]
length=$((length - 4)) # the last word is the size of what is packed
case $(od -An -tx1 -N2 payload | tr -d ' ') in
fd37) head -c $length payload | xz -dc >vmlinux ;;
28b5) head -c $length payload | zstd -dcq >vmlinux ;;
1f8b) gzip -dc <payload >vmlinux 2>/dev/null || [ -s vmlinux ] ;;
*) die "$image: unknown compression" ;;
esac

# Modules in an order in which each finds what it depends on. Built-in ones have no file. Without signature and
# debugging data they load quicker.
mkdir modules
: >modules/order
find "tree/lib/modules/$release" -name '*.ko*' >files
declare -A placed
place() { # place NAME
	local name=${1//-/_} file dependency
	[ -z "${placed[$name]:-}" ] || return 0
	placed[$name]=1
	file=$(awk -v n="$name" '{ b = $0; sub(".*/", "", b); sub("[.]ko.*", "", b); gsub("-", "_", b); if (b == n) { print; exit } }' files)
	[ -n "$file" ] || return 0
	case $file in
	*.xz) xz -dc "$file" ;;
	*.zst) zstd -dcq "$file" ;;
	*) cat "$file" ;;
	esac >"modules/$name.ko"
	for dependency in $(modinfo -F depends "modules/$name.ko" | tr , ' '); do place "$dependency"; done
	strip --strip-debug "modules/$name.ko" 2>/dev/null || :
	echo "$name.ko" >>modules/order
}
for name in $wanted; do place "$name"; done
grep -q rdma_rxe modules/order || die "$image has no rdma_rxe"

rm -rf "$cache/modules"
mv modules vmlinux "$cache"
echo "$wanted" >"$cache/contents"
