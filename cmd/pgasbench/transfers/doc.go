// Package transfers runs the experiments on small and large transfers whose figures the papers print, and those that compare
// the selector's choice with every fixed one. Command pgasbench prints and draws them.
//
// # Terms
//
//   - Figure, kind, result: as in package figures, whose tables and charts these are.
//   - Variant: one way for a transfer to travel, forced in a world of its own.
//   - Control: a variant that stands in the table twice. What the two differ by is what this machine adds; a difference
//     within it is a tie.
//   - End: one of two ranks in virtual time, with a NIC and both sides of the superpipeline.
//   - Spread: the median of the repeats with the least and the greatest.
//
// # Life of a measured figure
//
// One world of one rank is made for each variant, and all transfers go through the NIC to the rank itself, so that no more
// than two threads are busy: the rank's and the NIC's. Variants take turns within a repeat, so that a change of the machine's
// load meets all of them. What arrived is checked.
//
// # Life of a simulated figure
//
// Two ends run the library's own pipes over simulated NICs with a paper's constants, one transfer at a time, from the moment
// at which the source is ready to the one at which the target's memory is filled. Nothing is left to chance.
//
// # Invariants
//
//   - T1: a wrong result at the target is an error, and no figure.
//   - T2: what was assumed, and what could not be measured here, stands in the notes of the result.
//   - T3: a simulated figure depends on its options only.
//
// # Limits
//
// A rank that puts to itself crosses the same queues, registrations and copies as one that puts to another, but only one
// process's caches. Garbage collections are held off while calls are timed.
package transfers
