// Package hose keeps the firehoses of one rank: the right to read and write other ranks' memory that is larger than what may be
// registered, bucket by bucket, and what it keeps registered for them. It gives package firehose, which is accounting only, what
// that needs: messages, registrations under regmgr's budget, costs, waiting, and the engine's lock. It moves no bytes and posts no
// operation: that is the engine's, which asks here for the key of a bucket before it posts, and says here when it is done.
//
// # Terms
//
//   - Set: the firehoses of one rank, both ways.
//   - Far: another rank's memory that is registered in buckets, as this rank sees it.
//   - Piece: an operation of the engine, by number. At any time it has at most one firehose.
//   - Claim: the buckets of a stretch of memory that are wanted together and kept until all operations on them are complete.
//   - Owner, bucket, hit, miss, move, share: as in package firehose.
//   - Lock: the engine's, under which pieces are taken and given back. A hit takes piece and firehose under it at once.
//
// # Life of a bucket's use
//
// An operation that one held bucket will do for has TryLocked and NoteLocked called while its piece is taken: no message, no
// wait, no allocation, and no lock but the engine's. Any other is cut by Cut at the ends of buckets, and calls Attach for each
// part. On a miss that writes a move, has it sent, and waits with the poller's work going on meanwhile; a small put travels in it.
// A long transfer whose first buckets are held begins with those, and the others are asked for meanwhile.
// What Attach refuses without an error goes by message to the owner's CPU. When the piece's operation is complete the poller calls
// ReleaseLocked. Long transfers, and those of many runs, ask for many buckets together before that (Fetch, FetchRuns) and keep
// none of them. A transfer in chunks, which are posted by whoever polls, has a Claim for each quarter of a share instead: it asks for it when it has
// all else that it needs, and gives it back when it is over. Of those uses the predictor is not told.
//
// # Life of exposed memory
//
// Expose gives it a number, by which peers ask, and promises their part of the budget to them. The poller hands moves to Handle,
// which registers and answers at once, or later from Progress. Before the memory is freed all members, those too whose own parts
// are registered as a whole, call Leave, which gives up what they hold of each other's. Owners call Withdraw, which waits until nobody holds
// anything of this rank's, nor uses it. This rank's own transfers use the buckets through regmgr's cache: see near.go, and package regmgr for which.
//
// # Ahead of the use
//
// Under the policy Predictive the uses of buckets are told to regmgr's helper by their call sites, and the helper asks for buckets
// before their next use. A hit and a miss of the same line of a program are the same use: see frames. Uses that no prediction helps are not
// told (package foresight): none as long as all that was used is held, and none of call sites that gain nothing by it.
//
// # Invariants
//
//   - E1: nothing is sent, registered or waited for while the engine's lock is held.
//   - E2: a key that Attach or TryLocked has given is good until ReleaseLocked for the same piece.
//   - E3: no caller waits for a firehose while Fetch or FetchRuns keep another for him: what they get they let go of. Whoever has
//     a Claim waits for nothing but what the NIC reports.
//   - E4: two ranks of which one could not tell the other about moves give up the firehoses between them, in that direction: what
//     was told too late is dropped before what takes its place is sent.
//   - E5: Withdraw returns when nothing of the memory is registered for anybody, but what the cache of this rank foresees of Go memory: that
//     is the program's, which may use it when it is exposed no more, and the cache pins it.
//
// # Lock order
//
//	the engine's lock  (holder, views, moves that wait to be sent; never held across a wait)
//		regmgr's, where it is told of uses
//	Set.mu             (exposed memory and its registrations; nothing is taken under it but regmgr's budget)
//	firehose.Server's  (nothing but regmgr's budget is taken under it)
//
// # Where buckets begin, and how large they are
//
// A range's buckets are counted from its first page: programs lay out memory by offsets in it. How large they are is chosen for each
// range by its origin, by what a miss costs (a round trip, a registration for each bucket, and all bytes of the buckets, used or not)
// against how many uses one miss serves: see firehose.Budget.Order. A use across the end of a bucket is two firehoses and two operations.
//
// # Limits
//
// Two buckets of one size never share a page. The same pages are registered, and charged, twice where two origins have chosen buckets of
// different sizes for them, since each has one key for all of its bucket; and where the owner's own transfer crosses the end of buckets that
// others hold, or began before they did. Neither can be spared simply. The first would have an origin use several keys for what it takes for one
// bucket, or lose the size that pays for it. For the second package regmgr has the reasons (its section on exposed memory). The charge is what the
// NIC has, so the limit is kept; and the second registration is idle after its use, so it is the first to go when somebody needs the room.
//
// Buckets have at least 32 KiB, and more where the NIC has too few registrations for that. The predictor
// is told of foresight.MostTargets buckets at a time.
package hose
