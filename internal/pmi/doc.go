// Package pmi speaks PMI-1.1, the line protocol by which the processes of a parallel job find each other
// through their launcher. It has the wire format, used by both ends, and the client's end.
//
// # Terms
//
//   - Server: the launcher (Hydra, Slurm's pmi2 plugin, Flux, pgasrun) or its agent on this machine.
//   - Message: one line, "cmd=NAME key=value key=value\n". One space separates, nothing is escaped, and a value
//     may contain '=' since only the first one of a field separates.
//   - KVS: the job's key-value space. What one rank puts, every rank can get after the next barrier.
//
// # Life of a client
//
// Connect takes the inherited descriptor PMI_FD, or dials PMI_PORT, and says "init". Then Put, Barrier, Get as
// often as wanted; Finalize is the last message. Leaving without it is what makes a launcher treat the
// process as crashed, so the connection stays open until the program ends.
//
// # Invariants
//
//   - P1: one request is in flight per connection and is sent in one write: Slurm reads one request per read
//     and Hydra answers in order. Abort alone may overtake a request that is waiting for its answer; and, to pgasrun only,
//     the question who is missing in the barrier that this rank gives up, which is answered in the barrier's stead.
//   - P2: fields of a request go out in the order the protocol's text gives them, because some servers read
//     by position. Fields of an answer are found by name; unknown ones are ignored; a missing rc means 0.
//   - P3: no line longer than MaxLine is ever buffered, and no input makes Parse panic.
//   - P4: after an error on the connection (the server has gone, the caller's context ended, an answer that makes no
//     sense) the client is broken for good: request and answer may have parted. Every later call says so.
//   - P5: the descriptor is close-on-exec, so that programs a rank starts do not speak on its behalf.
//
// # Concurrency and limits
//
// All methods of Client may be called by any goroutine; requests queue behind each other. Every method that waits
// takes a context and returns promptly when it ends. Keys are at most MaxKey bytes, values MaxValue; servers
// cut longer ones without a word or hang, so the client refuses them. Portable values consist of
// visible ASCII and are at most PortableValue bytes.
package pmi
