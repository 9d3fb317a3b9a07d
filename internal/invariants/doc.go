// Package invariants is where the code states what must hold if it has no bugs, and where rare paths are made
// common while tests run.
//
// Built without the tag "invariants" (the normal build) everything here is a constant or an empty function
// that the compiler inlines away. Built with it, as in
//
//	go test -tags invariants ./...
//
// Check panics when a stated condition is false, Sometimes sends the caller down a slow path at random, and
// Mangle spoils memory that was given back, so that a use after release shows itself.
//
// It is asked by who hands out and takes back (internal/bounce, internal/inflight, internal/symheap, the budget and the references of regmgr, the accounts of firehose),
// and takes internal/nic and internal/sched down their rare ways: a NIC with room for one operation, a wait that sleeps at once.
//
// # Terms
//
//   - Invariant: a condition that only a bug in this module can break. What a user, a peer, the network or the
//     machine can cause is an error and is returned, never checked here.
//   - Slow path: correct but rarely taken, such as a cache miss, an eviction or a short count.
//
// # Invariants
//
//   - V1: the tag never changes a result, only which correct path leads to it.
//   - V2: without the tag nothing here allocates, panics, or reads its arguments' memory.
//   - V3: this package imports nothing of ours and keeps no state, so any package may use it from any goroutine.
//
// # Limits
//
// The arguments of Check are evaluated in every build. Where computing them costs something, write
//
//	if invariants.Enabled {
//		invariants.Check(expensive(), "…")
//	}
//
// which the compiler removes whole. The choices of Sometimes are not derived from a seed: a failure found by
// them is repeated by running the test again with -count.
package invariants
