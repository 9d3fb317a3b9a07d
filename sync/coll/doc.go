// Package coll has the data collectives that programs need beside those of pgsync: gather, scatter and all-to-all, with equal
// and with different lengths, and prefix reductions. Broadcast, all-gather and reductions, which the library itself is built on,
// are in pgsync; Barrier and Start are methods of a team. It is a package of its own since one for all would be too wide.
//
// # Terms
//
//   - V: a variant in which members' lengths differ; counts says how many elements are whose, in the order of members, and
//     the parts lie one behind the other.
//   - Turn: each member fills its outbox, all meet, each reads from the others' (pgsync's doc). An outbox holds at least
//     16 KiB, and in long blocking calls 256 KiB where all members map each other's memory, or none does; longer data takes several turns.
//   - Offered: where none does, what takes more than a turn or two is read from where it lies, in two turns, if its memory is used again; where all do, if it is library
//     memory (pgsync's doc).
//   - Pushed: a scatter whose root fills the members' outboxes, and not its own. In pairs: an all-to-all in which each member reads from another one
//     in each turn. Both are for what does not fit into one outbox; file choose.go has when, and where they come from.
//   - By nodes: where members share nodes and map each other's memory, what is for a node, or comes from it, travels between nodes in one piece.
//   - In steps: between the rounds of a barrier, where each member reads from one other in each; for short data of many members.
//
// # Life of a call
//
// Arguments are checked; whoever finds them wrong refuses, which the other members notice if they did not. The members that
// must agree on lengths find a disagreement by the sums that travel with the barrier; where only some know a length (the V
// variants), it is in the outbox beside the data, and who reads it compares. In either case all members get an error wrapping
// pgsync.ErrMismatch, and the team is of no more use for collectives.
//
// # Non-blocking calls
//
// Team.Start makes any of them, or several, go on beside the program:
//
//	r := team.Start(func(ctx context.Context, t *pgsync.Team) error { return coll.AllToAll(ctx, t, dst, src) })
//	compute()
//	err := r.Wait(ctx)
//
// # Costs
//
// Comments give messages and bytes for n members; a barrier is ceil(log2 n) rounds of one message of each member.
//
// # Invariants
//
//   - C1: reductions combine in the order of members, one after the other, whatever the method, so a result does not depend
//     on the sizes at which methods change. Integers, of which it does not in any order, may combine on the way.
//   - C2: a member reads only what the barrier of a turn has made readable, and writes its outbox only when the barrier of
//     the turn before has shown that nobody reads what was there two turns ago. The same barrier allows root to write into others'
//     outboxes, in a turn in which they do not; its puts have arrived before it comes to the barrier.
//
// # Limits
//
// Collectives must not be called from several goroutines of a rank on one team unless their order is the same on all members.
package coll
