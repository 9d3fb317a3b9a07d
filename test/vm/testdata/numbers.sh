# numbers.sh PROGRAM TURNS   runs in the guest: prints a table of the verbs transport's test program PROGRAM, beside a loop
# over the same flat functions, and by turns with it the tools of the packages perftest and ucx-utils.
program=$1 turns=$2
export PGAS_REQUIRE=verbs
tool() { # tool COMMAND...: one end in the background, the other against it; what the second prints
	"$@" >/dev/null 2>&1 &
	local other=$!
	sleep 2
	case $1 in
	ib_*) "$@" 10.9.0.1 2>&1 ;;
	*) "$1" 10.9.0.1 "${@:2}" 2>&1 ;;
	esac
	wait "$other"
}
lat() { awk '$1 ~ /^[0-9]+$/ && NF > 5 { print $3, $5 }'; } # of perftest: least and typical
for round in 1 2 3; do
	echo "round $round"
	VERBS_TEST_PAIRED=$turns "$program" -test.v -test.run='^TestPaired$' | grep '^|'
	for bytes in 8 65536 1048576; do
		n=$((bytes > 8 ? 50 : 500))
		echo "perftest write, half a round trip, $bytes bytes, us, least and typical: $(tool ib_write_lat -d rxe0 -x 1 -s $bytes -n $n | lat)"
	done
	echo "perftest read, 8 bytes, us: $(tool ib_read_lat -d rxe0 -x 1 -s 8 -n 500 | lat)"
	echo "perftest fetch-add, us: $(tool ib_atomic_lat -d rxe0 -x 1 -A FETCH_AND_ADD -n 500 | lat)"
	echo "ucx_perftest put_lat short, 8 bytes, us, median of half a round trip: $(tool ucx_perftest -d rxe0:1 -x rc_verbs \
		-t put_lat -D short -s 8 -n 500 -w 10 | awk '/^Final/ { print $3 }')"
	for bytes in 65536 1048576; do
		echo "ucx_perftest put_bw zcopy, $bytes bytes, MB/s: $(tool ucx_perftest -d rxe0:1 -x rc_verbs \
			-t put_bw -D zcopy -s $bytes -n 50 -w 5 | awk '/^Final/ { print $7 }')"
	done
	echo "ucx_perftest fadd, us, median: $(tool ucx_perftest -d rxe0:1 -x rc_verbs -t fadd -D bcopy -s 8 -n 500 -w 10 | awk '/^Final/ { print $3 }')"
done
