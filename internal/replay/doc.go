// Package replay runs recorded or synthetic traces of transfers against policies of registration, in virtual time: the
// real predictor and the real rules for idle cores over a model of a registration cache, with any cost model. The same
// trace, configuration and seed give the same result, to the byte.
//
// # Terms
//
//   - Drift: by how much a rank is behind its trace, because of what its policy made it do inside its calls. Computation
//     and transfers take as long as recorded; their sum is the critical-path time.
//   - Call, completion, turn: the three things that happen to a rank: the program calls, the transfer is done, the helper
//     takes a step. They are handled in the order of virtual time over all ranks of a node.
//   - Meter: bytes registered over time. A region counts from the start of its registration to the end of its
//     deregistration; overlapping regions count twice, as a NIC charges them.
//   - Shape: a synthetic trace with the communication and computation phases of a program (BT, LU, SP, CG, FT, and the
//     microbenchmark with and without reuse of buffers).
//
// # Life of a call
//
// A call below the threshold, or with a peer on its own node, is no business of the NIC's registrations. Else the policy
// decides: copy, or acquire the pages it touches: hit, wait for the helper that is registering or deregistering them, or
// register on demand. The transfer then takes as long as recorded. On completion the reference is dropped and the
// policy acts: keep, deregister, or leave a record for the helper.
//
// # Invariants
//
//   - Y1: no wall clock, no map order, no goroutine takes part.
//   - Y2: a region with references is never deregistered, and no rank exceeds its limit.
//   - Y3: each call with a NIC ends up as exactly one of: small, copy, hit, late, first miss, later miss.
//
// # Limits
//
// Ranks do not wait for each other: a rank that is delayed delays nobody else. A copy costs bytes over one bandwidth,
// whatever the caches hold. Helpers on one core take turns without preemption.
package replay
