// Package soft is a software NIC inside one machine, in real time: what a network card does with DMA, an engine
// thread per rank does with the kernel's process_vm_writev and process_vm_readv, while the program computes. It
// serves ranks that are processes, and equally ranks that are goroutines of one process. It is where overlap,
// first touch and the cost of registration are measured where no RDMA exists.
//
// # Terms
//
//   - Board: one rank's shared memory, which its peers map: a doorbell, the key table, and for each peer a link
//     (the lower rank's board holds it), a hazard, a record and a mailbox.
//   - Engine: what performs a rank's operations, and its thread: a goroutine locked to it; started by Open, ended by Close.
//     Others do its work too, one at a time (help.go): who posts a few bytes, and who polls and finds nothing; of long operations a
//     chunk at a time, after some polls in vain, for which an idle thread leaves them alone for a moment. Where the NIC is slowed
//     the thread keeps off the processor from which long operations are posted (aside_linux.go).
//   - Detour: the way by a buffer of a copy at which the kernel would be slow on some processors (detour_linux.go).
//   - Seat: a rank's place in a domain, with the ring of operations posted to it. Peer: one opening of that
//     rank's domain; when the rank is opened anew, another peer takes the seat.
//   - Hazard: the word by which an engine says which region of a peer it is inside.
//   - Mail: a request that the target's engine must perform, since it needs a thread there: atomics, which are the
//     CPU's own instruction, and what takes a receive buffer.
//
// # Life of a write
//
// Post checks the operation, puts it into the ring of its seat and rings the bell, a load if the engine is
// awake; or, if it is short and the engine has nothing else to do, performs it at once, without the ring where that is empty. The engine sees the link up and the local keys right, sets its hazard in the peer's board, and looks
// the remote key up there. If the table allows it, the bytes move: a system call into the other process, an
// ordinary copy within this one. The hazard is cleared, and a completion goes into the queue that Poll empties.
// Nothing of the target's takes part, not even its engine. Long operations move in chunks of 1 MiB, so that
// others have their turn and a registration that ends is left soon.
//
// A send, a write with immediate or an atomic is written into the mailbox for this rank in the peer's board,
// up to 16 at a time, and the peer's bell is rung. The peer's engine claims it, checks it against its own
// private tables, performs it (short payloads lie in the mail, longer ones it fetches) and answers in place.
// Where no receive buffer is posted the mail waits, and with it what is behind it on the endpoint.
//
// # Life of a connection
//
// An address is proved by a code over the job's name and secret; it tells the process, where its board lies
// and the token to map it. Connect opens a pidfd, reads the board's nonce through the kernel (which shows that
// copies are allowed, and that it is that opening of the domain and no other), maps it, and leaves this
// rank's address in a record there. The peer's engine has a helper do the same in turn and answers in its accept
// word. Then one compare-and-swap sets the link up, so two who connect at once meet. Disconnect and errors
// are compare-and-swaps on the same word; both engines flush what they find behind it. The end of a process makes
// its pidfd readable, a Close sets the board's state: either is reported once, as OpPeerDown.
//
// # Invariants (tested)
//
//   - F1: an engine touches a peer's region only between setting its hazard and clearing it, and only if it has found
//     the key valid in between. Deregister voids the key, then waits for the hazards. Both use sequentially
//     consistent atomics, so one of the two sees the other.
//   - F2: a request is performed at most once, and its asker knows: it was answered; or taken back by a
//     compare-and-swap before it was claimed, and never happens; or claimed by an engine that died, which
//     alone is in doubt.
//   - F3: operations on an endpoint are performed in the order posted: a write or read begins when all requests
//     before it are answered; requests of one rank are performed in their order; after an error the link is
//     broken before the error is answered.
//   - F4: nothing on a board is trusted. Indices are masked, requests are read once, and checked against private
//     tables. Who writes nonsense there harms what it has with that rank, not the rank.
//   - F5: a dead process holds up nobody: hazards of the dead do not count, receive buffers for what it was
//     sending go back to the queue, its seat is flushed.
//   - F6: Post, the engine and Poll allocate nothing (but when the completion queue must hold more than ever before).
//   - F7: an engine sleeps when it has nothing to do, on a futex in its board that Post and peers ring.
//   - F8: the engine is held by one thread at a time, and never across a wait; a domain's memory goes when its engine's
//     thread has ended, which holds it for that.
//
// # Order of bytes
//
// Writes become visible in the order posted. Within one write nothing is promised: the kernel copies with
// string instructions, and the last byte may be there before the first. So Caps.InOrderData is not set, and a flag is a
// write of its own: the kernel is called for it when it has finished with the data, or finds it behind them in the list of a bunch (file bunch.go), which it copies in order.
// Aligned words of 8 bytes have never been seen torn, between processes too.
//
// # Lock order
//
//	seat.mu (attaching a peer)
//	domain.mu (posting)
//	  softnic.Table.mu
//	  recvQueue.mu
//
// # Limits
//
// Ranks must be processes of one user, one pid namespace and one machine that may copy from each other: with
// Yama's ptrace_scope 1 each rank allows it when it is opened, with 2 or 3 it needs CAP_SYS_PTRACE, and Connect's
// error says so. A pid that is used again between a death and its report, some 100 us, is not noticed. Two threads
// of a rank compute and move; with more of both than processors they take turns. Only Linux has it.
//
// A peer that is stopped, as in a debugger, is not called gone: its memory can still be written and read, and what
// needs its engine (atomics, messages) waits until it goes on. Only Connect, Deregister and Close give up, after
// FailureTimeout, and a region in which it is stopped stays locked.
package soft
