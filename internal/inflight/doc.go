// Package inflight keeps account of what a NIC has in flight for one rank: the operations, the memory that is lent to them, and
// the transfers that they are parts of, which handles wait for. It posts nothing, waits for nothing and has no lock: it is the
// table that the engine and its poller work on, and says by its return values what is left to them.
//
// # Terms
//
//   - Piece: one operation, by number, with room for the operation itself and a buffer of registered memory: a slot of the bounce
//     pool, or some scratch memory.
//   - Aside: of a few pieces more, which have no buffer and are for operations that somebody may wait for who has the others.
//   - Transfer: what a handle is for: one piece, or several, or something else that ends by PartDone, as a pipe. By number.
//   - Generation: of a transfer's number; it grows when the transfer is over. A handle is a number and a generation.
//   - Part: what a transfer waits for the end of. While pieces are being added one part keeps it open that is none.
//   - Mark: what few pieces have and who ends them must look after, a bit each. These are:
//   - Kept: a piece whose result its waiter takes from the buffer. Piped: one that somebody has his own name for (Inner).
//   - Awaited: a kept piece without a transfer, for who waits for nothing else as soon as he has posted it: it says itself that it is over.
//   - Lent: a piece to which its owner has lent something that he gets back when it ends. Tied: the same, under the lock.
//   - Shows: a piece by which the target learns that what was sent there before has arrived.
//   - Told: a transfer whose failure a flush tells if nobody has waited for its handle.
//   - Lock: the owner's. What needs it says so.
//
// # Life of a piece
//
// TryAcquire takes it. Its owner fills its buffer, writes its operation to Op, adds it to a transfer (Sole, Join) if anybody waits
// for it, and posts it. From there on it is the poller's, who calls Settle when the NIC has reported it, or posts it once more
// from Op where a connection broke. Settle frees it, but for one that is kept or awaited: its waiter does that (Free). Most pieces have no marks, or are
// only awaited, and end well: these the poller ends without the lock, by GiveBack or End. One that was never
// posted is freed and its part of the transfer ended by who has acquired it.
//
// # Life of a transfer
//
// TryBegin opens it with one part. If that is a piece, Sole says which; else pieces Join, and PartDone ends the first part when there
// are all. With its last part the transfer is over: the generation grows, after the failure, if there was one, has been put where
// Failure finds it. The number may be another transfer's at once.
//
// # Invariants
//
//   - F1: a piece is free or somebody's, and so is a slot; nobody has either twice.
//   - F2: the buffers of two pieces never overlap, and a piece's stays where it is until it is freed.
//   - F3: a failure is told once: by Failure, whose generation must be the transfer's, or by Untold. Of what no flush tells MostUntold are kept; to whom an
//     older one may have been Failure says that, and not that all is well.
//   - F4: a transfer is over when all its parts are, and not before; its error is that of the first part that failed.
//   - F5: who sees that a transfer is Over sees that something has Failed, if it has.
//   - F6: apart from failures nothing here allocates after Init.
//
// # Lock order
//
// There are no locks. Over and Failed may be asked by anybody; Piece and what it says, Op, Buffer and Capacity by whose the piece is; GiveBack and End are
// the poller's, of whom there is one at a time; all else
// under the owner's lock, which is the NIC path's.
//
// # Limits
//
// Who waits for a handle when MostUntold transfers behind it have failed for which nobody has waited may be told that its end is forgotten though it was a good one.
//
// There are as many transfers as pieces. Who holds pieces that nobody else frees must not wait for more. A generation has 32 bits: a
// handle that is kept while its number is used four thousand million times is mistaken for another.
package inflight
