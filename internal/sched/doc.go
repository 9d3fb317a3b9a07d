// Package sched is the seam of waiting and time. Below package pgas nothing waits, sleeps, reads a clock or
// starts a goroutine but through it, so that the same protocol code runs in a process of its own, as one of
// many goroutine ranks of a test, and (by a body that hands a token on) in virtual time.
//
// # Life of a wait
//
// A wait is a loop over the caller's own condition; the package supplies one step at a time, so that nothing
// is captured and nothing is allocated while the wait is short:
//
//	sp := s.Begin(ctx, sched.What{Op: "barrier", Peer: -1}, watch)
//	for !ready() {
//		if err := sp.Step(); err != nil {
//			break
//		}
//	}
//	sp.End()
//
// A wait goes through three phases. It spins, a pause instruction at a time, as long as an answer from another
// core may take. Then it yields the processor: to other processes, or to other goroutine ranks. Then it parks
// on the rank's bell, a word in memory that peers can reach: whoever makes a condition true rings the bell of
// the rank that may wait for it. Where there are more ranks than cores the first two phases are short.
//
// # Terms
//
//   - Bell: two words in memory shared with the peers; a futex. Ring costs a load while nobody sleeps.
//   - Watch: what a wait depends on beside its condition. It is asked in every slow step, and its error ends
//     the wait: a dead peer ends a wait for it.
//   - What: what a wait waits for, for the hang report.
//
// # Invariants
//
//   - S1: a parked wait always has a time limit after which it looks again. The bell makes a wait end soon; no
//     wait depends on it to end at all, so a lost ring costs a millisecond and never a hang.
//   - S2: before it parks, a wait announces itself as a sleeper and looks at its condition once more; the ringer
//     makes the condition true, then looks for sleepers. Both sides use sequentially consistent atomics, so
//     one of them sees the other.
//   - S3: a wait that has parked stands in the rank's list of waits until End.
//
// # Concurrency
//
// Any number of goroutines of a rank may wait at once. A Spin belongs to one goroutine.
package sched
