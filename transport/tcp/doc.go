// Package tcp is a NIC made of software for networks without RDMA: the domain of the target performs a remote
// operation while the target's program computes.
//
// # Terms
//
//   - Link: one TCP connection between two ranks, which is one incarnation of an endpoint. Requests of both
//     sides and their answers share it.
//   - Reader, sender: the two goroutines of a link. The reader performs what the peer asks and takes its answers;
//     the sender sends what the socket did not take at once, and what is long, unless somebody who polls without a pause does.
//   - Lazy: of a request that its target is not asked to acknowledge (transport.FlagLazy).
//   - Lull: the time between short waits that follow each other soon, in which a link stays hushed (lull.go).
//   - To hush a link: to have the system not wake its reader, for as long as somebody reads it who polls without a pause (hush.go).
//   - Gulp: for how much of a long payload the reader is wakened (gulp.go).
//   - To linger: to poll for a peer's next request without having one of one's own under way (package sched).
//   - Batch: frames on their way to the socket, in one system call as far as it takes them. Short payloads are
//     copied into it; long ones are sent from the memory where they lie.
//   - Window: how many requests a peer may have outstanding here; its MaxPost.
//   - Stranger: who has not proved yet that it knows the job's secret.
//
// # Life of an operation
//
// Post copies the operation, and an inline payload, into the ring of its link and then sends, for each link, all
// that is new in one call. The reader at the target decodes many frames from one call, looks each key up, moves
// the bytes (those of a long payload straight to their place) and answers: with the old value, with what
// was read, or with an acknowledgement that stands for many requests. The initiator's reader, or a Poll that has
// found nothing twice and looks at the socket itself, completes what was acknowledged, in the order posted. A
// place in the ring is free when Poll has taken the completion; for what reports nothing, when Poll has looked.
//
// A request that cannot be done yet, because it needs a receive buffer or would overwrite memory that an earlier
// read has not brought away, is told to wait; what follows it is thrown away and sent again when it is called
// for. So nothing piles up, and answers wait behind no more of this rank's requests than a batch takes.
//
// # Life of a link
//
// The first Connect dials. Both sides prove that they know the job's secret by a MAC over both nonces, the job, both
// ranks and both domains; only then is anything else read. An address names the domain: the successor of a rank that
// has died refuses what was meant for the dead one. When two ranks call each other at once the lower rank's call
// is the one. The dialling side says which incarnation it knows, and a link not newer than that is dead. The called side has no endpoint until the caller has spoken over
// the link, which it does at once: till then its end says nothing (met.go).
//
// A link ends by Disconnect, by a refused request or by an error at either side; it says so and what it has done,
// and the peer's rank stays alive. It is made again by the next operation, or when a wait for the peer has lasted for a
// second (rejoin.go): that may have died since. A link that ends without a word, or over which nothing came for the
// failure timeout (each side speaks five times as often), means that the peer is gone. An atomic that may have
// been done then is reported in doubt.
//
// A rank that refuses a call is gone too, unless its process is known to live (transport.Config.Lives): then it is called again
// until the failure timeout is over or its end is known. So is one that does not answer a call: a first message may be lost, and a busy
// rank late. The first try may take an eighth of that time, later ones longer.
//
// # Where it listens
//
// transport.Config.Device names an interface ("eth0": all its addresses) or an address of this machine, but no link-local one of IPv6. Without it
// the domain listens on 127.0.0.1, or, with Config.AcrossNodes, on every address of the interfaces that are up,
// without loop-back and point-to-point ones and link-local addresses, IPv4 first, at most 8; a peer tries them
// in this order. It never listens on 0.0.0.0. Ports are the system's choice.
//
// # Invariants (tested)
//
//   - C1: before the secret is proved nothing but messages of fixed length is read, within the failure timeout,
//     from a bounded number of strangers.
//   - C2: whatever a peer sends, only memory that a key gives is touched, at most a window of answers is owed
//     beside those that are being sent, and the worst that happens is the end of its link.
//   - C3: a region that is received into is held for one system call at a time; one that is sent from, until it
//     has been sent, which the failure timeout bounds.
//   - C4: what is outstanding on a link that has ended is reported when nobody touches its memory any more.
//   - C5: when a link is made nothing more is performed on an older one with the same rank.
//   - C6: posting, performing and polling allocate nothing.
//   - C7: no goroutine waits for a peer but in the poller, with a bound in time; Post and Poll never do.
//   - C8: a link is hushed only while somebody polls without a pause who has an operation under way on it, or who lingers and to whom something came over it last, and in a
//     lull, which a guard ends; what has come by the end of that wakes the reader then.
//   - C9: the reader is never to be wakened for more than is to come of the payload under way.
//
// # Lock order
//
//	domain.mu
//	  link.rmu                (who reads)
//	    link.gulping          (held during the system call)
//	    link.mu               (given up during a system call that sends; writing keeps others out)
//	      recvQueue.mu, completions.mu, Table.mu
//
// # Limits
//
// Frames are not encrypted and not authenticated one by one; see package wire. Atomics are the target CPU's. A
// completed write is visible at the target. Within one write bytes land in any order, words of 8 or 4 bytes on
// their boundary at once. Two operations that are not fenced may be under way together as far as the initiator's
// memory is concerned: a read may bring its bytes while a later write's source is fetched. Only on Linux.
package tcp
