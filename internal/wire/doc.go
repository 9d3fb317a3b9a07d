// Package wire is the language that TCP NICs speak: the handshake by which two ranks prove to each other that
// they belong to one job, and the frames that follow. It turns structs into bytes and back and does nothing else.
//
// # Terms
//
//   - Frame: a header, whose length depends on its kind and on whether the payload is long, and Len bytes of payload where the kind has one.
//   - Request: a frame that asks the other side for an operation. Requests are numbered; Seq is the number.
//   - Answer: what comes back for a request. Ack, which every frame carries, says that all requests with lower
//     numbers are done and that their answers lie before this frame or in it.
//   - Hello, Challenge, Proof, Welcome: the four messages of the handshake, in this order. The side that dialled
//     sends the first and the third.
//
// # Life of a connection
//
// Hello names the format's version, the job and both ranks, and brings a nonce. Challenge brings the other nonce
// and a MAC under the job's secret over all of that. Proof is the same from the other side. Welcome, which has
// a MAC too, opens the connection. From then on both sides send frames, requests and answers mixed.
//
// # Invariants
//
//   - W1: no decoder reads beyond the bytes it is given, allocates, or panics, whatever they are.
//   - W2: what a decoder accepts, the encoder turns into the same bytes: there are no two forms of one frame.
//   - W3: a decoder accepts no reserved bit, no unknown kind and no length above MaxPayload, so that a later
//     version can use them.
//   - W4: the first twelve bytes of Hello and of Challenge, a mark and the version, keep their meaning in all
//     versions, so that a mismatch can be told apart from noise.
//
// # Limits
//
// All numbers are little-endian. Frames are neither encrypted nor authenticated one by one: the secret keeps
// strangers out, it does not protect against who can change packets on the way.
package wire
