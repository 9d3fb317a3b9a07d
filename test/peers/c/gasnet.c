/* GASNet-EX, smp conduit. A put or get is implicit and non-blocking, and gex_NBI_Wait is the flush, which also looks for messages once;
 * with -DBLOCKING each blocks, and a flush has nothing left to do but to keep the compiler from moving stores, so that it is to be
 * compared with ordered stores. */
#undef _GNU_SOURCE
#include "peer.h"
#include <gasnetex.h>
#include <gasnet_coll.h>
#include <gasnet_ratomic.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OK(call)                                                                                    \
	do {                                                                                        \
		int rc_ = (call);                                                                   \
		if (rc_ != GASNET_OK) {                                                             \
			fprintf(stderr, "%s: %s\n", #call, gasnet_ErrorDesc(rc_));                  \
			gasnet_exit(1);                                                             \
		}                                                                                   \
	} while (0)
enum { MOST = 64 };
static gex_TM_t team;
static gex_AD_t words_ad;
static char *part[MOST], *room, *room_end; /* part: each process's address of its segment, as its owner sees it */
static int rank, size;

static inline int peer_rank(void) { return rank; }
static inline int peer_size(void) { return size; }
static inline char *peer_base(void) { return part[rank]; }
static inline void peer_barrier(void) { gex_Event_Wait(gex_Coll_BarrierNB(team, 0)); }
static inline void peer_progress(void) { gasnet_AMPoll(); }
static inline uint64_t peer_fetch_add(int t, size_t at, uint64_t v)
{
	uint64_t old;
	gex_Event_Wait(gex_AD_OpNB_U64(words_ad, &old, t, part[t] + at, GEX_OP_FADD, v, 0, 0));
	return old;
}
static inline uint64_t peer_compare_swap(int t, size_t at, uint64_t old, uint64_t v)
{
	uint64_t seen;
	gex_Event_Wait(gex_AD_OpNB_U64(words_ad, &seen, t, part[t] + at, GEX_OP_FCAS, old, v, 0));
	return seen;
}
#ifdef BLOCKING
#define NAME "GASNet-EX, blocking"
static inline void peer_flush(int target) { __asm__ volatile("" ::: "memory"); (void)target; }
static inline void peer_flush_all(void) { __asm__ volatile("" ::: "memory"); }
static inline void peer_put(int t, size_t at, const void *src, size_t n) { gex_RMA_PutBlocking(team, t, part[t] + at, (void *)src, n, 0); }
static inline void peer_get(int t, size_t at, void *dst, size_t n) { gex_RMA_GetBlocking(team, dst, t, part[t] + at, n, 0); }
static inline void peer_put8(int t, size_t at, const uint64_t *src) { gex_RMA_PutBlocking(team, t, part[t] + at, (void *)src, 8, 0); }
static inline void peer_fetch_add_nb(int t, size_t at, const uint64_t *v, uint64_t *old) { *old = peer_fetch_add(t, at, *v); }
static inline void peer_xor(int t, size_t at, const uint64_t *v)
{
	gex_Event_Wait(gex_AD_OpNB_U64(words_ad, NULL, t, part[t] + at, GEX_OP_XOR, *v, 0, 0));
}
#else
#define NAME "GASNet-EX, implicit"
static inline void peer_flush(int target)
{
	(void)target;
	gex_NBI_Wait(GEX_EC_ALL, 0);
}
static inline void peer_flush_all(void) { gex_NBI_Wait(GEX_EC_ALL, 0); }
static inline void peer_put(int t, size_t at, const void *src, size_t n)
{
	(void)gex_RMA_PutNBI(team, t, part[t] + at, (void *)src, n, GEX_EVENT_DEFER, 0);
}
static inline void peer_get(int t, size_t at, void *dst, size_t n) { (void)gex_RMA_GetNBI(team, dst, t, part[t] + at, n, 0); }
static inline void peer_put8(int t, size_t at, const uint64_t *src)
{
	(void)gex_RMA_PutNBI(team, t, part[t] + at, (void *)src, 8, GEX_EVENT_DEFER, 0);
}
static inline void peer_fetch_add_nb(int t, size_t at, const uint64_t *v, uint64_t *old)
{
	(void)gex_AD_OpNBI_U64(words_ad, old, t, part[t] + at, GEX_OP_FADD, *v, 0, 0);
}
static inline void peer_xor(int t, size_t at, const uint64_t *v)
{
	(void)gex_AD_OpNBI_U64(words_ad, NULL, t, part[t] + at, GEX_OP_XOR, *v, 0, 0);
}
#endif
static inline uint64_t peer_get8(int t, size_t at)
{
	uint64_t v;
	gex_RMA_GetBlocking(team, &v, t, part[t] + at, 8, 0);
	return v;
}

/* There are broadcasts and reductions, but no gather or exchange among all: those rows are left out. */
#define PEER_COLLECTIVES 2
static double *peer_room(size_t n)
{
	size_t bytes = (n * sizeof(double) + 4095) & ~(size_t)4095;
	if (room + bytes > room_end)
		fprintf(stderr, "the segment is too small\n"), gasnet_exit(1);
	room += bytes;
	return memset(room - bytes, 0, bytes);
}
static inline void peer_allreduce(double *dst, const double *src, size_t n, long round)
{
	(void)round;
	gex_Event_Wait(gex_Coll_ReduceToAllNB(team, dst, src, GEX_DT_DBL, sizeof(double), n, GEX_OP_ADD, NULL, NULL, 0));
}
static inline void peer_broadcast(double *dst, const double *src, size_t n, int root, long round)
{
	(void)round;
	gex_Event_Wait(gex_Coll_BroadcastNB(team, root, root == rank ? (void *)src : dst, src, n * sizeof(double), 0));
}
static void peer_allgather(double *dst, const double *src, size_t n, long round) { (void)dst, (void)src, (void)n, (void)round, abort(); }
static void peer_alltoall(double *dst, const double *src, size_t n, long round) { (void)dst, (void)src, (void)n, (void)round, abort(); }

#include "loops.h"

int main(int argc, char **argv)
{
	gex_Client_t client;
	gex_EP_t ep;
	gex_Segment_t segment;
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	OK(gex_Client_Init(&client, &ep, &team, "gex", &argc, &argv, 0));
	rank = gex_TM_QueryRank(team), size = gex_TM_QuerySize(team);
	if (size > MOST)
		fprintf(stderr, "at most %d processes\n", MOST), gasnet_exit(2);
	cpu_set_t core;
	CPU_ZERO(&core);
	CPU_SET(rank % cores, &core);
	sched_setaffinity(0, sizeof core, &core);
	size_t rooms = (size_t)4 * size * ((1 << 20) + (8 << 10) + 8) + (64 << 10), bytes = (PART + rooms + 65535) & ~(size_t)65535;
	OK(gex_Segment_Attach(&segment, team, bytes));
	for (int i = 0; i < size; i++) {
		void *owner, *local;
		uintptr_t have;
		gex_Event_Wait(gex_EP_QueryBoundSegmentNB(team, i, &owner, &local, &have, 0));
		part[i] = owner;
	}
	room = part[rank] + PART, room_end = part[rank] + bytes;
	gex_AD_Create(&words_ad, team, GEX_DT_U64, GEX_OP_FADD | GEX_OP_FCAS | GEX_OP_XOR, 0);
	int failed = run_all(NAME);
	peer_barrier();
	gex_AD_Destroy(words_ad);
	fflush(stdout);
	gasnet_exit(failed);
	return failed;
}
