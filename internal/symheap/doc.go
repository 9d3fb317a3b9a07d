// Package symheap is the symmetric heap of a team: memory in which a block lies at the same offset on every
// member, so that an offset and a rank name it everywhere.
//
// Nobody guesses a size. The heap is a list of chunks; a chunk is memory that each member allocates and all
// map or register at once. It begins small and doubles what it has; an allocation that fits nowhere adds a chunk, and a
// chunk that has become empty is given back.
//
// # Life of a block
//
// Alloc is collective: all members ask for the same size in the same order, so all compute the same place
// without talking. Only when a chunk must be added do they exchange what the others need to reach it. The
// memory is zeroed by its owner. Free is collective too; the caller has made sure that nobody uses the block.
//
// # Invariants
//
//   - H1: the arenas of all members of a heap are equal at equal points of the program.
//   - H2: a block never crosses a chunk, so one base per member reaches all of it.
//   - H3: a failed Alloc leaves the heap as it was, on every member.
//
// # Concurrency
//
// Collective calls on one heap must come one after the other, in the same order everywhere. A Block's memory
// may be used by anybody at any time until it is freed.
package symheap
