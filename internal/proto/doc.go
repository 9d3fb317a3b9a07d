// Package proto carries out one-sided operations: it knows how each member's exposed memory is reached and
// moves the bytes. Above it nobody names a transport; below it nobody knows what a window is.
//
// # Terms
//
//   - Exposure: memory that each member of a group exposes to the others, and how this rank reaches every part.
//   - Mapped: the part is in this process's address space; operations are loads, stores and CPU atomics.
//   - Path: how an operation travelled, for statistics: mapped, inline, bounce, bypass, zero-copy, superpipe, lease, message, atomic.
//   - Small, large: less than a threshold, or not; the first may go through a bounce slot, the second is registered or piped.
//   - Flight: a large transfer in a pipe of package superpipe.
//   - Piece, transfer: one operation that the NIC has not finished, and what a handle waits for: as in package inflight.
//
// # Life of a put through the NIC
//
// The payload is copied inline, or into a slot of the bounce pool, so that the caller's buffer is free at
// once; the operation is posted and counted against its target. Small puts of PutNB are held until there are 64 or the
// rank does anything else with the NIC, so that they cross into it together. Whoever waits for anything polls: it takes
// the poller's place if that is free, hands completions out, and steps its scheduler otherwise. Flush waits until
// nothing is counted against the target.
//
// # Life of an atomic
//
// One that the NIC has is posted, and its old value comes back in the piece's own word; what the NIC lacks is asked of the target's CPU,
// by an active message (package errand). The poller copies the value of a non-blocking one to its place. The only one in flight sets out at once;
// those behind it are held as small puts are. Atomics at many places go to each owner as a list in messages, or as a chain.
//
// # How the way is chosen
//
// Each put and get of the user's memory asks choose. A small one goes inline or through a slot, unless package eager finds
// that its buffer is used so often that registering it pays, and that its completion is waited for anyway (a get, a handle,
// a put that a flush follows: learned by call site) or costs less than the copy. A large one asks package selector, by what is
// registered, how often the memory has been seen, and what this NIC costs. Once there have been some such
// transfers that is measured by package prices, which is lent the NIC for that (gauge.go). What transfers of a kind have
// really cost is noted there, that of a put with the flush that follows it, and counts more than the estimates. Eager and Bulk of
// Config force either choice.
//
// A direct transfer has regmgr register the memory, or find it registered; the NIC reads or writes it, and the reference
// is given back by the poller before the piece is settled. A piped one is a flight: its chunks are copied by whoever
// polls, and each is a piece, so that a mended connection carries it again. A put's handle is done when all is copied; the
// flight counts against its target until all has arrived. A hybrid is a flight whose tail a helper registers meanwhile. What
// may lie on a stack is neither registered nor piped; it goes through slots.
//
// # Memory larger than what may be registered
//
// What the NIC cannot register as a whole for want of room is registered in buckets, on demand, by the account that package
// hose keeps: a Remote is hosed then. A put or get takes a firehose for each bucket before it is posted and lets go of it
// when the operation is complete; a miss is a message to the owner, in which a small put travels along, and during which a long
// one is copied. The user's side is
// registered or copied as for other memory, but never piped: a direct transfer is an operation for each bucket. What the owner
// cannot register goes by message to its CPU, or through a lease where that costs less, and so do all atomics on such memory. Long transfers ask for many buckets
// in one message, ahead of their use. Under the policy Predictive the uses of buckets are told to regmgr's helper, which asks
// for them before the next use.
//
// Without a limit that is known beforehand there is no budget and there are no buckets. What the NIC then refuses, or what is in
// buckets while a member has no budget, is bare: every member reaches it by messages and leases. The cards of the members say who has
// what, so all do the same.
//
// # Life of a transfer through a lease
//
// A put sends an offer (askLease); the target's handler leases it workspace if there is some now. The put is a flight from the
// beginning, so its first chunk is copied meanwhile, and it goes on when the grant is there. A get leases this rank's own workspace to the
// owner (askPull), whose handler begins the flight. The poller of who receives copies behind the NIC and acknowledges chunks by writes.
// Neither is reported by a NIC that keeps data in order, so while there are leases attend looks instead of sleeping. When the flight is
// over its rank returns the lease (askReturn), and may use the place of the acknowledgements again when that is answered. What is
// told no lease now travels another way.
//
// A transfer of many runs that goes this way is cut into lots: runs to one member, as many as one lease carries and one message tells the
// layout of. A lot is one flight, gathered from the runs at one end and scattered to them at the other. Too little for that goes run by run.
//
// # Life of a connection
//
// The first operation to a rank connects. An error of any operation breaks the connection; a mender then waits until
// all that was posted on it is reported, connects anew, and posts again what was flushed. Others wait for it meanwhile.
// What is posted again keeps its registration and its firehose until it is over. Active messages that were flushed are
// sent again too, and performed once (package am). Two ranks one of which could not tell the other about moves give up
// the firehoses between them: messages do from then on.
//
// # Invariants
//
//   - P1: the path of atomics is one for a whole Exposure, agreed by all members: CPU where all map each other,
//     else NIC for everybody, the owner included. Two paths on one word lose updates.
//   - P2: a piece's buffers belong to the NIC until its completion was polled, whoever has stopped waiting.
//   - P3: an asynchronous error is reported once, by the first Flush of its target that follows; that of a put or atomic with a
//     handle by whoever asks first, the handle or the Flush.
//   - P4: a rank known to be gone ends every wait that needs it within one slow step of the waiter.
//   - P5: what was flushed is posted again, at most three times, in its order and before anything newer; an atomic whose
//     effect is unknown is not. One break flushes an operation once, so what meets no more than three breaks is done. A
//     write that was done and not acknowledged is then done again, which only somebody can notice who has seen it before
//     its flush and has changed the memory since.
//   - P6: nothing is posted that the NICs would answer by breaking the connection: bounds, alignment and keys are checked.
//   - P7: but for flights with leases, when a poller lets go, each flight waits for something that the NIC will report, so everybody may sleep.
//   - P8: a lease is nobody else's before its origin has nothing in flight into it, nor is the place of its acknowledgements
//     before the target has none on its way: either may be posted again after it was done (P5). So the origin returns leases, and
//     asks again until the target agrees.
//
// # Lock order
//
//	poll         (at most one poller; try-lock only)
//	  later.mu   (small puts and atomics that are held; not held while they are posted)
//	    nic.mu   (the table of pieces and transfers, slots, endpoints, flights, the firehoses held; never held across a wait)
//	      superpipe's Origin.mu, Pipe.mu
//	  superpipe's Pipe.stepping, lease.mu (chunks and acknowledgements are posted under them, which takes later.mu and nic.mu)
//	  gauge.mu, room.mu, prices's Habits.mu (short; nothing is taken under them)
//	  errand's Memories.mu  (for reading, while a handler runs)
//	      regmgr's aheader.mu, superpipe's lease.mu, nic.mu
//	  those of package hose  (nothing but regmgr's budget is taken under them)
//
// # Concurrency
//
// Everything but Expose, which is collective, may be called by any goroutine at any time.
package proto
