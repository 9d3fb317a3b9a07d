// Package predict decides when memory is registered ahead of its next use and when it is given back after its last:
// the time-based, context-aware predictor and the helper of Li, Cameron, Nikolopoulos, de Supinski and Schulz,
// "Scalable Memory Registration for High Performance Networks Using Helper Threads" (CF'11, sections 3 to 5), and the
// periodicity-based predictor of Freitag, Corbalan and Labarta that they compare with. All decisions are pure: time,
// costs and queue lengths come as values, so the same code runs beside a NIC and over a recorded trace.
//
// # Terms
//
//   - Use: what a transfer leaves behind: its demand stamp, region, buffer address, call stack and the window, that is
//     kind and buffer address of the W calls of its goroutine before it. Stack and stamp are taken at the call.
//   - Region: whatever the Cache registers, by a number of the Cache's: memory of the origin, or a bucket of a
//     target's memory (then the buffer address is the bucket's number).
//   - Signature: hash of stack and buffer address of a call and of its window. A site is a signature's record.
//   - Period: the shortest difference between two demand stamps of a site. Due: last stamp + period.
//   - Deadline: when the registration for a site must be finished: due, or earlier where items were too close, and by what calls
//     paid for registrations on demand while the period passed: those are made ahead the next time.
//   - DQ, RQ: the queue of uses that have completed; the queue of registrations to come, by deadline.
//   - Awaited: a site whose deadline has been served, until its use is heard of or due + slack has passed.
//
// # Life of a site
//
// First use: registered on demand, given back after it, because nothing is known. Second: on demand again, the period
// is known now, and the site stands in the RQ. Before its deadline the helper registers the region: the site is
// awaited. Its third use hits. If none comes by due + slack, that was a misprediction: the region may be given back.
//
// # Life of a step
//
// Predictor.Step does one thing: one item of the DQ, then the head of the RQ, in turns; a head that may still wait
// leaves the turn to the DQ. Where there is nothing to do it says when to come back. With t_p made of Costs:
//
//	DQ: give back  iff  now + t_deregister + t_insert + t_register + t_update <= earliest deadline of the region
//	RQ: delay      iff  now + t_hash + t_cache + t_deregister + t_insert + t_register + t_update <= deadline
//
// and both with X, how late the helper may look, and n(t_slice + t_cs), where n helpers share a core (equation 2).
//
// # Invariants
//
//   - P1: only demand stamps make periods. What the helper registers early, and adjusted deadlines, never do.
//   - P2: a site is in the RQ at most once, and not while it is awaited.
//   - P3: the RQ is ordered by deadline, and each item has its predecessor's distance of one RQ and one DQ item's cost.
//     Deadlines only move earlier.
//   - P4: a region with an awaited site is not given back: the use it was registered for is about to come.
//   - P5: a region that is kept has a later event that looks at it again: an RQ item, an awaited site, or, where the
//     cache refused because of a reference, the DQ item of the use that holds it. If that one is lost, the cache's own
//     replacement takes the region. A site whose use lies in another region than the one it waited for has the former looked at next.
//   - P6: a Put never waits. A full DQ loses the new entry and counts it.
//
// # Concurrency and lock order
//
// A DQ has any number of producers and one consumer; a Stream any number of callers. A Predictor belongs to one goroutine, the
// helper; Stats may be called by any. Step holds no lock when it calls the Cache.
//
// # Limits
//
// MaxWindow previous calls, Config.Sites signatures; beyond those the sites unused for longest are forgotten.
package predict
