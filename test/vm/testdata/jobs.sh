# jobs.sh LENGTH PROGRAMS SECONDS   runs in the guest: jobs over its NIC, LENGTH (short or long) of them, made of the
# programs in the folder PROGRAMS. Each part prints its name, what it printed, and its status, for the test to look at.
# What still runs after SECONDS says where it stands, and is ended.
length=$1 programs=$2 limit=$3
cd "$programs" || exit 1
export PGAS_TRANSPORT=verbs PGAS_LOCAL=off PGAS_DEVICE=rxe0:1 PGAS_TEST_PATHS=verbs PGAS_REQUIRE=verbs
part() { # part NAME COMMAND...
	local name=$1
	shift
	echo "=== part $name"
	local began=$SECONDS status
	"$@" 2>&1
	status=$?
	echo "took $((SECONDS - began)) s"
	echo "=== ended $name $status"
}
sent() { cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts; }
limited() { # limited KIB NAME COMMAND...: as a user who may lock so much memory
	(
		ulimit -l "$1"
		part "$2" setpriv --reuid=65534 --regid=65534 --clear-groups "${@:3}"
	)
}
# shellcheck disable=SC2329 # called by part
counted() { # counted COMMAND...: says how many packets the NIC has sent for it
	local before status
	before=$(sent)
	"$@"
	status=$?
	echo "sent $(($(sent) - before))"
	return $status
}
job() { ./pgasrun.run --timeout "$((limit / 2))s" -n "$@"; }
# shellcheck disable=SC2329 # called by part
flap() { # flap SECONDS COMMAND...: the interface goes down for so long once the ranks work
	local log=/tmp/flap.$$ down=$1
	shift
	"$@" >"$log" 2>&1 &
	local job=$!
	for _ in $(seq 300); do ! grep -q 'is at work' "$log" || break; sleep 0.1; done
	ip link set nic0 down
	sleep "$down"
	ip link set nic0 up
	wait "$job"
	local status=$?
	cat "$log"
	return $status
}
# shellcheck disable=SC2329 # called by part
bare() { # stale.run bare, again where the runtime has not allocated at the same place
	local out status
	for _ in $(seq 10); do
		out=$(./stale.run bare)
		status=$?
		[[ $status = 0 && $out != *"did: true"* ]] || break
	done
	echo "$out"
	return $status
}
watch() { # after SECONDS: where our programs stand, in the kernel and in Go
	sleep "$1"
	echo "=== stuck"
	local process words ours=()
	for process in /proc/[0-9]*; do
		mapfile -t -d '' words <"$process/cmdline"
		[[ ${words[0]-} == *.run ]] || continue
		ours+=("${process#/proc/}")
		echo "${ours[-1]}: ${words[*]}"
		cat "$process"/task/*/stack | sort | uniq -c | sort -rn | head -n 12
	done
	kill -QUIT "${ours[@]}"
	sleep 3
	kill -KILL "${ours[@]}"
	sync # the host reads what it has of this when the machine has been ended
}
watch "$limit" &
before=$(sent)

part info ./pgasrun.run info
part two job 2 ./rank.run hello
# Each rank in a name space of its own counts as on another node: then the NIC is chosen without being asked for.
part auto env -u PGAS_TRANSPORT -u PGAS_LOCAL -u PGAS_DEVICE ./pgasrun.run -n 2 unshare --ipc ./rank.run hello
part four job 4 ./rank.run work 300
part killed job 3 --no-kill ./rank.run killed
PGAS_MAX_PINNED=16M part budget job 2 ./rank.run create 20000000
limited 64 memlock64K ./pgasrun.run -n 2 ./rank.run hello
limited 8192 memlock8M ./pgasrun.run -n 2 ./rank.run create 10000000
part stalepinned ./stale.run pinned
part stalebare bare
part flap flap 0.7 job 2 ./rank.run flow 3000
part alone flap 0.1 ./rank.run flow 1000 # all that it does is between its NIC and itself
if [ "$length" = short ]; then
	part kmer job 2 --stats ./kmer.run ./genome.fa
	part churn job 2 ./rank.run churn 20
	part keys ./proto.run -test.v -test.run='^TestRefusedAlone$'
	part pgas ./pgas.run -test.v -test.short -test.run='^(TestPtr|TestStatsAreExact|TestHeapGrowsOnDemand)$'
else
	for down in 0.1 0.3 0.05 1.2; do
		part "flap$((++flaps))" flap $down job 2 ./rank.run flow 1500
		part "alone$flaps" flap $down ./rank.run flow 500
	done
	part kmer job 4 --stats ./kmer.run ./genome.fa
	part churn job 2 ./rank.run churn 10000 # some thirty seconds
	export PGAS_TEST_RANKS=4
	# An emulated processor is too slow for a million calls, and so long at one that others' allocations are counted; ranks of a
	# gigabyte each in one process are more than the machine has.
	large='TestMillionCallsAllocateNothing|TestCallsOfAWorldAllocateNothing|TestGigabyte|TestGigabyteOfGoroutines'
	# Nothing of these goes over the machine's NIC, and each takes seconds on such a processor.
	elsewhere='TestShortRowsArePacked|TestLoadsAndStoresByWhatANICHas|TestManyDealtElements|TestCallOfPartsThatIsLeft|TestPiecesAgainstOwners'
	elsewhere+='|TestTransfersUnderEveryPolicy|TestBuffersAreLetGo|TestLoneCalls|TestCostsKept|TestInitWithoutContext|TestDescribe.*|ExampleFact'
	# All suites with fewer rounds: in full they take up to eight times as long here.
	part window ./window.run -test.v -test.short -test.skip="^($large|$elsewhere)\$"
	# The former wants some ranks to share memory, and PGAS_LOCAL is off; the latter goes over tcp and soft.
	part sync ./sync.run -test.v -test.short -test.skip='^(TestLevelsOfRealNodes|TestOfStopped)$'
	limited 8192 gigabyte ./window.run -test.v -test.run='^TestGigabyte$'
	# All that windows can do where the kernel lets a process register 8 MiB, buffers included, as it does by default on many machines: worlds of
	# two or three are one process here, whose ranks have a part each.
	PGAS_TEST_RANKS=2 limited 8192 windowlimited ./window.run -test.v -test.short -test.skip="^($large|$elsewhere)\$"
	# A superuser's memory is not limited, and churn makes windows: parts above do these two. The others want PGAS_LOCAL or
	# PGAS_TRANSPORT for themselves, and part auto is about what they are about; the million calls go over no real NIC.
	others='TestLittleLockedMemory|TestTenThousandWindows|TestNamedTransport|TestNodes|TestNearTransportBetweenNodes'
	part pgas ./pgas.run -test.v -test.short -test.skip="^($large|$elsewhere|$others)\$"
	for eager in bounce bypass; do
		PGAS_EAGER=$eager part $eager counted job 2 --stats=json ./rank.run ping 200 4096
	done
	PGAS_TEST_RANKS=3 part coll ./coll.run -test.v -test.short \
		-test.run='^Test(Gather|Scatter|GatherVAndScatterV|AllGatherV|AllToAll|AllToAllV|Scan|RefusedByAll)$/^verbs'
	PGAS_TEST_RANKS=3 part hashmap ./hashmap.run -test.v -test.short
	PGAS_TEST_RANKS=3 part rpc ./rpc.run -test.v -test.short -test.run='^Test(CallsOfEveryType|MessagesInOrder|LongMessages|MemberDies)$'
	PGAS_TEST_RANKS=3 part algo ./algo.run -test.v -test.short
	PGAS_TEST_RANKS=3 part grid ./grid.run -test.v -test.short -test.run='^Test(AgainstPlain|AllAtOnce|Ghosts|Copies|FillReduceAtomics)$'
	(cd races && part races ../races.run -test.v -test.short -test.run='^TestPaths$')
	part model ./model.run -test.v -test.short -test.run='^(TestTraces|TestLargeTracesUnderEveryProtocol)$' -model.traces=1
	while read -r example arguments; do
		# shellcheck disable=SC2086 # several words
		part "$example" job 3 "./$example.run" $arguments </dev/null
	done <<-END
		ring -laps 20
		heat -rows 40 -cols 30 -steps 20
		stencil3d -edge 10 -steps 5
		gups -bits 12
		isx -keys 4000 -max 65536
		transpose -order 64 -times 2
		p2p -cols 40 -rows 30 -rounds 2
		matmul -n 40
		histogram -values 500
		cg -side 10
		indexgather -table 1000 -reads 1000
		words -words 300
	END
	part proto ./proto.run -test.v -test.run='^(TestMend|TestInDoubt|TestRefusedAlone|TestChecksBeforePosting|TestUnreachable)$'
fi
echo "=== part counters"
echo "sent $(($(sent) - before))"
echo "=== ended counters 0"
rdma link delete rxe0
part none job 2 ./rank.run hello
