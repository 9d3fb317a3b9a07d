// Package verbs is the transport over RDMA hardware: reliable-connection queue pairs of libibverbs, on InfiniBand,
// RoCE and Soft-RoCE. One domain uses one port of one device, and uses it well: everything a NIC does by itself
// (write, read, write with immediate, 64-bit atomics, sends into a shared receive queue) is done by the NIC.
//
// # Terms
//
//   - port: one port of one device, named "mlx5_0:1". Its GID, an entry of its address table, is what the other end
//     of a queue pair sends to; over Ethernet it must be of RoCE v2.
//   - pair: this rank's end of one connection, a queue pair with the records of what was posted on it. Connecting
//     anew makes a new pair, of the next incarnation.
//   - link: the TCP connection beside a pair, over which the two ranks proved to each other that they know the job's
//     secret and exchanged queue pair numbers. It stays open as long as the pair lives: its end is how a rank learns
//     that its peer has ended the connection, closed its domain, or died, when nothing is on the way.
//   - ghost: a record that the NIC does not complete any more, because the pair has ended. It is reported as flushed.
//   - drain: a last operation that is posted to a pair when it has ended. Its completion says that the NIC has
//     finished with all buffers of the pair.
//
// # Life of a connection
//
// Connect dials the peer's listener, whose address is wire data from Address. After the proofs (package side) the two
// exchange queue pairs, take them through their states, and the pair is up. When both dial at once, the
// dial of the higher rank yields (meet.go). A pair ends by an error of an operation, by Disconnect, by the end of its
// link, or by Close, and the link takes the news to the other end, whose queue pair the error has broken too,
// silently. Then the queue pair is put into its error state and drained, the records left are reported, in order,
// and the queue pair is destroyed.
//
// A peer is called gone when it says goodbye, or when its link breaks, or its NIC does not answer, and the
// connection cannot be made again: at the first attempt where somebody answers that the peer is not there, within
// Provider.FailureTimeout where nobody answers, its process is known to live (transport.Config.Lives), or this rank's own port has no link. A rebuilt connection over which
// nothing gets through is the same as none. What either of the two lacks for one (file descriptors, queue pairs) is no end. It is called gone too when its NIC has refused an operation and nobody
// is there any more to answer for it (knock.go). The records of the broken pair wait for that verdict. A pair that has ended with the peer's word is made
// again by the next operation, or when a wait for the peer has lasted for a second (rejoin.go): it may have died since.
//
// # Life of an operation
//
// Post checks what the NIC would not survive (a misaligned atomic never completes on some devices), writes a record
// into the pair's ring and hands up to 64 operations for any pairs over in one crossing into C. Operations that are
// not signalled are signalled all the same once in a quarter of the ring, so that polling makes room. If nobody polls
// at that moment the same crossing takes the completions that there are (fresh), so that who waits for what a device does
// at once crosses once and not twice. Messages and writes with immediate are sent with a solicited event, for which alone the peer may sleep. Poll digests those first; else it takes up to 64 completions in one crossing. Each one's
// record is found, and records before it are done too.
//
// # Invariants
//
//   - W1: a pair has at most MaxPost records, and the completion queue has room for all records, drains and
//     receive buffers of all pairs at once. New pairs wait until old ones are drained.
//   - W2: records are reported in order; a record is reported once, by Poll, or silently if it was not signalled
//     and succeeded.
//   - W3: no queue pair is destroyed before its drain was polled, Close aside, or was missing at looks for more than half a second. Its slot is
//     another's when nothing comes of it any more.
//   - W4: a receive buffer that a failed message has used goes back to the queue. Only one in which message after
//     message fails is reported, with StatusLocalAccess.
//   - W5: every operation is reported in the end: a device that forgets one loses the pair after ten seconds, and after thirty where a
//     message may wait for its peer to post a buffer; later where a long FailureTimeout lets the NIC wait longer (overdue.go). A drain that it forgets holds nothing up (W3).
//   - W6: nothing that came over a link is acted upon before the peer has proved that it knows the secret.
//   - W7: completions are digested in the order in which the device has made them: Post takes none while fresh ones are left, and Poll none.
//
// # Lock order
//
//	peer.mu
//	  domain.poll
//	    domain.post
//	      domain.table (read), domain.events, domain.receives
//
// # Limits
//
// A write's completion means that the target's NIC has it and that what the NIC does for anybody comes after it. The
// atomics are atomic among themselves and not with the CPU's, unless the device says so (Caps.AtomicsCPU). An
// operation that is reported as flushed may have happened if it had been handed to the NIC; an atomic then is in
// doubt. Memory is charged against RLIMIT_MEMLOCK per registration, not per page. Caps.MaxPinned is what is left of that beside the rings of
// queue pairs and completion queues, where the driver pins them; they are short where it is little, and each of the ranks that are goroutines of one process has its part.
package verbs
