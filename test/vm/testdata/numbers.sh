# numbers.sh PROGRAMS TURNS SECONDS ROUNDS   runs in the guest: prints a table of the verbs transport's test program beside a loop over the same
# flat functions, in one process; then, by turns, what jobs of two processes take, each process on a processor of its own: ours, the tools
# of the packages perftest and ucx-utils, and ours again. Of these each line is "result", the row, the program and microseconds for one
# operation, separated by tabs. The first round is always made; another begins if it will probably end within SECONDS, up to ROUNDS of them.
# Where there is one processor both ends share it, and UCX is left out, whose passive end never sleeps.
programs=$1 turns=$2 limit=$3 rounds=$4
first=(taskset -c 0) second=(taskset -c 1)
[ "$(nproc)" -gt 1 ] || first=() second=()
export PGAS_REQUIRE=verbs PGAS_TRANSPORT=verbs PGAS_LOCAL=off PGAS_DEVICE=rxe0:1
listens() { # listens PORT: waits until somebody does (proc(5): the port in hexadecimal, and state 0A)
	local port
	port=$(printf %04X "$1")
	for _ in $(seq 400); do
		! grep -qE "^ *[0-9]+: [0-9A-F]+:$port [0-9A-F]+:0000 0A" /proc/net/tcp /proc/net/tcp6 || return 0
		sleep 0.05
	done
	return 1
}
tool() { # tool COMMAND...: one end on processor 1, the other on processor 0 against it; what the second prints
	local port=18515
	[ "$1" != ucx_perftest ] || port=13337
	"${second[@]}" timeout 60 "$@" >/dev/null 2>&1 &
	local other=$!
	if listens $port; then
		case $1 in
		ucx_perftest) timeout 60 "${first[@]}" "$1" 10.9.0.1 "${@:2}" 2>&1 ;;
		*) timeout 60 "${first[@]}" "$@" 10.9.0.1 2>&1 ;;
		esac
	else
		kill $other
	fi
	wait $other
}
result() { # result ROW PROGRAM: the microseconds come on standard input; none where the tool cannot do it
	local us
	read -r us || us=-
	printf 'result\t%s\t%s\t%s\n' "$1" "$2" "${us:--}"
}
ours() { # ours ROW BYTES PROGRAM ARGUMENT...
	"$programs/pgasrun.run" -n 2 "$programs/pgasbench.run" "${@:4}" --pin process --csv --reps 3 --target-time 100ms 2>&1 |
		awk -F, -v bytes="$2" 'NF < 6 { next } $(NF-5) == "ns" { print $(NF-4) / 1e3 } $(NF-5) == "MB/s" { print bytes / $(NF-4) }' | result "$1" "$3"
}
all_ours() { # all_ours PROGRAM
	ours '8 B put, one at a time' 8 "$1" lat --op put --min 8 --max 8
	ours '8 B get' 8 "$1" lat --op get --min 8 --max 8
	ours '64-bit fetch-add' 8 "$1" --only $'64-bit fetch-add\nwindow'
	ours '8 B puts, 64 together' 8 "$1" --only $'8 B puts, flush every 64\nWindow.PutNB' # of its two rows one is in M/s
	ours '8 B puts side by side, 64 together' 8 "$1" --only $'8 B puts side by side, flush every 64\nWindow.PutNB'
	ours '64 KiB put, one at a time' 65536 "$1" lat --op put --min 65536 --max 65536
	ours '64 KiB puts, 64 together' 65536 "$1" bw --op putnb --hot --min 65536 --max 65536
	ours '1 MiB put, one at a time' 1048576 "$1" lat --op put --min 1048576 --max 1048576
	ours '1 MiB puts, 64 together' 1048576 "$1" bw --op putnb --hot --min 1048576 --max 1048576
}
perftest() { # perftest ROW BYTES TIMES DEPTH: writes, of which so many are in flight
	tool ib_write_bw -d rxe0 -x 1 -F -s "$2" -n "$3" -t "$4" |
		awk -v bytes="$2" '$1 == bytes && NF >= 5 { print bytes < 65536 ? 1 / $5 : bytes / 1.048576 / $4 }' | result "$1" perftest
}
perftest_lat() { # perftest_lat ROW TOOL ARGUMENT...: the mean of what is waited for one by one
	tool "$2" -d rxe0 -x 1 -F -n 500 "${@:3}" | awk '$1 == 8 && NF > 5 { print $6 }' | result "$1" perftest
}
ucx() { # ucx ROW TEST WAY BYTES TIMES DEPTH
	[ "$(nproc)" -gt 1 ] || return 0
	tool ucx_perftest -d rxe0:1 -x rc_verbs -t "$2" -D "$3" -s "$4" -n "$5" -w 5 -O "$6" | awk '/^Final/ && $9 > 0 { print 1e6 / $9 }' | result "$1" UCX
}
VERBS_TEST_PAIRED=$turns "$programs/verbs.run" -test.v -test.run='^TestPaired$' | grep --line-buffered '^[|#]'
longest=0
for round in $(seq "$rounds"); do
	began=$SECONDS
	[ "$round" = 1 ] || [ $((began + longest)) -le "$limit" ] || break
	echo "round $round of at most $rounds, $began s after the start"
	all_ours ours
	perftest '8 B put, one at a time' 8 1000 1
	perftest_lat '8 B get' ib_read_lat -s 8
	perftest_lat '64-bit fetch-add' ib_atomic_lat -A FETCH_AND_ADD
	perftest '8 B puts, 64 together' 8 5000 64
	perftest '64 KiB put, one at a time' 65536 100 1
	perftest '64 KiB puts, 64 together' 65536 200 64
	perftest '1 MiB put, one at a time' 1048576 20 1
	perftest '1 MiB puts, 64 together' 1048576 64 64
	ucx '8 B put, one at a time' put_bw zcopy 8 1000 1
	ucx '8 B get' get bcopy 8 500 1
	ucx '64-bit fetch-add' fadd bcopy 8 500 1
	ucx '8 B puts, 64 together' put_bw short 8 5000 64
	ucx '64 KiB put, one at a time' put_bw zcopy 65536 100 1
	ucx '64 KiB puts, 64 together' put_bw zcopy 65536 200 64
	ucx '1 MiB put, one at a time' put_bw zcopy 1048576 20 1
	ucx '1 MiB puts, 64 together' put_bw zcopy 1048576 64 64
	all_ours 'ours again'
	took=$((SECONDS - began))
	[ $took -le $longest ] || longest=$took
done
echo "$((SECONDS)) s in all"
