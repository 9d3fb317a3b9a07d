// Package sched is the seam of waiting and time. Below package pgas nothing waits, sleeps, reads a clock or
// starts a goroutine but through it, so that the same protocol code runs in a process of its own, as one of
// many goroutine ranks of a test, and in virtual time.
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
// the rank that may wait for it. Where there are more ranks than cores the first two phases are short. Moved tells a
// wait that has many parts that one is done, and it yields anew; no sleep is longer than a part of the time since.
//
// Where peers ask for something one soon after another, over a NIC that needs this rank's threads for that (Server), one wait of the rank goes on looking
// without a pause instead, and performs it: it lingers.
//
// # Terms
//
//   - Bell: two words in memory shared with the peers; a futex. Ring costs a load while nobody sleeps.
//   - Seat: where a wait sleeps as Go's own do, without a thread, while others of its rank look for what it waits for.
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
//   - S4: a NIC is told that a wait polls without a pause (Hushes) only while it spins or lingers: before it yields, parks or gives its turn up, and when it
//     ends, it is told so.
//   - S5: at most one wait of a rank lingers, none where ranks share cores, and none for longer than lingerFor behind the last request.
//   - S6: waits that sleep leave at least one of the rights to run Go code (GOMAXPROCS) to others, who may have to read the socket that what they wait for comes over.
//
// # Virtual time
//
// The third body is Sim: all goroutines of all ranks of a world are coroutines that hand a token on, and time is a
// number that moves when all of them wait. A wait's step gives the token away and gets it back when something has
// happened to its rank: a NIC has written to its memory or finished an operation, its bell was rung, a time limit
// has passed, another goroutine of the rank has begun to wait or has ended. Nothing is polled. A program takes
// virtual time only by what it waits for and by what it is charged (Charge, ChargeCopy).
//
//   - V1: exactly one coroutine or action runs at a time, so nothing in a simulated world is concurrent, and the race
//     detector finds nothing there.
//   - V2: a run is decided by the program and the seed. Real time, addresses and the order of maps have no say.
//   - V3: when nothing is left to happen, every wait looks once more, as S1 asks, and the simulation counts a lost ring
//     if that helped. If it did not, all waits end with a *StuckError that lists them.
//   - V4: a simulated program may block in this package's calls only. A channel, a mutex held across a wait, or a loop
//     over a load stops the world: whoever has the token keeps it.
//
// # Concurrency
//
// Any number of goroutines of a rank may wait at once. A Spin belongs to one goroutine.
package sched
