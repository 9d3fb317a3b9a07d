// Package regmgr decides which of this rank's memory is registered with the NIC, and for how long. It owns the one budget
// of registered memory and the one cache of registrations; everybody who hands user memory to a NIC asks it.
//
// # Terms
//
//   - Region: memory that is, was, or is about to be registered. Its state is a word: registering, ready, leaving or dead,
//     and the number of references while it is ready.
//   - Reference: a promise that a region stays registered, from Acquire to Release. An operation of the NIC holds one.
//   - Idle: ready, without references. Idle regions are what the cache can give up.
//   - Budget: how many bytes, in whole pages, and how many registrations there may be at once. Firehose's holdings are
//     charged to the same one (Reserve), so it is one figure for the rank. A region is charged for all pages that it
//     touches, also where another region touches them: that is how NICs charge.
//   - Origin: whose the memory is (mem.OriginOf). Go heap memory can be kept registered safely, any other only by its
//     owner's word, which is a Lifetime. What may lie on a stack is never registered.
//   - Exposed memory: memory that its owner lets other ranks use, bucket by bucket (Expose). A region of it that lies in one bucket is the bucket: it has
//     the bucket's registration, and is charged as part of what is lent, and of what the cache may have.
//   - Policy: what happens to a region that becomes idle, and which transfers register at all. Facts.Prefer says which one pays.
//
// # Life of a region
//
// Acquire looks for a ready region that contains the whole request with the rights it needs and takes a reference by one
// compare-and-swap. Else it makes room in the budget, giving up idle regions that were not used for the longest time,
// pins the Go object, registers exactly what was asked for (widened to its pages inside of what the caller owns) and enters
// it into the index. Two callers never register the same memory twice at a time: the second one waits for the first.
// Release of the last reference leaves the region idle or deregisters it, as policy and origin demand. Whatever stands in
// the way of a registration ends in ErrCopy: the caller copies instead, and the reason is counted.
//
// # Life of a predicted use
//
// Under Predictive with Config.Ahead, Acquire notes the time, the call stack and the calls before; Release drops the
// reference and leaves that in a queue. The helper (internal/predict) reads it on a thread of its own, gives the region back,
// and registers it again shortly before its next use. Regions are numbered by spots, which outlive registrations and know
// whether the memory is still there. Other ranks' buckets (Remote) are looked after alike: a use is a visit of a bucket. A panic
// of the NIC is a refusal, with its cause. Without Ahead, and after the end of the helper, memory is registered on demand.
//
// # Invariants
//
//   - R1: a region with a reference is registered, and its memory is what it was when it was acquired.
//   - R2: a hit contains the whole request. Partial overlap registers anew; two requests are never united, because
//     neighbours may belong to different objects. Nor is a part of foreign memory that is registered for one use a hit, but for a piece of that use.
//   - R3: a Go object is pinned from before its registration to after its deregistration. Should a deregistration fail, it
//     stays pinned and charged for good.
//   - R4: an idle region on the Go heap is given up when two garbage collections have passed without a use, since its pin
//     keeps the object alive; and the bytes of all that stay may have a limit of their own. A region above that is registered for
//     one use, in nobody's place.
//   - R5: foreign memory is registered for one use, or for the time of a Lifetime: its owner's, or that of exposed memory. Lifetime.End returns when the last
//     region of it is deregistered.
//   - R6: charged bytes and registrations never exceed the budget; a refusal by the NIC takes nothing from it.
//   - R8: what is promised to others (Promise) is theirs whatever the cache refers to, once it has kept the promise; idle regions
//     and their victims (Share) go by age, whoever needs room.
//   - R7: memory that cannot be written is never registered as a destination: ErrReadOnly, before any byte has moved.
//   - R9: no bucket is registered twice, whoever uses it; one that the cache refers to stays when the others let go of it, so it counts
//     against the cache's part although it is lent; and it is deregistered when the cache gives it up, unless others use it.
//
// # Exposed memory
//
// A transfer of the owner's within one bucket uses the bucket's registration. It is registered for that, and so for others too, where that costs
// hardly more than to register what the transfer uses; a bucket that is much larger than that displaces nothing. What lies across the end of a bucket
// has a registration of its own: each bucket has a key of its own, and so would be a region, a record of its use, a piece of the NIC's and an operation for
// each use to come, against one registration that stays; and it would count against the cache's part with all of its first and last bucket.
// So has what needs less than a bucket that nobody has registered, and what was registered before a bucket around it was: these pages are
// registered, and charged, twice.
//
// # Lock order
//
//	Manager.mu      (index, idle list, lifetimes; never held while the NIC registers or anybody waits)
//	  Budget.mu     (Promise is called under its caller's lock)
//
// Victims, Remote and who registers exposed memory are called without any of these; the lock of their owner comes first where he calls Uses, RemoteMark,
// RemoteCalled or RemoteDone.
//
// # Concurrency
//
// Everything may be called by any goroutine. Acquire of a registered region and Release that leaves it idle take no lock and
// allocate nothing; where uses are predicted they are three compare-and-swaps, for the reference, its end, and an entry of the queue
// of uses. Otherwise Acquire, Release, Reserve and End take as long as the NIC's registrations.
//
// # Limits
//
// Addresses from 2^48 on are registered for one use only. The index needs 1/256 of the address space that it was ever used
// for. Under Predictive 2^16 parts of memory that is not registered are remembered; beyond that all of them are forgotten, and learnt
// anew. A region has at most 65535 references at once; who wants one more waits.
package regmgr
