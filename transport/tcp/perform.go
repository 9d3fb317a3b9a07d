package tcp

import (
	"gopgas/internal/mem"
	"gopgas/internal/softnic"
	"gopgas/internal/wire"
	"gopgas/transport"
)

// frame handles a frame that is there as a whole.
func (l *link) frame(payload []byte) error {
	in := &l.in
	h := &in.h
	if !h.Kind.IsRequest() {
		return l.answer(payload)
	}
	turn, err := l.turn()
	if err != nil || !turn {
		return err
	}
	if bytes := max(len(payload), 8); h.Kind != wire.Read && h.Kind != wire.Send && l.lentOut(bytes) {
		return nil
	}
	switch h.Kind {
	case wire.Write:
		l.write(payload)
	case wire.WriteImm, wire.Send:
		l.message(payload)
	case wire.Read:
		err = l.read()
	default:
		err = l.atomic()
	}
	if err != nil {
		return err
	}
	return l.heardAck(h.Ack)
}

// turn reports whether the request under way is the one to be done next. What follows a request that waits for a
// receive buffer is not; anything else out of turn is no honest peer's, and neither is one that waits and comes again uncalled.
func (l *link) turn() (bool, error) {
	in := &l.in
	if in.h.Seq == in.expect {
		if in.starved && l.toldToWait() {
			return false, errProtocol
		}
		in.starved = false
		return true, nil
	}
	if in.starved && in.h.Seq > in.expect && in.h.Seq-in.expect < uint64(l.window) {
		return false, nil
	}
	return false, errProtocol
}

// toldToWait reports whether the peer has yet to hear that it may go on.
func (l *link) toldToWait() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waits
}

// lentOut reports whether the request under way would change memory that an earlier read has not brought away yet,
// and if so asks the peer to send it again later. To wait for that here could hold up the answers that let the
// peer take what is on the way.
func (l *link) lentOut(bytes int) bool {
	in := &l.in
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lent == 0 || !l.cur.lends(in.h.RAddr, bytes) && !l.pend.lends(in.h.RAddr, bytes) && !l.lendsLongLocked(in.h.RAddr, bytes) {
		return false
	}
	l.waitLent = true
	l.notReadyLocked()
	return true
}

// notReadyLocked has the peer wait with the request under way.
func (l *link) notReadyLocked() {
	l.in.starved, l.in.say = true, true
	l.waitSeq, l.waits = l.in.expect, true
	l.performed = l.in.expect
	l.longLocked(true) // all before it is answered
	l.headerLocked(wire.Header{Kind: wire.NotReady, Seq: l.in.expect})
}

// returnedLocked takes back memory that reads have brought away.
func (l *link) returnedLocked(regions int) {
	l.lent -= regions
	if l.lent == 0 && l.waitLent {
		l.waitLent, l.waits = false, false
		l.headerLocked(wire.Header{Kind: wire.Ready, Seq: l.waitSeq})
	}
}

// did takes the request under way as done. The peer hears of it when the batch is.
func (l *link) did() {
	l.d.sched.Served()
	l.in.expect++
	l.in.wanted = l.in.wanted || l.in.h.Flags&wire.AckWanted != 0
}

// put moves a payload to its place; a word in one store, because a program may poll it.
func (l *link) put(dst mem.Range, payload []byte) {
	l.in.one[0].Mem = mem.Of(payload)
	softnic.Gather(dst, l.in.one[:])
}

func (l *link) write(payload []byte) {
	h := &l.in.h
	dst, hold := l.d.table.Hold(h.RAddr, h.RKey, len(payload), transport.RemoteWrite)
	if hold == nil {
		l.refuse(transport.StatusRemoteAccess)
		return
	}
	l.put(dst, payload)
	hold.Release()
	l.did()
}

// message does what uses up a receive buffer.
func (l *link) message(payload []byte) {
	in, h := &l.in, &l.in.h
	imm := h.Kind == wire.WriteImm
	var dst mem.Range
	var hold *softnic.Hold
	if imm {
		if dst, hold = l.d.table.Hold(h.RAddr, h.RKey, len(payload), transport.RemoteWrite); hold == nil {
			l.refuse(transport.StatusRemoteAccess)
			return
		}
		defer hold.Release()
	}
	if !l.takeRecv() {
		return
	}
	if !imm {
		b := in.recv.Buf
		if len(payload) > b.Mem.Bytes {
			l.arrived(transport.StatusTooLong, 0)
			l.refuse(transport.StatusTooLong)
			return
		}
		if hold = l.d.table.HoldLocal(b.Mem, b.LKey, transport.LocalWrite); hold == nil {
			l.arrived(transport.StatusLocalAccess, 0)
			l.refuse(transport.StatusRemoteAccess)
			return
		}
		defer hold.Release()
		dst = b.Mem.Slice(0, len(payload))
	}
	l.put(dst, payload)
	l.arrived(transport.StatusOK, len(payload))
	l.did()
}

// takeRecv takes a receive buffer for the request under way. Where there is none the peer is told to wait.
func (l *link) takeRecv() bool {
	in := &l.in
	l.mu.Lock()
	defer l.mu.Unlock()
	l.called = false
	// Under mu, so that the call to send it again cannot overtake the word to wait.
	r, ok := l.d.recvs.take(l)
	if ok {
		in.recv, in.hasRecv = r, true
		return true
	}
	l.notReadyLocked()
	return false
}

// arrived reports the receive buffer that the request under way has used up.
func (l *link) arrived(s transport.Status, bytes int) {
	in := &l.in
	in.hasRecv = false
	l.d.report(entry{c: transport.Completion{
		Cookie: in.recv.Cookie, EP: l.ep, Kind: transport.OpRecv, Status: s, Bytes: uint32(bytes), Imm: in.h.Imm,
	}})
	in.recv = transport.Recv{}
	l.news.Store(true)
}

// callAgain asks the peer for the request that had to wait. It reports whether the peer still can send it.
func (l *link) callAgain() bool {
	l.mu.Lock()
	up := l.state == stateUp
	if up {
		l.called, l.waits = true, false
		l.headerLocked(wire.Header{Kind: wire.Ready, Seq: l.waitSeq})
		l.flushLocked()
	}
	l.mu.Unlock()
	l.announce() // it may have ended meanwhile
	return up
}

// answerLocked counts one more answer in pend. It reports whether the peer may have so many.
func (l *link) answerLocked() bool {
	l.owed++
	return l.owed <= l.window
}

func (l *link) read() error {
	h := &l.in.h
	n := int(h.Len)
	src, hold := l.d.table.Hold(h.RAddr, h.RKey, n, transport.RemoteRead)
	if hold == nil {
		l.refuse(transport.StatusRemoteAccess)
		return nil
	}
	l.did()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.performed = l.in.expect
	if n > gulpMost {
		l.in.longReads++
	}
	if n > copyMost {
		l.oweLocked(longAnswer{seq: h.Seq, src: src, hold: hold})
		if l.owed > l.window {
			return errProtocol
		}
		return nil
	}
	l.headerLocked(wire.Header{Kind: wire.Data, Seq: h.Seq, Len: h.Len})
	if n > 0 {
		l.in.one[0].Mem = src
		softnic.Gather(l.pend.room(n), l.in.one[:])
	}
	hold.Release()
	if !l.answerLocked() {
		return errProtocol
	}
	return nil
}

// opKinds is indexed by the kind of frame.
var opKinds = [...]transport.Kind{wire.FetchAdd: transport.OpFetchAdd, wire.CompareSwap: transport.OpCompareSwap}

func (l *link) atomic() error {
	h := &l.in.h
	word, hold := l.d.table.Hold(h.RAddr, h.RKey, 8, transport.RemoteAtomic)
	if hold == nil || h.RAddr&7 != 0 {
		if hold != nil {
			hold.Release()
		}
		l.refuse(transport.StatusRemoteAccess)
		return nil
	}
	old := softnic.Apply(opKinds[h.Kind], word, h.Arg0, h.Arg1)
	hold.Release()
	l.did()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.performed = l.in.expect
	l.headerLocked(wire.Header{Kind: wire.Value, Seq: h.Seq, Arg0: old})
	if !l.answerLocked() {
		return errProtocol
	}
	return nil
}

// refuse tells the peer that the request under way was not done, and none after it; the link ends.
func (l *link) refuse(s transport.Status) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.performed = l.in.expect
	l.longLocked(true) // all before it is answered
	l.headerLocked(wire.Header{Kind: wire.Refuse, Seq: l.in.expect, Status: uint8(s)})
	l.in.mode = toNowhere
	l.endLocked(endSaid)
}

// afterBatch publishes what was done since request served, and sends what is to be said now.
func (l *link) afterBatch(served uint64) {
	in := &l.in
	if in.expect != served || in.wanted || in.say {
		l.mu.Lock()
		l.performed = in.expect
		l.ackDue = l.ackDue || in.wanted
		in.wanted, in.say = false, false
		l.replyLocked()
		l.mu.Unlock()
		if in.expect != served {
			l.d.came(l)
			if in.expect-served > in.longReads {
				l.d.sched.Ring() // the program may wait for what was written, or more may come soon
			}
			in.longReads = 0
		}
	}
	l.announce()
}

// came notes that something that came over l was performed, or a part of it that is long: more may follow soon.
func (d *domain) came(l *link) {
	if d.asking.Load() != l {
		d.asking.Store(l)
	}
	d.performed.Add(1)
}
