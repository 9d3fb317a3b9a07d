/* MPI one-sided communication: MPI_Put, MPI_Get and atomics in a passive epoch, each completed by MPI_Win_flush. With
 * SHARED=1 in the environment the window comes from MPI_Win_allocate_shared. */
#include "peer.h"
#include <mpi.h>
#include <stdlib.h>

static MPI_Win win;
static char *part;
static int rank, size;

static inline int peer_rank(void) { return rank; }
static inline int peer_size(void) { return size; }
static inline char *peer_base(void) { return part; }
static inline void peer_barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }
static inline void peer_progress(void)
{
	int flag;
	MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	MPI_Win_sync(win);
}
static inline void peer_flush(int target) { MPI_Win_flush(target, win); }
static inline void peer_flush_all(void) { MPI_Win_flush_all(win); }
static inline void peer_put(int t, size_t at, const void *src, size_t n)
{
	MPI_Put(src, (int)n, MPI_BYTE, t, (MPI_Aint)at, (int)n, MPI_BYTE, win);
}
static inline void peer_get(int t, size_t at, void *dst, size_t n)
{
	MPI_Get(dst, (int)n, MPI_BYTE, t, (MPI_Aint)at, (int)n, MPI_BYTE, win);
}
static inline void peer_put8(int t, size_t at, const uint64_t *src)
{
	MPI_Put(src, 1, MPI_UINT64_T, t, (MPI_Aint)at, 1, MPI_UINT64_T, win);
}
static inline uint64_t peer_get8(int t, size_t at)
{
	uint64_t v;
	MPI_Get(&v, 1, MPI_UINT64_T, t, (MPI_Aint)at, 1, MPI_UINT64_T, win);
	MPI_Win_flush(t, win);
	return v;
}
static inline uint64_t peer_fetch_add(int t, size_t at, uint64_t v)
{
	uint64_t old;
	MPI_Fetch_and_op(&v, &old, MPI_UINT64_T, t, (MPI_Aint)at, MPI_SUM, win);
	MPI_Win_flush(t, win);
	return old;
}
static inline void peer_fetch_add_nb(int t, size_t at, const uint64_t *v, uint64_t *old)
{
	MPI_Fetch_and_op(v, old, MPI_UINT64_T, t, (MPI_Aint)at, MPI_SUM, win);
}
static inline uint64_t peer_compare_swap(int t, size_t at, uint64_t old, uint64_t v)
{
	uint64_t seen;
	MPI_Compare_and_swap(&v, &old, &seen, MPI_UINT64_T, t, (MPI_Aint)at, win);
	MPI_Win_flush(t, win);
	return seen;
}
static inline void peer_xor(int t, size_t at, const uint64_t *v)
{
	MPI_Accumulate(v, 1, MPI_UINT64_T, t, (MPI_Aint)at, 1, MPI_UINT64_T, MPI_BXOR, win);
}

#define PEER_COLLECTIVES 4
static inline double *peer_room(size_t n) { return calloc(n, sizeof(double)); }
static inline void peer_allreduce(double *dst, const double *src, size_t n, long round)
{
	(void)round;
	MPI_Allreduce(src, dst, (int)n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
static inline void peer_broadcast(double *dst, const double *src, size_t n, int root, long round)
{
	(void)round;
	MPI_Bcast(root == rank ? (double *)src : dst, (int)n, MPI_DOUBLE, root, MPI_COMM_WORLD);
}
static inline void peer_allgather(double *dst, const double *src, size_t n, long round)
{
	(void)round;
	MPI_Allgather(src, (int)n, MPI_DOUBLE, dst, (int)n, MPI_DOUBLE, MPI_COMM_WORLD);
}
static inline void peer_alltoall(double *dst, const double *src, size_t n, long round)
{
	(void)round;
	MPI_Alltoall(src, (int)n, MPI_DOUBLE, dst, (int)n, MPI_DOUBLE, MPI_COMM_WORLD);
}

#include "loops.h"

int main(int argc, char **argv)
{
	const char *shared = getenv("SHARED");
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (shared && *shared == '1')
		MPI_Win_allocate_shared(PART, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &win);
	else
		MPI_Win_allocate(PART, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &win);
	MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
	int failed = run_all(shared && *shared == '1' ? "MPI RMA, shared window" : "MPI RMA");
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
	MPI_Finalize();
	return failed;
}
