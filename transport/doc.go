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
// # Rules of detail
//
// Post refuses, with an error, what can be seen from the operation alone: a kind that does not exist or that
// Caps lack, too many pieces, more bytes than MaxMessage or MaxInline, a misaligned atomic, an endpoint that
// never was. Keys, bounds and rights, this rank's and the target's, are reported by a completion. What is
// reported as an error is reported whether it was signalled or not, and breaks the endpoint.
//
// Success of a write with FlagLazy may be reported late: with that of a later operation on the endpoint without it, or with what the target posts to
// this rank next. Whoever waits for it sooner calls Hasten(EP), which domains have that make use of the flag; all others ignore it. A domain may also have Explain(Completion) error: the device's
// words for a completion that is not StatusOK, and the likely cause.
//
// What is posted to an endpoint that is broken, was ended, or is of an older incarnation is taken and reported
// as flushed. Disconnect of an older incarnation does nothing; Disconnect and then Connect makes a working
// endpoint again. The two ends of a connection may share a fate: an error, a Disconnect or a new Connect at
// one rank may break the other's end, which finds its operations flushed and connects anew.
//
// The completions of one endpoint are reported in the order posted. Post does not stay short for ever while
// somebody polls, even if nothing was signalled. A message for which the target has no receive buffer waits,
// and what is behind it on its endpoint with it. A receive completion carries the endpoint that Connect to
// the sender returns, which may be posted to without a Connect of one's own, and the Imm of the sender's OpSend or
// OpWriteImm; the latter uses up a buffer too. Buffers are used in the order posted.
//
// A rank with a connection to a rank that has closed its domain or died is told by one OpPeerDown, also when
// nothing is on the way; connecting to it is ErrPeerGone. After Close every method returns ErrClosed, and so
// does a Wait that was under way.
//
// # Concurrency
//
// Post, PostRecv, Register, Deregister, Connect and Wake may be called by any goroutine. Poll and Wait have
// one caller at a time. Nothing but Wait, Connect and Open blocks.
package transport
