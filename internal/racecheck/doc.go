// Package racecheck finds accesses of different ranks to the same exposed memory, or of one rank, that are in conflict and that
// nothing orders. It watches one-sided operations, the accesses to its own part that a program declares, and everything
// by which ranks are ordered; it reports a race when the second of two accesses is made.
//
// # Terms
//
//   - Clock: how far each rank, and each rank's puts into each other rank's memory, are known to have come: a vector clock
//     (Fidge 1988, Mattern 1989) with an entry for each program and one for each way from a rank to another's memory.
//     A put takes such a way: it has happened for those who know of a flush, of a signal that came after it, or of an
//     Order and something behind that. Epochs count on after each release.
//   - Cell: one access that is remembered: kind, origin, epoch, call site; 8 bytes. Each element has a row of them.
//   - Shelf: exposed memory with a lock, clocks of things that order ranks (signals, locks, atomics, epochs), and cells.
//   - Board: where members of a team that meet in a barrier or collective show each other their clocks.
//   - Site: a call site; a number in cells, a text in exposed memory.
//   - Shown: a second mapping of this rank's part, which the program gets instead of it, so that package touch sees its loads and
//     stores; each of them is a touch until it is entered as an access.
//
// # Life of an access
//
// Before an access its origin locks the target's shelf, reads the rows of its elements, compares each cell with its own
// clock, writes its own cell, and unlocks: gets, puts and atomics like any other, so the target takes no step, and every
// transport will do. A cell that conflicts and does not come before the access is a race. What the new access covers is
// forgotten: whoever comes later and is in order with it is in order with what it covers. So a row needs as many
// cells as accesses can be in no order and in no conflict: three for each rank.
//
// Atomics are performed while the shelf is locked; so their order on the shelf is their order in memory.
//
// # Invariants
//
//   - C1: a report is a race of the execution that was seen: a cell is written before its access begins, and a clock goes to
//     others before what they can see of it. The model test compares both with a graph.
//   - C2: every element on which there is a race is reported with at least one pair, as long as no note says otherwise: a row
//     forgets accesses without order only where there are more ranks than it has cells for, and things share a clock only
//     where there are more than a shelf has room for. Both are told once, and the first is counted.
//   - C3: a rank is one thread of control: what its goroutines do is ordered as they come. Go's race detector looks between
//     those.
//   - C4: transfers that are waited for are done at once, and remembered as pending until the program waits.
//   - C5: touches are entered later than they are made, but before anything that changes this rank's clock, shows it to others, or enters
//     another access of this rank, whichever of its goroutines does that (enterSeen). Until then nobody can have come after a touch, and this rank has learned of nobody
//     since, so it is compared as if it had been entered at once. A page that is touched is not seen again until the next
//     release or acquisition; a touch is of the first byte alone.
//   - C6: the library uses parts through the first mapping (Plain), and declares it; what it does through the second one are
//     whole-array operations in the program's own turn, which are the program's accesses.
//
// # Locks
//
// A shelf's lock is held by one rank at a time and for the time of a few transfers; nothing else is waited for meanwhile, save
// the operation in the case of atomics. Checker.mu is never held while this rank waits. Checker.seen is, by whoever enters touches: it comes
// before shelves, and others wait for it as for a shelf, in steps. A page fault of a goroutine that holds any of them ends
// all the same: who serves it needs no lock, no goroutine and no memory of Go's (package touch).
//
// # Limits
//
// Touches: Linux on amd64, one of each page between synchronisations, in memory of the library's.
//
// 64 ranks. A world takes 136 KB on each rank; an element 24 bytes for each rank, at least 32 and at most 128; a signal, lock or
// atomic element a clock of 4*n*(n+1) bytes, all of a window or set together at most 4 MiB. A Checker that meets an error
// of its own transfers says so and ends the check of all ranks; the program goes on.
package racecheck
