// Package eager decides how small puts and gets travel: inline in the operation, through a bounce slot, or past it,
// straight from or into the user's buffer, where that is used so often that registering it pays. The method is that of
// M. J. Rashti and A. Afsahi, "Exploiting application buffer reuse to improve MPI small message transfer protocols over
// RDMA-enabled networks" (Cluster Computing, 2011).
//
// # Terms
//
//   - Bounce: the payload is copied into (a get: out of) a slot of registered memory. It costs C_m for m bytes.
//   - Bypass: the NIC takes the payload from the user's buffer. It costs R_m once, and V, the lookups and all else that a transfer
//     through a slot does not do, each time.
//   - Break-even count: the least n for which n uses repay the registration, n > R_m/(C_m - V).
//   - Frequent: a buffer whose count has reached the threshold, a percentage of the break-even count of the size at hand.
//   - Waited: the completion of the transfer is waited for anyway.
//
// # Life of a put
//
// Put asks whether the payload goes inline. If not, and if the bypass could pay at this size, the table counts a use of
// the buffer's address and says whether it is frequent. Decide, a pure function, weighs the copy against lookup and, for
// a put that nobody waits for, the wait for the NIC. The caller does as told; for Bypass it asks the registration cache,
// which registers on a miss.
//
// Messages that carry a payload are asked about like puts (UsedSent, SendOf): past the copy the NIC gathers them from the header's buffer and
// the user's. The table counts one buffer whatever it is used for; what a use saves differs, so the thresholds do.
//
// Whether a put is waited for is known for one with a handle, and learned by call site otherwise: one that a flush
// follows at once was waited for.
//
// # Invariants
//
//   - E1: a choice never changes what a transfer does, only how long it takes.
//   - E2: the table's key is the address alone; the count is compared with the threshold of the current size.
//   - E3: the table grows only while chains have not begun or at least 20 % of its buffers are frequent. Known buffers go
//     on counting, so growth resumes by itself.
//     While it does not grow, buffers that it does not know are refused by a few bits near the core, without a look at the table, and
//     without a lock.
//   - E4: what a use saves is the less of two cases: all that it touches is in the caches, or neither the slot nor the table's part is. Sizes at
//     which a frequent use would save less than asking the table costs, in either case, have no threshold, and are not asked about.
//     Of sizes at which one use in some is told, that cost is such a part (Config.Seldom), and memory that is known to be registered goes past the slots
//     without the table (Pays).
//   - E5: nothing here registers memory, and nothing allocates but New, Measure and a table some line of which is full.
//
// # Concurrency
//
// A Chooser and a Table belong to a rank's NIC path; its lock guards them, but for Chooser.Refused, which anybody may ask.
// Everything else is pure.
//
// # Limits
//
// Addresses have at most 48 bits; others are never frequent. Counts stay at 32767, and break-even counts above that are
// none. Nothing is ever taken out of the table: memory that is freed and used anew for another buffer goes on counting.
package eager
