package tcp

import (
	"gopgas/internal/mem"
	"gopgas/internal/softnic"
	"gopgas/internal/wire"
)

// The answer to a long read is sent behind everything else that a batch has room for: two ranks that read much of each other at the same time would else
// do so one after the other. The first one's request comes along with what the other waits for before it asks for its own, and that one's request would set
// out behind a megabyte. So who polls, and finds more than such a request, leaves the answer for his next look, or for the post of his own request, whichever is first.

// longAnswer is what a peer has read and what is not in a batch yet.
type longAnswer struct {
	seq  uint64 // of the request
	src  mem.Range
	hold *softnic.Hold // released when the bytes are sent
}

// oweLocked keeps a long answer.
func (l *link) oweLocked(a longAnswer) {
	l.long = append(l.long, a)
	l.longBytes += a.src.Bytes
	l.lent++
	l.owed++
}

// ackLocked is how many of the peer's requests are done, with their answers in pend or further, where these are not.
func (l *link) ackLocked(owed []longAnswer) uint64 {
	if len(owed) > 0 {
		return min(l.performed, owed[0].seq)
	}
	return l.performed
}

// longLocked puts long answers into pend: all, or as many as there is room for, and at least one.
func (l *link) longLocked(all bool) {
	n := 0
	for n < len(l.long) && (all || n == 0 || l.pend.takesMore()) {
		a := &l.long[n]
		n++
		l.frameLocked(wire.Header{Kind: wire.Data, Seq: a.seq, Len: uint32(a.src.Bytes)}, l.long[n:])
		l.pend.refer(a.src, a.hold)
		l.longBytes -= a.src.Bytes
	}
	left := copy(l.long, l.long[n:])
	clear(l.long[left:])
	l.long = l.long[:left]
}

// lendsLongLocked is batch.lends of what is in no batch yet.
func (l *link) lendsLongLocked(addr uint64, n int) bool {
	for i := range l.long {
		if overlaps(l.long[i].src, addr, n) {
			return true
		}
	}
	return false
}

func overlaps(r mem.Range, addr uint64, n int) bool {
	return r.Addr() < addr+uint64(n) && addr < r.Addr()+uint64(r.Bytes)
}

// dropLongLocked forgets them.
func (l *link) dropLongLocked() {
	for i := range l.long {
		l.long[i].hold.Release()
	}
	l.long, l.longBytes = nil, 0
}

// setLeftLocked says whether something is left to the sender, or to who polls. Of a link that is down nothing is.
func (l *link) setLeftLocked(some bool) {
	some = some && l.state != stateDown
	if l.left.Load() == some {
		return
	}
	l.left.Store(some)
	if some {
		l.d.lefts.Add(1)
	} else {
		l.d.lefts.Add(-1)
	}
}

// leaveToPollerLocked leaves the rest to who polls without a pause. He says that he polls no more before he looks for what was left; this is the other way round, so
// one of the two has the sender wakened.
func (l *link) leaveToPollerLocked() {
	l.setLeftLocked(true)
	if l.d.hushers.Load() == 0 {
		l.wakeSender()
	}
}

func (l *link) wakeSender() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// help sends what was left, for who polls.
func (d *domain) help() {
	for _, l := range *d.open.Load() {
		if l.left.Load() {
			l.help()
		}
	}
}

// handOn has the senders send what was left to who polls no more.
func (d *domain) handOn() {
	if d.lefts.Load() == 0 {
		return
	}
	for _, l := range *d.open.Load() {
		if l.left.Load() {
			l.wakeSender()
		}
	}
}
