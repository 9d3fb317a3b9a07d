// Package am carries small active messages over a NIC's sends: a request to a rank makes its handler run there and
// brings a reply. It is how operations travel that the NIC cannot do itself.
//
// # Terms
//
//   - Request: a handler's number, four words, and a payload of up to MaxPayload bytes. Each gets one Reply: a
//     status and up to MaxPayload bytes.
//   - Credit: the right to have one request to one rank unanswered. A rank has the same number for every other.
//   - Gathered: of a request whose payload is no copy: the NIC takes it from the caller's memory, behind the header from a buffer. That
//     memory is lent.
//   - Buffer: memory for one message. A rank keeps as many posted as all others together have credits for, and one
//     for each of its own requests that is unanswered.
//
// # Life of a request
//
// Request takes a credit and a send buffer, or says that there is none now: then the caller makes progress and tries
// again. At the target Arrived runs the handler and posts the reply; at the origin Arrived returns the reply to the
// caller, with the credit back.
//
// # Invariants
//
//   - A1: a request is sent only with a credit, so a buffer for it is posted at the target, and one for its reply
//     here. Nobody ever waits for a buffer at the other side, hence no deadlock when all send to one.
//   - A2: a handler does not wait and sends nothing but its reply. A request for whose reply there is no buffer yet, and
//     a reply that the NIC has no room for, are kept in order; there are never more of them than requests received.
//   - A3: replies are matched by slot and sequence, so a stray or late one is dropped.
//   - A4: a message that was flushed because its connection broke is held and sent again over the next one, which the
//     caller makes. The target performs a request once, however often it comes: it knows the newest of each slot.
//   - A5: who has lent memory is told of his request's end, in whatever way it ends, when the NIC does not have it any more: an answer that
//     arrives before the sending was reported waits for that, and so does the news that the rank is lost.
//   - A6: requests of one goroutine to one rank arrive in the order in which it has made them, also where connections break: no request overtakes one that is to be
//     sent again.
//
// # Concurrency
//
// Request, Gather and Holds may be called by any goroutine. Arrived, Again and Flush are called by the NIC's poller, one at a time, and the
// handler runs in them; it holds no lock of this package.
package am
