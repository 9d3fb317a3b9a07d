// Package agree lets those members of a team that live agree on who they are, and on a vote, although members may die while they
// agree. Package pgsync makes the team of the survivors by it.
//
// # Terms
//
//   - Member: a rank of the team, by number. Living: not known to be gone, to the member that looks.
//   - Block: memory of each member that the others can read. Nobody writes to another member's.
//   - Epoch: the number of an agreement.
//   - Coordinator: the lowest living member, as each member sees it.
//   - Verdict: the set of living members, and whether all of them have voted yes.
//
// # Life of an agreement
//
// It is an agreement by a coordinator that its death replaces (Chandra and Toueg 1996, section 6, made simple by a detector of deaths
// that errs only by being late), and one-sided: nobody sends anything, each member publishes its state in memory of its own, which
// the others read.
//
// Each member publishes its vote and whom it takes for the coordinator, and looks whether that one has decided; it copies a decision
// and has then decided itself. A coordinator waits until every living member has either named it, and so will not look at an earlier
// one's decision any more, or has decided, in which case it takes over that decision. Otherwise it decides by their votes.
// All that is left of an agreement is readable until all have begun the next one.
//
// It costs a member one read a while, and the coordinator three for each member, beside the waiting.
//
// # Invariants
//
//   - A1: all members that return from an agreement return the same Verdict.
//   - A2: a block is written by its owner only, so nothing that a dead member has sent can change what was agreed.
//   - A3: the word that says that a set is there is written after the set.
//   - A4: no member waits for one that is known to be gone.
//
// # Lock order
//
// There is no lock: one goroutine of a rank at a time is in an agreement of a team.
//
// # Limits
//
// 2^32 agreements of a team. A member that is stopped, and not gone, keeps all others waiting.
package agree
