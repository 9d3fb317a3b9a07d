// Package pgsync synchronises ranks: teams, barriers, collectives, locks, signals, events and counters. It lives in the
// folder sync and is called pgsync, so that a file can use it beside the standard library's sync. Further data collectives are
// in package coll, in the folder below.
//
// # Terms
//
//   - Team: an ordered set of ranks. A member has a rank in the team, from 0, and one in the world.
//   - Collective: a call that all members of a team make, in the same order.
//   - Started call: a collective, or several, that go on beside the program (Team.Start).
//   - Signal: a 64-bit word on each member that others set or add to, and that its owner waits on.
//   - Event: a count on each member that others post to, and that its owner takes from.
//   - Lane: a set of flags and outboxes on every member, on which one call at a time goes on.
//
// # What blocks
//
// Collectives, locks, events and Signal.WaitUntil wait for other ranks and take a context. A member that is alone in its team waits for nobody: its
// collectives, but for those that give memory back, look at the context when they begin. Ending the context ends
// the wait, not the operation: the next collective of the team, blocking or started, goes on with a barrier that was left, and gives the memory back where that was
// the barrier of a Free; a data collective that was abandoned leaves the team unusable for collectives: they say so, and those that other members are in end with
// ErrAbandoned, which names who left. So does a call of the packages above that is made of several collectives (pgas.Array.Apply, window.Allocate), whichever of them was left. A member that is gone ends
// every wait of its team with an error wrapping transport.ErrPeerGone that names it; those who live go on with
// Team.Survivors. Members that do not make the same call, of elements of the same type, all get an error wrapping ErrMismatch. Nothing hangs.
//
// Who has nothing to wait for in a short collective with a root does not wait (file ahead.go): the root of a broadcast or scatter waits for nobody, the others for it alone;
// in a reduction or gather the root waits for all, the others for nobody. Such a call orders no more than that; whoever wants all members in step calls Barrier. Who has gone
// ahead of a mismatch, a member that leaves, or one that is gone learns of it from the team's next collective in which it waits, the fifth at the latest.
//
// # Concurrency
//
// Any goroutine of a rank may call anything; collectives of one team wait for each other within the rank, but
// the order in which a rank's goroutines reach them must be the same on all members, which only one goroutine
// at a time can promise. Started calls are the way to have several under way.
//
// # How collectives move data
//
// A team has four lanes; its calls, blocking or started, take them in turn. Each member has two outboxes for each lane in its
// control block. A turn is: write to one's outbox, barrier, read from the
// others' outboxes by one-sided gets. The outboxes alternate, so that the barrier of the next turn is also what
// allows this one to be overwritten; a get needs no buffer and no flow control at the target, on any transport. What does not fit takes a turn
// for each part; where members are alike, all mapped or none, blocking calls make parts of 256 KiB in larger outboxes (file room.go).
// Among up to 8 of these up to 16 bytes of each come with the barrier's flags, in the same cache line, and no outbox is read (file slip.go); through a NIC
// for which no thread has to get up more is pushed into the others' outboxes before the flags (file push.go). What is longer than a part or two, of memory that is
// used again, members that do not map each other's read of each other where it lies, in two turns for any length (file offer.go), and members that do likewise what is library
// memory, a window's or an array's; what is Go memory the kernel copies from where it lies, or it goes through outboxes, whichever has been faster (file contest.go). Where
// everybody needs a little from everybody (Exchange, and in teams of more than 8 short AllGather and AllReduce), or all
// something from one (Broadcast there), the reading takes place between the rounds of the barrier, in log2 n steps instead of n.
// Long reductions are divided: each member combines a part, and all read the parts. Where ranks share nodes and map
// each other's memory, barriers and what takes place between their rounds have two levels, and one member of a node talks to
// other nodes; in long all-reduces each reads a share of what its node needs. Gathers and scatters go through
// the first members of nodes, and in all-to-alls those of a node collect what all of them have for each other member (file nodal_parts.go).
// Package shape lays the nodes out. Function choose has the choices and
// where they come from.
// Reductions are computed in the order of ranks, whatever the method, so all get the same bits; those of integers, which give these in
// any order, combine on the way, in the nodes and from round to round.
//
// # Life of a call
//
// It is numbered, which gives it its lane and its place in that lane's queue; it waits for its place; its turns take place,
// and each barrier adds what the call is to a sum that travels with its flags, so that members see when they differ. Who sees
// that tells all members, by a word in their control blocks that every wait of the team looks at. Flags of a call in which a member has gone ahead are looked at before the next
// one on the lane, and behind the next barrier in which it hears all. A started call is closed
// by a last flag that nobody waits for.
//
// # Invariants
//
//   - Y1: flags are single-writer words that only grow, so no flag is ever reset and a late one is harmless.
//   - Y2: a barrier's flags travel after the puts that the member made before it to the same rank.
//   - Y3: a lock is handed over to a living waiter, in order of ranks after the holder's; when its holder is
//     gone, or closes its world, the lock is lost, and all who want it are told who held it. Package lock has how.
//   - Y4: who finds a mismatch goes no further in its barrier, so nobody else gets through it.
//   - Y5: members agree on survivors (package agree) by words that each writes in memory of its own only, so nothing that a dead
//     member has sent can change what was agreed.
//   - Y6: an RWLock's waiters hold it in the order in which they came.
//   - Y7: who leaves a collective before its end tells all members, who wait no longer than until then: a word in their control
//     blocks, as of a mismatch, which names the one because of whom that was if he is gone. What has arrived by then is not taken back. A call that is made of several collectives is one in this (Abandon).
//   - Y8: nothing begins on a lane before all have been heard in its last barrier, but for the end of a started call. So what a member has laid out for others, in the outbox or line of
//     one turn, is theirs until it has heard that they are two turns further.
//
// # Lock order
//
//	Team.busy (a flag; waits go through package sched)
//		core.mu (short, nothing is called under it)
//	those of package lock
//
// # Limits
//
// An outbox holds 16 KiB, or 32 bytes for each member of a large team: a member's control block takes 145 KiB for up to 512
// members and 256 bytes more for each further one. A team whose members all map each other's memory takes 512 KiB more on each of them from its first
// blocking call on whose data does not fit into an outbox, until Team.Free; where a member has not so much, calls go on without. Reductions that go without outboxes
// keep up to 1 MiB of what they have read, or 4 KiB of each member, and one to a single member up to 8 MiB of its result. A team has at most 2^20 members on a node and as many nodes.
package pgsync
