// Package transporttest holds what a NIC is tested with, and a NIC to test others with.
//
// # Parts
//
//   - Run is the conformance suite. Every provider passes it unchanged; a test is left out only where a bit of
//     Caps says that the NIC has no such thing.
//   - Fabric is the loop-back NIC: an in-process provider whose ranks are goroutines. Nothing above the seam
//     can assume shared memory as long as it is tested on it, and the race detector sees every byte it moves.
//   - Faulty and Trace wrap any domain: the first injects faults by a seeded plan, the second records what
//     crossed the seam.
//   - SkipUnless is the only way a provider's tests may skip.
//
// # Life of an operation on the loop-back NIC
//
// Post checks what can be seen from the operation alone, copies it (with an inline payload) into the queue of
// its endpoint and rings the agent, a goroutine that belongs to the posting rank's domain. The agent looks the
// keys up in the tables of both ranks, moves the bytes and puts a completion into the poster's queue. A place
// in the endpoint's queue is free again when the completion has been polled; for an operation that reports
// nothing, when a later Poll has looked.
//
// The agent is not the poster and not the target: the poster must really wait, and the target's program takes
// no part. A message for a rank without a receive buffer waits, and with it all later operations on its
// endpoint, until the target posts one or is gone.
//
// A connection has two ends, one at each rank, and one fate, as a pair of queues in hardware has: an error at
// one end breaks both, and each rank flushes what it has outstanding and connects anew.
//
// # What the race detector sees
//
// Payloads of exactly 8 or 4 bytes on their natural boundary are atomic stores and loads, everything else is
// an ordinary copy. So a flag put after data orders the data, a flag may be polled with atomics, and an
// unsynchronised access by the program beside a put or a get is reported. The queues are built so that the
// agent hands its order on only through Poll, a flag or a message: a source reused too early is reported too.
//
// # Invariants of the loop-back NIC
//
//   - L1: an endpoint holds at most MaxPost operations that were posted and not yet polled, so the completion
//     queue is bounded by the endpoints and the receive buffers.
//   - L2: an operation is posted, performed and reported on exactly one incarnation; a post to an older one is
//     reported as flushed, under the incarnation it was posted to.
//   - L3: remote access holds the target's region in read mode for the whole copy; Deregister and Close take
//     it in write mode, so no byte is touched after they return.
//   - L4: posting, performing and polling allocate nothing.
//
// # Lock order
//
//	Fabric.mu
//	  domain.mu
//	    table.mu
//	      region.mu
//	        recvQueue.mu
//	          completions.mu
//
// # Limits
//
// The ranks of the suite are domains in this process: it looks at the target's memory itself. A target in
// another process is tested by the litmus and model tests of the packages above.
//
// On processors that do not keep stores in order the loop-back NIC orders the operations of an endpoint by the
// locks and atomics between them; its OrderedWrites has been shown by test on amd64 only.
package transporttest
