// Package transport is the seam to the machine: the types that every NIC, real or made of software,
// implements, and nothing else. No code of ours above it may assume shared memory; no code below it knows
// what a window is.
//
// # Terms
//
// A Provider opens a Domain: one NIC as one rank uses it, with the endpoints, registrations and the
// completion queue that belong to it. An EP names a connected peer. A Region is memory that the NIC may touch:
// its LKey is used by operations of this rank, its RKey is plain wire data and lets a peer name the memory.
// A Mapper is not a NIC: it lets ranks of one node map each other's exposed memory and then use loads, stores
// and the CPU's atomics.
//
// # Life of an operation
//
// Post takes a batch of operations for any endpoints in one crossing and returns how many it took; a short
// count is back-pressure, not an error. Poll reports completions, many in one crossing. An operation without
// FlagSignaled reports nothing when it succeeds; it is done when a later signalled operation on the same
// endpoint is.
//
// # Invariants (tested by transporttest)
//
//   - T1: every signalled operation completes exactly once, in success or in error.
//   - T2: operations to one endpoint are performed at the target in the order posted, when Caps.OrderedWrites
//     is set; the completion of one implies that of all earlier ones on the endpoint.
//   - T3: after an error on an endpoint everything not yet reported is reported as flushed; an atomic whose
//     effect is unknown is reported StatusInDoubt and never replayed.
//   - T4: operations in flight are bounded by what Post accepts, so that no completion is ever lost.
//   - T5: a key is checked where the memory is. Out of bounds, revoked or forbidden touches no byte.
//   - T6: the target's program takes no part: a remote operation is performed while it computes.
//   - T7: the source of an inline operation may be reused when Post returns; any other buffer belongs to the
//     NIC until its completion has been polled.
//
// # Concurrency
//
// Post, PostRecv, Register, Deregister, Connect and Wake may be called by any goroutine. Poll and Wait have
// one caller at a time. Nothing but Wait, Connect and Open blocks.
package transport
