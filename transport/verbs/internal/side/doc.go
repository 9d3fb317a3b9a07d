// Package side is the side channel of the verbs transport: how two ranks find, prove and tell each other what their queue
// pairs need to know, over a TCP connection that stays beside the pair and dies with its peer. It knows no NIC.
//
// # Terms
//
//   - Address: what Domain.Address publishes: rank, instance of its domain, where it listens.
//   - Hello: the dialer's first message, sent before anybody has proved anything.
//   - Link: a connection over which both sides have proved that they know the job's secret.
//   - Frame: a message of a link, all of one size: a word, perhaps with a card, perhaps with a serial number.
//   - Card: a queue pair as its other end needs to know it.
//
// # Life of a link
//
// The dialer's Greet sends its hello and checks the listener's proof; the listener's Answer reads the hello, sends a challenge with
// its own proof, and takes the first frame for the dialer's. Frames follow in either direction, at most one reader at a time. Interrupt
// ends a read that waits, HangUp says a last word and closes.
//
// # Invariants
//
//   - S1: nothing but a hello of fixed length is read from who has proved nothing, within the handshake's time limit.
//   - S2: a frame that was changed, repeated, sent in the other direction or on another connection is an error (TestProofTampered,
//     TestReplay, TestCutOff).
//   - S3: what a parser takes it writes again as it was (FuzzAddress, FuzzHello, FuzzFrame).
//
// # Limits
//
// Frames are authenticated, not encrypted. A handshake takes at most four seconds of wall-clock time, a last word half a second;
// both block, and everything here allocates: it is beside the data path. Send may be called by several goroutines.
package side
