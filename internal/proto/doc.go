// Package proto carries out one-sided operations: it knows how each member's exposed memory is reached and
// moves the bytes. Above it nobody names a transport; below it nobody knows what a window is.
//
// # Terms
//
//   - Exposure: memory that each member of a group exposes to the others, and how this rank reaches every part.
//   - Mapped: the part is in this process's address space; operations are loads, stores and CPU atomics.
//   - Path: how an operation travelled, for statistics: mapped, kernel, inline, bounce, bypass, zero-copy, superpipe, lease, message,
//     gather, atomic.
//   - Small, large: less than a threshold, or not; the first may go through a bounce slot, the second is registered or piped.
//   - Flight: a large transfer in a pipe: as in package flight, which carries it out.
//   - Piece, transfer, kept, held back, poller: as in package nic, which posts, polls, mends connections and waits.
//
// # Life of a put through the NIC
//
// The payload is copied inline, or into a slot of the bounce pool, so that the caller's buffer is free at
// once; the operation is posted and counted against its target. Small puts of PutNB are held back. Whoever waits for anything
// polls. Flush waits until nothing is counted against the target.
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
// a put that a flush follows: learned by call site) or costs less than the copy. From some size on a buffer that is registered already needs no such
// count. A large one asks package selector, by what is
// registered, how often the memory has been seen, and what this NIC costs. Once there have been some such
// transfers that is measured by package prices, which is lent the NIC for that (gauge.go), by the first rank of each node, which tells the others (tell.go). What transfers of a kind have
// really cost is noted there, that of a put with the flush that follows it, and counts more than the estimates. Eager and Bulk of
// Config force either choice.
//
// A direct transfer has regmgr register the memory, or find it registered; the NIC reads or writes it, and the reference
// is given back by the poller before the piece is settled. A piped one is a flight: its chunks are copied by whoever
// polls, and each is a piece, so that a mended connection carries it again. A put's handle is done when all is copied; the
// flight counts against its target until all has arrived. A hybrid is a flight whose tail a helper registers meanwhile;
// where it would have no core of its own there is none. What
// may lie on a stack is neither registered nor piped; it goes through slots.
//
// What goes by message to the target's CPU with a payload (an accumulate of several words, a put to bare memory) asks too: past the copy the NIC gathers each
// message from a header and the user's memory. That is lent until the answer is here, since a message may have to be sent again.
//
// # Memory larger than what may be registered
//
// What the NIC cannot register as a whole for want of room is registered in buckets, on demand, by the account that package
// hose keeps: a Remote is hosed then. A put or get takes a firehose for each bucket before it is posted and lets go of it
// when the operation is complete; a miss is a message to the owner, in which a small put travels along, and during which a long
// one is copied. The user's side is
// registered, copied or piped as for other memory: a direct transfer is an operation for each bucket, a piped one a flight for each
// claim of buckets, whose first chunks are copied while they are asked for. Whoever chooses is told how many moves that takes. What the owner
// cannot register goes by message to its CPU, or through a lease where that costs less, and so do all atomics on such memory. Long transfers ask for many buckets
// in one message, ahead of their use. Under the policy Predictive the uses of buckets are told to regmgr's helper, which asks
// for them before the next use.
//
// Without a limit that is known beforehand there is no budget and there are no buckets. What the NIC then refuses, or what is in
// buckets while a member has no budget, is bare: every member reaches it by messages and leases. The cards of the members say who has
// what, so all do the same.
//
// # Leases
//
// What goes through leases of workspace package flight carries out, one lease after the other. What is told no lease now travels another way for
// a while.
//
// A transfer of many runs that goes this way is cut into lots: runs to one member, as many as one lease carries and one message tells the
// layout of. A lot is one flight, gathered from the runs at one end and scattered to them at the other. Too little for that goes run by
// run: the writes return when they are copied, and the reads, by message or through buckets that are asked for, are under way together, too.
//
// # Life of a connection
//
// Package nic makes it, and makes it anew when it has broken. What is posted again then keeps its registration and its firehose
// until it is over. Two ranks one of which could not tell the other about moves give up the firehoses between them: messages do
// from then on. With a rank that cannot be reached nothing goes on in pipes and leases either (client.GaveUp).
//
// # Invariants
//
//   - P1: the path of atomics is one for a whole Exposure, agreed by all members: CPU where all map each other,
//     else NIC for everybody, the owner included. Two paths on one word lose updates.
//   - P2: what an operation was lent, a registration or a firehose, is given back when the NIC has done with it (package nic: N1).
//   - P3: nothing is posted that the NICs would answer by breaking the connection: bounds, alignment and keys are checked.
//
// Who waits how long, who is told of errors, and what is posted again, N2 to N4 of package nic say; whose memory is whose while large transfers are
// under way, X1 and X3 of package flight.
//
// # Lock order
//
//	nic's poll   (at most one poller; try-lock only)
//	  errand's Memories.mu  (for reading, while a handler runs)
//	    flight's mu
//	      nic's mu (alone where a hit takes piece and firehose together)
//	    regmgr's aheader.mu
//	  gauge.mu, prices's Habits.mu (short; nothing is taken under them)
//	  lending.mu (a registration is made under it)
//	  those of package hose  (nothing but regmgr's budget is taken under them)
//
// # Concurrency
//
// Everything but Expose, which is collective, may be called by any goroutine at any time.
package proto
