// Package pgsync synchronises ranks: teams, barriers, collectives, locks, signals and counters. It lives in the
// folder sync and is called pgsync, so that a file can use it beside the standard library's sync.
//
// # Terms
//
//   - Team: an ordered set of ranks. A member has a rank in the team, from 0, and one in the world.
//   - Collective: a call that all members of a team make, in the same order.
//   - Signal: a 64-bit word on each member that others set or add to, and that its owner waits on.
//
// # What blocks
//
// Collectives, Lock.Lock and Signal.WaitUntil wait for other ranks and take a context. Ending the context ends
// the wait, not the operation: the next Barrier on the team goes on with the same barrier; a data collective
// that was abandoned leaves the team unusable for collectives, and they say so. A member that is gone ends
// every wait of its team with an error wrapping transport.ErrPeerGone that names it. Nothing hangs.
//
// # Concurrency
//
// Any goroutine of a rank may call anything; collectives of one team wait for each other within the rank, but
// the order in which a rank's goroutines reach them must be the same on all members, which only one goroutine
// at a time can promise.
//
// # How collectives move data
//
// Each member has two outboxes in its control block. A round is: write to one's outbox, barrier, read from the
// others' outboxes by one-sided gets. The outboxes alternate, so that the barrier of the next round is also what
// allows this one to be overwritten; a get needs no buffer and no flow control at the target, on any transport. Where
// everybody needs a little from everybody (Exchange, and in teams of more than 8 short AllGather and AllReduce) the
// reading takes place between the rounds of the barrier, in log2 n steps instead of n.
// Reductions are computed by every member in the order of ranks, so all get the same bits.
//
// # Invariants
//
//   - Y1: flags are single-writer words that only grow, so no flag is ever reset and a late one is harmless.
//   - Y2: a barrier's flags travel after the puts that the member made before it to the same rank.
//   - Y3: a lock is handed over to a living waiter, in order of ranks after the holder's; when its holder is
//     gone the lock is lost, and all who want it are told who held it.
package pgsync
