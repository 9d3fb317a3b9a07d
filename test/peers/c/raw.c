/* Plain loads, stores and atomics on memory that two processes share: what the machine gives. A flush is a full fence;
 * with -DORDER it only keeps stores in order, which costs nothing where total store order holds. */
#include "peer.h"
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef ORDER
#define FLUSH memory_order_release
#define NAME "plain C, ordered stores"
#else
#define FLUSH memory_order_seq_cst
#define NAME "plain C, full fence"
#endif
enum { MOST = 16 };

static struct meeting {
	_Alignas(128) atomic_int arrived;
	_Alignas(128) atomic_int turn;
} *meeting;
static char *part[MOST];
static int rank, size, crowded;

static inline int peer_rank(void) { return rank; }
static inline int peer_size(void) { return size; }
static inline char *peer_base(void) { return part[rank]; }
static inline void peer_progress(void) {}
static inline void peer_flush(int target) { (void)target, atomic_thread_fence(FLUSH); }
static inline void peer_flush_all(void) { atomic_thread_fence(FLUSH); }
static inline void peer_put(int t, size_t at, const void *src, size_t n) { memcpy(part[t] + at, src, n); }
static inline void peer_get(int t, size_t at, void *dst, size_t n) { memcpy(dst, part[t] + at, n); }
static inline void peer_put8(int t, size_t at, const uint64_t *src) { *(volatile uint64_t *)(part[t] + at) = *src; }
static inline uint64_t peer_get8(int t, size_t at) { return *(volatile uint64_t *)(part[t] + at); }
static inline _Atomic uint64_t *word(int t, size_t at) { return (_Atomic uint64_t *)(part[t] + at); }
static inline uint64_t peer_fetch_add(int t, size_t at, uint64_t v) { return atomic_fetch_add(word(t, at), v); }
static inline void peer_fetch_add_nb(int t, size_t at, const uint64_t *v, uint64_t *old) { *old = atomic_fetch_add(word(t, at), *v); }
static inline uint64_t peer_compare_swap(int t, size_t at, uint64_t old, uint64_t v)
{
	atomic_compare_exchange_strong(word(t, at), &old, v);
	return old;
}
static inline void peer_xor(int t, size_t at, const uint64_t *v)
{
	atomic_fetch_xor_explicit(word(t, at), *v, memory_order_relaxed);
}
static inline void peer_barrier(void)
{
	int turn = atomic_load(&meeting->turn), spins = 0;
	if (atomic_fetch_add(&meeting->arrived, 1) == size - 1) {
		atomic_store(&meeting->arrived, 0);
		atomic_store(&meeting->turn, turn + 1);
		return;
	}
	while (atomic_load_explicit(&meeting->turn, memory_order_acquire) == turn)
		if (crowded && ++spins % 100 == 0)
			sched_yield();
		else
			__builtin_ia32_pause();
}

#include "loops.h"

int main(int argc, char **argv)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	int status, failed = 0;
	size = argc > 1 ? atoi(argv[1]) : 2;
	if (size < 1 || size > MOST)
		return fprintf(stderr, "usage: %s [processes, 1 to %d]\n", argv[0], MOST), 2;
	crowded = size > cores;
	meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < size; i++) {
		part[i] = mmap(NULL, PART, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (meeting == MAP_FAILED || part[i] == MAP_FAILED)
			return perror("shared memory"), 2;
	}
	for (rank = size - 1; rank > 0; rank--)
		if (fork() == 0)
			break;
	cpu_set_t core;
	CPU_ZERO(&core);
	CPU_SET(rank % cores, &core);
	sched_setaffinity(0, sizeof core, &core);
	failed = run_all(NAME);
	while (rank == 0 && wait(&status) > 0)
		failed |= status != 0;
	return failed;
}
