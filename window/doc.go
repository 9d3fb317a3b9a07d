// Package window gives typed one-sided access to memory that the ranks of a team expose to each other.
//
// A window has a part on every member. Any member puts, gets and does atomics on any part; the owner takes no
// step. Displacements and lengths count elements, never bytes. Allocate makes a window of library memory,
// which is reached fastest; Create makes one over a slice that exists already. A Dynamic window begins without memory:
// members attach and detach some later, each for itself.
//
// # Completion
//
//	call                     on return
//	Put                      the source may be reused; not yet visible at the target
//	Get                      the destination holds the data
//	PutNB, GetNB → Handle    nothing; Handle.Wait gives what the blocking call gives, Handle.Done polls
//	Flush, FlushAll          all earlier puts, accumulates and atomics of this rank to the target(s) are visible there
//	FlushNB → Handle         nothing; when Handle.Wait returns what was begun before FlushNB is visible, as after Flush
//	Order                    earlier puts to the target become visible before later ones; does not wait
//	atomics that fetch       done at the target; the old value is returned (Load: the value)
//	Accumulate, Store        as Put: the source may be reused
//	FetchAddNB … → Handle    nothing; Handle.Wait gives the old value, done at the target
//	PutSection, PutStrided,  as Put: the source may be reused
//	PutIndexed, Scatter
//	GetSection, GetStrided,  as Get: the destination holds the data
//	GetIndexed, Gather
//	GetAccumulate,           done at the target; the old values are there
//	GatherAccumulate
//	ScatterAccumulate        as Accumulate: the source may be reused
//	FlushLocal               sources may be reused, and the destinations of GetNB and FetchAddNB hold their data
//	PutSignal, PutSignalAdd  the signal becomes visible only after the data
//	GetSignal, GetSignalAdd  dst holds the data; the owner's signal becomes visible after that
//	Fence                    collective: everything by everybody is visible to everybody
//	View                     for mapped members: Load, Store and atomics that inline to plain instructions
//
// "Visible" means: to every rank that does anything later, in any order of events that the ranks could agree on.
// After Flush a load by this rank from any part comes after the flushed stores for all observers; on amd64
// that costs a locked instruction, about 6 ns. Order, View.Order and signals need only that stores stay in order.
//
// # Life of an epoch
//
// A window made with Config.Epochs has the synchronisation of MPI too. Fence ends an epoch in which everybody may reach
// everybody, and begins the next one. Post lets a group reach this rank; Start waits for the Post of each target,
// Complete flushes and tells them, Wait waits to be told by all. Lock and Unlock, LockAll and UnlockAll open an epoch
// to a target, or to all, with a lock that is real: exclusive ones keep everybody else out that locks. Which call may
// follow which is a pure state machine (epoch.go), and every answer it gives stands in testdata/epochs.golden. With
// Config.StrictEpochs an access outside an epoch is an error, too.
//
// # Contracts
//
//   - Windows are open from the moment Allocate returns: no epoch need be declared, unless Config.StrictEpochs says so.
//   - Any goroutine of a rank may call any method at any time, except Free, which comes after all others. Flush and
//     Fence cover the puts of the whole rank. Operations on mapped parts take no lock; through a NIC they take one
//     short lock.
//   - The path of atomics is chosen when the window is made, by all members together: the CPU's where every member
//     maps every part, else the NIC's for all. Do not mix plain stores into Local or View with atomics of others
//     on the same element.
//   - Where the source and the destination of a rank's put or get to itself overlap, mapped memory gets what a copy of the whole would leave there.
//     Through a NIC, and in transfers of many pieces, it is undefined what arrives in the overlap.
//   - Waiting calls take a context. Ending it stops the wait, not the transfer; the buffers stay owned until the
//     transfer has ended. Blocking data-path calls take none: one that ended early would leave its buffer with the NIC, and
//     the program without a handle to ask. Who needs a limit takes PutNB, GetNB, FetchAddNB and their like with Handle.Wait,
//     and FlushContext. A dead rank makes every call that needs it return *pgas.OpError wrapping transport.ErrPeerGone.
//     A put, get, atomic or flush needs its target, whatever the path, and so does every wait. Over mapped memory a call that is made in the
//     first moments, before the death is known here, may still return nil: its data is for nobody. Within a second of the death all report
//     it, the flush of an earlier put too. FlushAll and Fence need all members that have a part; calls to those that live go on to work.
//   - What a dead rank has left stays mapped until the window is freed. A View of its part, and Shared, are memory and know nothing of
//     deaths: they go on to read and write it, and are the way to save what is there. World.Failed tells who is gone.
//   - A rank that waits in World.Close is not gone: the others reach its parts as before, until they close too.
//
// # Errors
//
// A target that is not a member, elements out of the target's range, or a freed window is an error before anything
// has moved. A failed put or atomic through a NIC for which nobody has waited is reported by the next Flush or Fence, or by what
// frees. Fence and Free meet the others all the same, and do what they do. Element
// types with pointers are refused when the window is made: the garbage collector would not see the copies.
//
// # Cost
//
// That a target lives costs a call to mapped memory nothing: who learns of a death shuts the way that calls take (W1).
//
// A part that the NIC has no room to register is exposed all the same: in buckets that are registered on demand, or, where the NIC has told no
// limit beforehand, through its owner's CPU alone. What works on other parts works there, and takes longer.
//
// No data-path call allocates. A one-element Put to a mapped part is a bounds check and a store. Atomics on
// elements of 4 and 8 bytes are single instructions where the processor has them.
//
// # Races
//
// With PGAS_CHECK=races every access passes the race check (internal/racecheck, docs/racecheck.md), parts are not used directly, and there are
// no views. What a program does with Local is seen by page faults, where that is possible, as far as they show it; it can declare the
// rest: Reading, Writing, CheckRead, CheckWrite.
//
// # Invariants
//
//   - W1: a part is used directly by calls if and only if it has usable elements in the table of parts; none means: ask the engine.
//     This is the only choice of a path outside internal/proto. Calls load the number atomically. The end of the owner makes it 0,
//     and takes nothing away from a copy under way.
//   - W2: after Free, and after the world's end, every part's slice is empty, so a View left over panics as a slice does, and touches nothing.
//   - W3: the word of a member's lock is changed by atomics only, and names its exclusive holder; the counts of posts and
//     completions have one writer each and only grow.
package window
