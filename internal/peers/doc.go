// Package peers is what a rank knows of the others' lives: who has come up, who has left, and who is gone and why. Whoever waits for
// another rank asks here whether that can still end.
//
// # Terms
//
//   - Up, left: states that a rank announces itself. One that ends otherwise is gone.
//   - Cause: how a rank was lost, in a word that fits shared memory. Story: the same in the words of somebody who knows more.
//   - Rank block: memory of a rank that all can reach: its state, its bell, who was lost first, and a word for each rank.
//   - Mapped: a rank block that this rank reaches by loads and stores. The others are told through a NIC, by package proto.
//   - Bell: what wakes the parked waits of a rank (package sched).
//
// # Life of a table
//
// New makes it of ordinary memory, since deaths can be learned of before there is anything to share. Join moves it into the rank
// block, with what is known, and Announce makes the rank visible as up. Leave tells that this rank needs nobody any more. Part moves
// the table back, before shared memory is unmapped.
//
// # Life of a death
//
// A launcher, a process descriptor or a NIC notices it, and MarkGone writes the cause into this rank's block and into those that are
// mapped, after the cause of the rank that was lost first, and rings. Waits step, ask their Watch, and end. The first cause stays.
//
// # Invariants
//
//   - D1: a word of a rank's end is written once; the state only by its owner. No word is ever cleared.
//   - D2: who was lost first is known wherever anybody lost later is known, as far as this rank tells it.
//   - D3: asking costs one load as long as nobody is gone.
//   - D4: what different ranks write lies on different cache lines, but for the words of the dead.
//
// # Lock order
//
// One lock keeps Ended and StateOf, which a NIC's goroutines call at any time, out of Join and Part; nothing is waited for under it. Join and
// Part are for who sets the world up and ends it: nobody else uses the table meanwhile.
//
// # Limits
//
// A rank block takes 384 bytes and 8 for each rank. Exit codes and signals have 16 bits.
package peers
