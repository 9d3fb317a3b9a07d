/* What a peer library must offer to be measured, and the program that measures it. A peer's source defines the functions
 * below as static inline and then includes loops.h, so that what the peer inlines for its users is inlined here.
 *
 *   int       peer_rank(void), peer_size(void)
 *   char     *peer_base(void)                          this process's part of the exposed memory, PART bytes
 *   void      peer_barrier(void)
 *   void      peer_progress(void)                      called while waiting for another's store
 *   void      peer_flush(int target), peer_flush_all(void)
 *   void      peer_put(int target, size_t at, const void *src, size_t bytes)   begins; complete after a flush
 *   void      peer_get(int target, size_t at, void *dst, size_t bytes)        begins; complete after a flush
 *   void      peer_put8(int target, size_t at, const uint64_t *src)           begins; complete after a flush
 *   uint64_t  peer_get8(int target, size_t at)         blocking
 *   uint64_t  peer_fetch_add(int target, size_t at, uint64_t v)
 *   void      peer_fetch_add_nb(int target, size_t at, const uint64_t *v, uint64_t *old)   begins; complete after a flush
 *   uint64_t  peer_compare_swap(int target, size_t at, uint64_t old, uint64_t v)
 *   void      peer_xor(int target, size_t at, const uint64_t *v)              complete after a flush
 *
 * A library of collectives defines PEER_COLLECTIVES, which is how many of the four below it has, the first ones, and all of these; n is
 * what each process gives, to each other one in an exchange of all with all. round counts the calls from 0:
 *
 *   double   *peer_room(size_t n)                      zeroed memory that collectives can use, the same on all processes; never freed
 *   void      peer_allreduce(double *dst, const double *src, size_t n, long round)
 *   void      peer_broadcast(double *dst, const double *src, size_t n, int root, long round)   root's dst does not count
 *   void      peer_allgather(double *dst, const double *src, size_t n, long round)
 *   void      peer_alltoall(double *dst, const double *src, size_t n, long round)
 */
#ifndef PEER_H
#define PEER_H
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>

#define SPAN ((size_t)64 << 20) /* of bandwidth rows, and of the GUPS table over both processes */
#define WORDS SPAN              /* the 8-byte rows' memory lies behind it */
#define TABLE 4096              /* words, a cache line apart */
#define HOT (WORDS + TABLE * 64)
#define FLAGS (HOT + 4096)
#define PART (SPAN + (4u << 20))
#endif
