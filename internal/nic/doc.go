// Package nic is one rank's NIC as those use it who carry transfers out: it connects with other ranks, posts operations and messages,
// hands their ends out, makes broken connections anew, and waits. It knows ranks, addresses and keys. What memory lies there, which way a
// transfer takes and what it costs is package proto's, which is its Client.
//
// # Terms
//
//   - Piece, transfer, kept: as in package inflight, whose table is used here under a lock.
//   - Handle: a transfer, for who waits for it.
//   - Client: who has the NIC's operations carried out. What a method cannot return him he is told.
//   - Poller: whoever has the one place at which completions are taken: a goroutine that waits, or else the one that attends.
//   - To doze: to sleep, of who attends, for what peers send alone, since the NIC is used again and again by who polls.
//   - Held back: an operation for which nobody waits yet, or of a crowd, that goes with the next that is posted.
//   - Crowd: goroutines of this rank that wait for ends, where there are more than cores for them. To look: to poll; to sit: to leave that to others of the crowd.
//   - In time: of what is held back and nobody waits for, that it goes with the next post, behind some looks, or by itself soon (intime.go).
//   - Lazy: an operation of whose end the NIC may tell late (transport.FlagLazy); to hasten: to have it told now.
//   - Mender: who makes a broken connection anew. It has the endpoint for itself meanwhile.
//   - Flushed: what the NIC gives back undone since its connection broke. To flush: to wait until all is over that was begun to a rank before.
//   - Tied: of a piece, with something of the client's under the NIC's lock (a firehose) that ends with it.
//
// # Life of an operation
//
// Its owner takes a piece (Acquire), and a transfer of it if somebody is to wait for it by itself (Begin and Join, BeginOne,
// Keep); he fills the piece's Buffer, or lends memory of his own (Lend, if something ends with that), and calls Post, or PostLaid for what Lay has written. That waits for the
// connection and for room. Who waits for nothing else needs no transfer (Awaited, Await). A short operation is taken, entered and written in
// one passage through the lock (TryLay), posted by Send, and one that brings something waited for by Carry. From
// there on the piece is the poller's. When the NIC reports it what it brings is copied to where JoinInto says, the client lets go of
// what he has lent (Landed), the piece is free, and its transfer, if that was its last part, over. What has no transfer leaves its
// error to Flush.
//
// Operations for which nobody waits (PostLaidLater) are held back until there are Batch of them or the rank does anything else with the
// NIC, so that they cross into it together; so do those of a Chain. A put to the bytes behind the last of them becomes a part of that
// (Extend). What a pipe sends (TryPost) waits for nothing and is known to its owner by a name of his own; where others have all pieces, who may wait for
// the pipe's end, it takes one of those that are kept aside.
//
// Over a NIC that is told who polls (sched.Hushable), each of whose posts and polls is a system call, who waits for an end may find that others of the rank do: where
// there are many (crowd.go), as many look as the rank has cores, and the others sit. A short operation is then held back until the next look of those. Of many who wait for
// room the first does (line.go).
//
// A request to a target's CPU (Ask) is a piece too; its answer settles it. Requests with cookies of the client's (TryAsk) are none.
//
// # Life of a connection
//
// The first operation to a rank connects, and the others wait meanwhile. An error of any operation breaks the connection; a mender
// then waits until all that was posted on it is reported, connects, and posts again what was flushed, in its order. Who has
// something to post waits for the end of that. Where nothing was flushed the next operation connects. Messages that were flushed are
// sent again too, and performed once (package am). A rank that cannot be reached is given up: what was to be posted again, and requests to it, end
// in errors, and the client ends what else it has under way there. The next operation tries once more, unless the rank is gone. Who only waits for a
// rank, for longer than a second, has a connection made again that ended without a word on the rank's life (seek.go), if the NIC has such.
//
// # Invariants
//
//   - N1: a piece's buffer, and what its operation was lent, belong to the NIC until its completion was polled, whoever has stopped
//     waiting. The client is told of the end of each piece to which he has lent something once, before anybody who waits for it can learn of it.
//   - N2: an asynchronous error is reported once, by the first Flush of its target that follows; that of a put or a fetching atomic
//     with a handle by whoever asks first, the handle or the Flush.
//   - N3: a rank known to be gone ends every wait that names it within one slow step of the waiter; Quit ends all.
//   - N4: what was flushed is posted again, at most three times, in its order and before anything newer; an atomic whose
//     effect is unknown is not. One break flushes an operation once, so what meets no more than three breaks is done. What
//     changes the target's memory goes on as long as such operations behind it do: none of them tells of what was given up. A
//     write that was done and not acknowledged is then done again, which only somebody can notice who has seen it before
//     its flush and has changed the memory since. Of one that is lazy that time lasts until the peer's next frame.
//   - N5: what is held back goes before anything that is posted after it. It grows only while it is the last, is not being posted, and nobody was
//     told that it is ordered before what follows.
//   - N6: when a poller lets go, all that is waited for is something that the NIC will report, so everybody may sleep, unless the client
//     is Watchful.
//   - N7: no operation allocates that goes well, but for a wait that has to step.
//   - N8: who attends and dozes (doze.go) is wakened by what peers send, not by the ends of this rank's operations: whatever goes on only if he
//     learns of such an end keeps him from it, or wakes him, but for what may be late by napDozing behind the last use.
//   - N9: nothing is lazy that somebody waits for (lazy.go): who posts it notes that and looks for who waits, who waits counts himself and looks for what was noted.
//   - N10: what a crowd holds back is posted by who looks. Who holds something back looks afterwards whether anybody does, and who looks no longer, or may sleep, whether
//     something is held back, so one of them posts it. Where some sit somebody looks; a sleep of theirs has a limit all the same.
//   - N11: a flush ends with the last of what was begun to its rank before it (begun.go), whatever others begin there meanwhile.
//   - N12: what shows others what was sent before it (Show) is not carried out behind what has failed there: the NIC keeps order up to the break, and the mender does not post again
//     what was flushed behind a failure.
//
// # Lock order
//
//	poll           (at most one poller; try-lock only; what the poller alone counts, and the pieces that he gives back, need no other)
//	  later.pushing  (try-lock only)
//	    later.mu       (not held while the NIC is called)
//	  crowd.mu       (mu may be taken under it)
//	  those of lines (nothing is taken under them)
//	  mu             (Lock: the table, addresses, errors, what is to be posted again; never held across a wait, a post or a registration)
//	    what the client has under it: Client.LetGoLocked, and its own between Lock and Unlock
//
// The client may hold locks of its own while it calls here, but none that Client's methods take.
//
// # Limits
//
// There are 256 pieces. Who holds some that only he can free must not wait for more: TryAcquire, and Keep without leave to wait, are for
// him. One connection is kept with each rank.
package nic
