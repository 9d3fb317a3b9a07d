# guest.sh   in the guest, on this machine's files: brings the RDMA devices up, runs the command, leaves its output
# and exit status in /run/vm, and switches the machine off. run.sh has written /run/vm/settings before the boot.
. /run/vm/settings
trouble() { echo "vm: guest: $*" >&2; }
roce() { # roce DEVICE INTERFACE
	rdma link add "$1" type rxe netdev "$2" || trouble "no Soft-RoCE device on $2"
}

hostname vm
ulimit -l unlimited
ip link set lo up
case $nics in
one)
	# Soft-RoCE turns packets for itself round in the driver, so an interface that goes nowhere will do.
	ip link add nic0 mtu "$mtu" type dummy
	ip addr add 10.9.0.1/24 dev nic0
	ip link set nic0 up
	roce rxe0 nic0
	;;
pair)
	# Two interfaces joined by a wire. The addresses of both are local, so packets would never be sent: routes that
	# only look-ups bound to an interface see (Soft-RoCE makes such) lead over the wire, all others over loopback.
	ip link add nic0 mtu "$mtu" type veth peer name nic1 mtu "$mtu"
	for i in 0 1; do
		ip addr add "10.9.0.$((i + 1))/32" dev "nic$i"
		ip link set "nic$i" up
		echo 1 >"/proc/sys/net/ipv4/conf/nic$i/accept_local"
		echo 0 >"/proc/sys/net/ipv4/conf/nic$i/rp_filter"
	done
	echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter
	for i in 0 1; do
		other=$((1 - i))
		ip route add "10.9.0.$((other + 1))/32" dev "nic$i" src "10.9.0.$((i + 1))" table "10$i"
		ip neigh add "10.9.0.$((other + 1))" lladdr "$(cat "/sys/class/net/nic$other/address")" dev "nic$i"
		ip rule add pref 1 iif "nic$i" lookup local
		ip rule add pref 2 oif "nic$i" lookup "10$i"
	done
	ip rule add pref 3 lookup local
	ip rule del pref 0
	roce rxe0 nic0
	roce rxe1 nic1
	;;
node)
	ip link set eth0 mtu "$mtu"
	ip addr add "10.9.1.$((node + 1))/24" dev eth0
	ip link set eth0 up
	roce rxe0 eth0
	;;
esac 2>/run/vm/trouble

read -r up _ </proc/uptime
echo "$up" >/run/vm/up
cd "$folder" 2>/dev/null || cd /
"${command[@]}" </dev/null >/run/vm/out 2>/run/vm/err
status=$?
sync
echo "$status" >/run/vm/status
exec /bin/busybox poweroff -f
