// Package replay runs recorded or synthetic traces of transfers against policies of registration, in virtual time: the
// real predictor, the real rules for idle cores and the real firehose over a model of a registration cache, with any cost model.
// The same trace, configuration and seed give the same result, to the byte.
//
// # Terms
//
//   - Drift: by how much a rank is behind its trace, because of what its policy made it do inside its calls. Computation
//     and transfers take as long as recorded; their sum is the critical-path time.
//   - Call, completion, turn, arrival: what happens to a rank: the program calls, the transfer is done, the helper takes a step, a
//     message about buckets comes. It is handled in the order of virtual time over all ranks of all nodes.
//   - Account: what a rank has registered, for itself and for others: the one budget, and what the meters read.
//   - Flow: a call whose transfer needs buckets of another node's memory. Lender: what registers buckets for others.
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
// With Config.Hose the transfer, however small, needs its buckets too: its pieces ask the rank's firehose.Holder, which has a
// move sent where they are not held. The move takes a latency, waits until the owner has done with earlier ones, and takes what the
// owner's firehose.Server has deregistered and registered, one after the other; then the answer takes a latency. Meanwhile this
// rank's own side is prepared. A piece travels when both are there and the piece before has left. Under a policy with helpers the uses of buckets
// that are worth it (package foresight) are told to the rank's helper, which asks for them before their next use.
//
// # Invariants
//
//   - Y1: no wall clock, no map order, no goroutine takes part.
//   - Y2: a region with references is never deregistered, and no rank exceeds its limit at any nanosecond, whatever it has
//     registered for whom: a registration counts from its beginning to the end of its deregistration.
//   - Y3: each call with a NIC ends up as exactly one of: small, copy, hit, late, first miss, later miss.
//
// # What is the library's, and what is not
//
// Predictor, seats, Holder, Server and foresight are the library's code. The cache is not: regmgr's registers real memory and waits, this one
// takes virtual time. A test has both decide about the same transfers, under every policy without a helper. Whoever finds the budget
// full of what is just being deregistered copies, in both.
//
// # Limits
//
// Ranks do not wait for each other, but for answers: a rank that is delayed delays nobody else. Its calls are one after the other,
// as if one goroutine made them: while one waits for a bucket none begins. A copy costs bytes over one
// bandwidth, whatever the caches hold. Helpers on one core take turns without preemption. Exposures are never withdrawn: what is held of
// freed memory goes when room is needed. A round trip is known from the start, which
// the library measures. Whose a rank's memory is no trace tells, so what regmgr does for the Go heap's sake is left out.
package replay
