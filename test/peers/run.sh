#!/bin/bash
# run.sh [PEER...]   measures this library and its peers by turns with the same loops, and prints one markdown table.
#
# Peers: raw (plain C, a flush is a full fence), order (plain C, ordered stores), ompi (Open MPI, shared window), ompi-tcp (Open MPI over
# TCP on the loop-back interface, for PGAS_LOCAL=off PGAS_TRANSPORT=tcp ONLY=coll_ and ONLY=barrier; not by default), mpich, oshmem
# (Open MPI's OpenSHMEM); gasnet (GASNet-EX, smp conduit) and gasnet-blocking, which no package has: GASNET=PREFIX says where one is installed.
# All of packages by default. Two processes, one on each of two cores. What Debian packages is installed where it is absent.
# Last comes how long a job takes from the start of its launcher to its end: the least program there is, of MPI, and examples/hello of this
# library, which does more, as 2 and as 8 processes. ONLY=hello measures that alone.
#   RANKS=2         more than there are cores share them; ONLY=barrier and ONLY=coll_ are what makes sense then
#   ROUNDS=3        turns; each measures every program once, this library first and last
#   REPS=7 TARGET_MS=20 UPDATES=500000 BARRIERS=20000 ONLY=   as in c/loops.h and pgasbench
#   IDLE=90         wait until the machine is idle by so many percent before each program, at most PATIENCE=60 seconds
#   OUT=            folder that keeps the programs' outputs (default: a temporary one)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
export REPS=${REPS:-7} TARGET_MS=${TARGET_MS:-20} UPDATES=${UPDATES:-500000} BARRIERS=${BARRIERS:-20000} ONLY=${ONLY:-} RANKS=${RANKS:-2}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
out=${OUT:-$build}
mkdir -p "$out"
if [ $# -eq 0 ] && [ "$ONLY" = hello ]; then set -- ompi mpich; fi
[ $# -gt 0 ] || set -- raw order ompi mpich oshmem

need() { # need COMMAND PACKAGE...
	local command=$1
	shift
	command -v "$command" >/dev/null && return
	echo "installing $*" >&2
	export DEBIAN_FRONTEND=noninteractive
	apt-get install -y -q --no-install-recommends "$@" >/dev/null 2>&1 ||
		{ apt-get update -q >/dev/null && apt-get install -y -q --no-install-recommends "$@" >/dev/null; }
}

idle() { # waits for a quiet moment, and says so where none came
	local user nice system idle rest before after total n
	for ((n = 0; n < ${PATIENCE:-60}; n++)); do
		read -r _ user nice system idle rest </proc/stat
		before=$idle total=$((user + nice + system + idle))
		sleep 1
		read -r _ user nice system idle rest </proc/stat
		after=$idle total=$((user + nice + system + idle - total))
		((total > 0 && 100 * (after - before) / total >= ${IDLE:-90})) && return
	done
	echo "the machine was busy: the next figures are disturbed" >&2
}

compile() { # compile PEER
	case $1 in
	raw) need gcc gcc libc6-dev && gcc -O3 -march=native -o "$build/raw" "$here/c/raw.c" ;;
	order) need gcc gcc libc6-dev && gcc -O3 -march=native -DORDER -o "$build/order" "$here/c/raw.c" ;;
	ompi*) need mpicc.openmpi openmpi-bin libopenmpi-dev gcc && mpicc.openmpi -O3 -o "$build/ompi" "$here/c/mpi.c" && mpicc.openmpi -O3 -o "$build/hello.ompi" "$here/c/hello.c" ;;
	mpich) need mpicc.mpich mpich libmpich-dev gcc && mpicc.mpich -O3 -o "$build/mpich" "$here/c/mpi.c" && mpicc.mpich -O3 -o "$build/hello.mpich" "$here/c/hello.c" ;;
	gasnet | gasnet-blocking) # what it was built with says how to build with it
		need make make && need gcc gcc libc6-dev
		make -s -f - <<-END || { echo "$1 needs GASNET=PREFIX, an installation of GASNet-EX with its smp conduit" >&2 && exit 2; }
			include ${GASNET:-GASNET}/include/smp-conduit/smp-seq.mak
			all: ; \$(GASNET_CC) \$(GASNET_CPPFLAGS) \$(GASNET_CFLAGS) $([ "$1" = gasnet ] || echo -DBLOCKING) $here/c/gasnet.c -o $build/$1 \$(GASNET_LDFLAGS) \$(GASNET_LIBS)
		END
		;;
	oshmem) need oshcc openmpi-bin libopenmpi-dev gcc && oshcc -O3 -o "$build/oshmem" "$here/c/shmem.c" ;;
	*) echo "unknown peer $1; there are: raw order ompi ompi-tcp mpich oshmem gasnet gasnet-blocking" >&2 && exit 2 ;;
	esac
}

binding=(--bind-to core --map-by core) # what Open MPI is told
((RANKS > 2)) && binding=(--oversubscribe --bind-to core:overload-allowed --map-by core)

measure() { # measure PEER
	case $1 in
	raw | order) "$build/$1" "$RANKS" ;;
	ompi) SHARED=1 mpirun.openmpi -n "$RANKS" "${binding[@]}" "$build/ompi" ;;
	ompi-tcp) mpirun.openmpi -n "$RANKS" "${binding[@]}" --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include lo "$build/ompi" ;;
	mpich) # it spins where it should yield: of four processes on two cores a barrier takes 8 ms
		UPDATES=$((UPDATES / 5)) BARRIERS=$((RANKS > 2 ? BARRIERS / 50 : BARRIERS)) mpirun.mpich -n "$RANKS" -bind-to core "$build/mpich" ;;
	oshmem) # its programs end without shmem_finalize, which oshrun takes for a failure
		{ oshrun -n "$RANKS" "${binding[@]}" -x SHMEM_SYMMETRIC_SIZE=256M "$build/oshmem" 2>"$build/oshmem.err" || true; } | tee "$build/oshmem.csv"
		[ -n "$ONLY" ] || grep -q '^hotput_1M_flush' "$build/oshmem.csv" || { cat "$build/oshmem.err" >&2 && exit 1; } ;;
	gasnet*) # by default it reduces in pieces of 16 bytes
		GASNET_PSHM_NODES=$RANKS GASNET_MAX_SEGSIZE=256M GASNET_COLL_P2P_EAGER_MIN=65536 "$build/$1" ;;
	ours) "${launch[@]}" -n "$RANKS" "$build/pgasbench" --csv --only "$ONLY" --reps "$REPS" --target-time "${TARGET_MS}ms" \
		--updates "$UPDATES" --barriers "$BARRIERS" ;;
	esac
}

hello() { # hello PEER: start to end, REPS times; nothing for what is no launcher, and for oshrun, whose programs do not end well
	local ranks run begin r
	for ranks in 2 8; do
		case $1 in
		ompi) run=(mpirun.openmpi --oversubscribe -n $ranks "$build/hello.ompi") ;;
		mpich) run=(mpirun.mpich -n $ranks "$build/hello.mpich") ;;
		ours) run=("${launch[@]}" -n $ranks "$build/hello") ;;
		*) return 0 ;;
		esac
		"${run[@]}" >/dev/null # the first one reads the files
		for ((r = 0; r < REPS; r++)); do
			begin=${EPOCHREALTIME/[.,]/}
			"${run[@]}" >/dev/null
			echo $((${EPOCHREALTIME/[.,]/} - begin))
		done | sort -n | awk -v n=$ranks '{ v[NR] = $1 / 1000; all = all (NR > 1 ? " " : "") v[NR] } END {
			printf "hello_%d,\"hello, %d ranks\",\"start to end\",none,ms,%g,%g,%g,1,%s\n", n, n, (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2, v[1], v[NR], all }'
	done
}

cd "$top"
go build -o "$build/" ./cmd/pgasbench ./examples/hello
if [ -d cmd/pgasrun ]; then
	go build -o "$build/pgasrun" ./cmd/pgasrun
	launch=("$build/pgasrun")
else
	need mpiexec.hydra mpich
	launch=(mpiexec.hydra)
fi
for p; do compile "$p"; done

columns=()
turn() { # turn PEER: one run, into a file of its own
	echo "round $round: $1" >&2
	idle
	if [ "$ONLY" = hello ]; then
		echo row,title,api,transport,unit,median,min,max,n,values
	else
		measure "$1"
	fi >"$out/$1.$round.csv"
	case $ONLY in '' | hello) hello "$1" >>"$out/$1.$round.csv" ;; esac
	columns+=("$1=$out/$1.$round.csv")
}
for ((round = 1; round <= ${ROUNDS:-3}; round++)); do
	turn ours
	for p; do turn "$p"; done
done
turn ours
sed -n 's/^# *\(.*\)$/\1  /p' "$out/ours.1.csv"
echo "$(gcc --version | head -1)$(command -v mpirun.openmpi >/dev/null && echo ", $(mpirun.openmpi --version | head -1)")$(
	command -v mpichversion >/dev/null && echo ", MPICH $(mpichversion | sed -n 's/^MPICH Version:[[:space:]]*//p')")  "
echo "each cell: median (min–max) of $REPS repeats in each of ${ROUNDS:-3} rounds (ours one more), by turns"
echo
"$build/pgasbench" merge "${columns[@]}"
