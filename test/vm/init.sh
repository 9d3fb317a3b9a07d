#!/bin/busybox sh
# init.sh   the guest's first program, in its memory file system: loads the modules, puts this machine's files
# (read-only, with memory on top for what is written) at their own paths, and goes on as guest.sh there.
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
give_up() {
	echo "vm: init: $*" >/dev/console
	poweroff -f
}
cd /modules
while read -r module; do insmod "$module" || give_up "insmod $module"; done <order

plan9() { mount -t 9p -o "trans=virtio,version=9p2000.L,msize=512000,$3" "$1" "$2" || give_up "mount $1"; }
mkdir -p /host /top /new
plan9 host /host cache=loose,ro
mount -t tmpfs -o mode=755 top /top
mkdir /top/upper /top/work
mount -t overlay -o lowerdir=/host,upperdir=/top/upper,workdir=/top/work root /new || give_up "mount the root"
cd /new
mount -t proc proc proc
mount -t sysfs sys sys
mount -t devtmpfs dev dev
mkdir -p dev/pts dev/shm
mount -t devpts pts dev/pts
mount -t tmpfs -o mode=1777 shm dev/shm
mount -t tmpfs -o mode=755 run run
mkdir run/vm
plan9 control /new/run/vm cache=none
if [ -s run/vm/share ]; then
	share=/new$(cat run/vm/share)
	mkdir -p "$share"
	plan9 share "$share" cache=none
fi
exec chroot /new /bin/bash /run/vm/guest.sh
