/* OpenSHMEM: puts, gets and atomics on the symmetric heap, each completed by shmem_quiet. */
#include "peer.h"
#include <shmem.h>
#include <stdio.h>
#include <unistd.h>

static char *part;
static int rank, size;

static inline int peer_rank(void) { return rank; }
static inline int peer_size(void) { return size; }
static inline char *peer_base(void) { return part; }
static inline void peer_barrier(void) { shmem_barrier_all(); }
static inline void peer_progress(void) { (void)shmem_test((int *)part, SHMEM_CMP_NE, 0); }
static inline void peer_flush(int target)
{
	(void)target;
	shmem_quiet();
}
static inline void peer_flush_all(void) { shmem_quiet(); }
static inline void peer_put(int t, size_t at, const void *src, size_t n) { shmem_putmem_nbi(part + at, src, n, t); }
static inline void peer_get(int t, size_t at, void *dst, size_t n) { shmem_getmem_nbi(dst, part + at, n, t); }
static inline void peer_put8(int t, size_t at, const uint64_t *src) { shmem_uint64_p((uint64_t *)(part + at), *src, t); }
static inline uint64_t peer_get8(int t, size_t at) { return shmem_uint64_g((uint64_t *)(part + at), t); }
static inline uint64_t peer_fetch_add(int t, size_t at, uint64_t v) { return shmem_ulong_atomic_fetch_add((unsigned long *)(part + at), v, t); }
static inline void peer_fetch_add_nb(int t, size_t at, const uint64_t *v, uint64_t *old) { *old = peer_fetch_add(t, at, *v); }
static inline uint64_t peer_compare_swap(int t, size_t at, uint64_t old, uint64_t v)
{
	return shmem_ulong_atomic_compare_swap((unsigned long *)(part + at), old, v, t);
}
static inline void peer_xor(int t, size_t at, const uint64_t *v) { shmem_uint64_atomic_xor((uint64_t *)(part + at), *v, t); }

/* OpenSHMEM 1.4, section 9.9: a pSync array may be used again when all have left the call; calls by turns in three of them, each of which waits for
 * every other process at least every other call, see to that. */
#define PEER_COLLECTIVES 4
#define TURNS 3
static long sync_words[TURNS][SHMEM_ALLTOALL_SYNC_SIZE + SHMEM_REDUCE_SYNC_SIZE + SHMEM_BCAST_SYNC_SIZE + SHMEM_COLLECT_SYNC_SIZE];
static double work[TURNS][(1 << 17) / 2 + SHMEM_REDUCE_MIN_WRKDATA_SIZE + 1];
static inline double *peer_room(size_t n)
{
	double *room = shmem_malloc(n * sizeof *room);
	for (size_t i = 0; i < n; i++)
		room[i] = 0;
	for (int t = 0; t < TURNS; t++)
		for (size_t i = 0; i < sizeof sync_words[t] / sizeof *sync_words[t]; i++)
			sync_words[t][i] = SHMEM_SYNC_VALUE;
	shmem_barrier_all();
	return room;
}
static inline void peer_allreduce(double *dst, const double *src, size_t n, long round)
{
	shmem_double_sum_to_all(dst, (double *)src, (int)n, 0, 0, size, work[round % TURNS], sync_words[round % TURNS]);
}
static inline void peer_broadcast(double *dst, const double *src, size_t n, int root, long round)
{
	shmem_broadcast64(dst, src, n, root, 0, 0, size, sync_words[round % TURNS]);
}
static inline void peer_allgather(double *dst, const double *src, size_t n, long round)
{
	shmem_fcollect64(dst, src, n, 0, 0, size, sync_words[round % TURNS]);
}
static inline void peer_alltoall(double *dst, const double *src, size_t n, long round)
{
	shmem_alltoall64(dst, src, n, 0, 0, size, sync_words[round % TURNS]);
}

#include "loops.h"

int main(void)
{
	shmem_init();
	rank = shmem_my_pe();
	size = shmem_n_pes();
	part = shmem_align(4096, PART);
	if (part == NULL) {
		fprintf(stderr, "the symmetric heap has no %zu bytes: raise SHMEM_SYMMETRIC_SIZE\n", (size_t)PART);
		return 1;
	}
	int failed = run_all("OpenSHMEM");
	shmem_barrier_all();
	fflush(stdout);
	_exit(failed); /* Open MPI 4.1.4 faults in shmem_finalize */
}
