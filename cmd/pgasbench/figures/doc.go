// Package figures runs the experiments whose figures the papers print, on this machine or in virtual time, and gives back
// what was found as a table and as charts. Command pgasbench prints and draws them.
//
// # Terms
//
//   - Figure: an experiment with a name; it stands for one or more figures or tables of a paper.
//   - Kind: how a figure came about: measured on a named NIC of this machine, or replayed in virtual time with the constants of a
//     named cost model. The two are never mixed in one table.
//   - Microbenchmark: figure 1 of Li et al. (CF 2011): three buffers by turns, a transfer from each, and computation after it;
//     with reuse the same three buffers in all iterations, without it fresh ones each time.
//   - Repeat: the whole experiment once more. Values are medians, with the least and the greatest beside them.
//
// # Life of a figure
//
// A measured figure makes a world of one rank for each policy, with all transfers going through the NIC to itself, so that the
// registrations of the policy are real; it touches all memory beforehand, checks at the target what has arrived, and reads the
// rank's own counters. Figure seats alone has ranks that are processes, started by pgasrun, which are really busy between calls. Policies take turns within a repeat, so that a change of the machine's load meets all of them. A
// replayed figure makes a trace, or takes a recorded one, and runs it under each policy.
//
// # Invariants
//
//   - F1: a wrong result at the target is an error, and no figure.
//   - F2: what was assumed, and what could not be measured here, stands in the notes of the result.
//   - F3: a replayed figure depends on its options only.
//
// # Limits
//
// In the microbenchmark computation is a sleep: the policies are told apart by what they do inside calls and by what is
// registered between them, and neither needs a busy processor. A rank that puts to itself crosses the same queues and the
// same registrations as one that puts to another, but only one process's caches. Garbage collections are held off while calls
// are made: what the library does about them is no part of the papers' policies.
package figures
