// Package control is the channel between the launcher and each of its ranks, beside the data path: the launcher asks
// what a rank waits for and what it has counted, and tells it which ranks have ended.
//
// # Terms
//
//   - Port: the rank's end, an inherited socket whose number stands in PGAS_CONTROL_FD. Adopt takes it.
//   - Client: the launcher's end.
//   - Line: one JSON object and a newline, at most MaxLine bytes.
//
// # Life of a channel
//
// The launcher makes a socket pair per rank and a Client on its end. A rank of this library adopts the other end at once,
// so that its children do not inherit it, and runs Serve in a goroutine of its own; any other program leaves the descriptor
// alone, and the launcher's questions stay without an answer. When it finishes, a rank sends its counters unasked. Where
// somebody looks on, the launcher asks each rank for a Sample again and again; a rank that is not asked does nothing for it.
//
// # Invariants
//
//   - C1: no send blocks. What does not fit into the socket's buffer is not sent, and the channel is closed, because a line
//     may have been cut. So a rank whose launcher does not listen, and a launcher whose rank does not, both go on.
//   - C2: neither end keeps more than MaxLine bytes of input; a longer or broken line ends the channel with an error.
//   - C3: every question has its own number and its own deadline; a late answer is dropped.
//   - C4: an answer is cut to fit into a line: the waits that began last are left out first.
//   - C5: a sample holds so little that it fits. Flows that have changed and have no room come with the next ones.
//
// # Concurrency
//
// SendStats may be called beside Serve. All methods of Client may be called by any goroutine. Handler's methods are called by
// the goroutine that runs Serve, one at a time; they must not wait for a rank or for the launcher.
package control
