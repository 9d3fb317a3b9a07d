package tcp

import (
	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/internal/softnic"
	"gopgas/internal/wire"
	"gopgas/transport"
)

// Sizes of the way out.
const (
	copyMost   = 4096      // payloads up to here are copied into the batch; longer ones are sent from where they lie
	batchBytes = 96 << 10  // requests are added to a batch while it has fewer bytes in its buffer,
	longBytes  = 4 << 20   // fewer in all, about what a socket takes at once,
	batchSegs  = 24        // and fewer segments,
	callSegs   = 8         // of which one system call takes so many: package unix would allocate for more
	postBytes  = 128 << 10 // batches above this are left to the sender, so that Post does not copy them
	keepBytes  = 256 << 10
)

// segment is a piece of a batch: bytes of its buffer, or memory of this rank.
type segment struct {
	from, to int       // in batch.buf, where mem is empty
	mem      mem.Range // sent from where it lies
	hold     *softnic.Hold
}

func (s *segment) bytes() int { return s.to - s.from + s.mem.Bytes }

// batch is frames on their way to the socket. The zero batch is ready.
type batch struct {
	buf   []byte
	segs  []segment
	at    int // the first segment not yet sent, and
	off   int // how much of it was
	bytes int // in all segments
}

func (b *batch) empty() bool { return b.at == len(b.segs) }

// takesMore reports whether another request may join the batch. What lies elsewhere is not copied, so much of it may: a socket that is given
// a piece at a time costs the sender a system call, and Go's runtime the loss of a thread, for each.
func (b *batch) takesMore() bool {
	return len(b.buf) < batchBytes && b.bytes < longBytes && len(b.segs) < batchSegs
}

// tail returns the segment that more bytes of buf are added to.
func (b *batch) tail() *segment {
	if n := len(b.segs); n > 0 && b.segs[n-1].mem.Bytes == 0 {
		return &b.segs[n-1]
	}
	b.segs = append(b.segs, segment{from: len(b.buf), to: len(b.buf)})
	return &b.segs[len(b.segs)-1]
}

func (b *batch) header(h *wire.Header) {
	s, before := b.tail(), len(b.buf)
	b.buf = h.Append(b.buf)
	s.to = len(b.buf)
	b.bytes += len(b.buf) - before
}

// room adds n bytes to the batch and returns them.
func (b *batch) room(n int) mem.Range {
	s, before := b.tail(), len(b.buf)
	for cap(b.buf)-before < n {
		b.buf = append(b.buf[:cap(b.buf)], 0)
	}
	b.buf = b.buf[:before+n]
	s.to = len(b.buf)
	b.bytes += n
	return mem.Of(b.buf[before:])
}

// refer adds memory that is sent from where it lies; hold, which may be nil, is released then.
func (b *batch) refer(r mem.Range, hold *softnic.Hold) {
	b.segs = append(b.segs, segment{mem: r, hold: hold})
	b.bytes += r.Bytes
}

// lends reports whether the batch refers to a region's memory within the n bytes at addr.
func (b *batch) lends(addr uint64, n int) bool {
	for i := b.at; i < len(b.segs); i++ {
		s := &b.segs[i]
		if s.hold != nil && overlaps(s.mem, addr, n) {
			return true
		}
	}
	return false
}

// advance takes n bytes as sent. It returns how many regions were given back.
func (b *batch) advance(n int) (regions int) {
	for b.at < len(b.segs) {
		s := &b.segs[b.at]
		left := s.bytes() - b.off
		if n < left {
			b.off += n
			return regions
		}
		n -= left
		if s.hold != nil {
			s.hold.Release()
			regions++
		}
		*s = segment{}
		b.at, b.off = b.at+1, 0
	}
	b.reset()
	return regions
}

func (b *batch) reset() {
	if cap(b.buf) > keepBytes {
		b.buf = nil
	}
	b.buf, b.segs, b.at, b.off, b.bytes = b.buf[:0], b.segs[:0], 0, 0, 0
}

// drop forgets what was not sent.
func (b *batch) drop() {
	for i := b.at; i < len(b.segs); i++ {
		if h := b.segs[i].hold; h != nil {
			h.Release()
		}
		b.segs[i] = segment{}
	}
	b.reset()
}

// vector is the unsent part of cur as the system takes it; who has set writing may call it.
func (l *link) vector() [][]byte {
	n, b := 0, &l.cur
	for i := b.at; i < len(b.segs) && n < len(l.vec); i++ {
		s, p := &b.segs[i], []byte(nil)
		if s.mem.Bytes > 0 {
			p = s.mem.Data()
		} else {
			p = b.buf[s.from:s.to]
		}
		if i == b.at {
			p = p[b.off:]
		}
		l.vec[n] = p
		n++
	}
	return l.vec[:n]
}

// flush sends what there is, unless somebody else does.
func (l *link) flush() {
	l.mu.Lock()
	l.flushLocked()
	l.mu.Unlock()
	l.announce()
}

// haste is how much is sent at once.
type haste uint8

const (
	brief  haste = iota // what is long is left to the sender, and what others have left to it
	soon                // long answers are left to the next look of who polls without a pause
	atOnce              // nothing is left
)

// flushLocked sends what there is; what the socket does not take is left to the sender, and what is long, unless somebody polls without a pause, who would send it next.
func (l *link) flushLocked() {
	how := brief
	if l.d.hushers.Load() > 0 {
		how = atOnce
	}
	l.flushAsLocked(how)
}

// replyLocked is flushLocked by who has read. If it is he who polls without a pause, and something else has come, that may be what he polls for, so that he leaves what is long
// to his next look.
func (l *link) replyLocked() {
	if l.in.polled && l.in.more && l.d.hushers.Load() > 0 {
		l.flushAsLocked(soon)
	} else {
		l.flushLocked()
	}
}

func (l *link) flushAsLocked(how haste) {
	if l.sendLocked(how) {
		l.leaveLocked()
	}
}

// flushUnpaused is flush while somebody polls without a pause, as who posts what he waits for next is about to. What is long is sent, too: to leave it would save
// him nothing. The answer to that may come before the call returns; it is read at once, and nobody is wakened for it.
func (l *link) flushUnpaused() {
	l.d.hush(l)
	l.mu.Lock()
	if l.sendLocked(atOnce) {
		l.leaveLocked()
	}
	l.mu.Unlock()
	l.announce()
	l.look()
}

// help sends what was left, for who polls and waits for it anyway: the sender has to be wakened first, and may have no core but
// the one on which the peer's reader is to take what is sent.
func (l *link) help() {
	if !l.mu.TryLock() {
		return
	}
	if l.sendLocked(atOnce) {
		l.leaveLocked()
	}
	l.mu.Unlock()
	l.announce()
}

// sendLocked fills batches and sends them until nothing is left, or the socket takes no more: full says that, and whoever is told sees to it that
// the sender goes on. mu is given up during the system call.
func (l *link) sendLocked(how haste) (full bool) {
	if l.writing || l.failed || l.hard || l.blocked && how == brief || l.state == stateDown {
		return false
	}
	l.writing = true
	for {
		if l.cur.empty() && !l.fillLocked(how) {
			l.restLocked(how)
			break
		}
		if how == brief && l.cur.bytes > postBytes {
			l.leaveLocked()
			break
		}
		l.mu.Unlock()
		if err := l.raw.Control(l.writeFn); err != nil {
			l.wn, l.werr = 0, err
		}
		l.mu.Lock()
		if l.werr != nil && !notNow(l.werr) {
			l.failed = true // what the peer has said last is still to be read; the reader will find the end
			break
		}
		if l.wn > 0 {
			l.returnedLocked(l.cur.advance(l.wn))
			l.wrote = true
		}
		if l.werr != nil {
			l.blocked, full = true, true
			break
		}
		if l.hard {
			break
		}
	}
	l.writing = false
	l.settleLocked()
	return full
}

// leaveLocked leaves the rest to the sender, or to who polls before that one has got up.
func (l *link) leaveLocked() {
	l.blocked = true
	l.setLeftLocked(true)
	l.wakeSender()
}

// restLocked says who sends what is left when everything has been sent that how allows: long answers.
func (l *link) restLocked(how haste) {
	switch {
	case len(l.long) == 0:
		l.blocked = false
		l.setLeftLocked(false)
	case how == soon:
		l.leaveToPollerLocked()
	default:
		l.leaveLocked()
	}
}

// fillLocked makes pend, with all that can be sent now, the current batch. It reports whether there was anything.
func (l *link) fillLocked(how haste) bool {
	long := len(l.long) > 0 && (how == atOnce || l.longBytes <= postBytes || l.state != stateUp)
	if l.next == l.tail && !l.ackDue && !l.aliveDue && !l.askDue && (!l.byeDue || l.byeSent) && l.pend.empty() && !long {
		return false
	}
	if l.state == stateUp {
		l.requestsLocked()
	}
	if long {
		l.longLocked(l.state != stateUp)
	}
	if l.byeDue && !l.byeSent && !l.reading.Load() {
		// Nobody performs anything any more, so that Bye says exactly what was done. Who reads says it when leaving.
		l.byeSent = true
		l.headerLocked(wire.Header{Kind: wire.Bye, Status: l.bye})
	}
	if l.ackDue && l.acked < l.ackLocked(l.long) {
		l.headerLocked(wire.Header{Kind: wire.Ack})
	}
	if l.askDue {
		l.headerLocked(wire.Header{Kind: wire.Alive, Flags: wire.AckWanted})
	} else if l.aliveDue && l.pend.empty() {
		l.headerLocked(wire.Header{Kind: wire.Alive})
	}
	l.ackDue, l.aliveDue, l.askDue = false, false, false
	l.cur, l.pend = l.pend, l.cur
	l.owed = len(l.long) // the peer may have the others, and ask for more, before who sends them hears that they are sent
	return !l.cur.empty()
}

// requestsLocked encodes requests as long as they may go and the batch has room.
func (l *link) requestsLocked() {
	for l.next < l.tail && !l.notReady && !l.bad && l.pend.takesMore() {
		s := &l.ring[l.next%uint64(len(l.ring))]
		if s.op.Flags&transport.FlagFence != 0 && l.done < s.fetches {
			return
		}
		if !l.coveredBy(&s.op) {
			// Those before it are done first; they say so when they are asked, once.
			l.bad = true
			l.badLocked()
			l.askDue = l.askDue || l.bad
			return
		}
		l.encodeLocked(s)
		l.next++
	}
}

// badLocked reports the request that this rank's own keys forbid, when it is the oldest one.
func (l *link) badLocked() {
	if l.bad && l.done == l.next {
		l.bad = false
		l.failLocked(transport.StatusLocalAccess, endSaid)
	}
}

// coveredBy reports whether this rank's pieces are registered for the operation.
func (l *link) coveredBy(op *transport.Op) bool {
	if op.Flags&transport.FlagInline != 0 {
		return true
	}
	need := transport.Access(0)
	if isFetch(op.Kind) {
		need = transport.LocalWrite
	}
	for i := range op.SGE[:op.NSGE] {
		if s := &op.SGE[i]; !l.d.table.Local(s.Mem, s.LKey, need) {
			return false
		}
	}
	return true
}

// requestKinds is indexed by the kind of operation.
var requestKinds = [...]wire.Kind{
	transport.OpWrite: wire.Write, transport.OpRead: wire.Read, transport.OpWriteImm: wire.WriteImm,
	transport.OpSend: wire.Send, transport.OpFetchAdd: wire.FetchAdd, transport.OpCompareSwap: wire.CompareSwap,
}

func (l *link) encodeLocked(s *slot) {
	op := &s.op
	s.answered = false
	list := op.SGE[:op.NSGE]
	n := softnic.Total(list)
	h := wire.Header{
		Kind: requestKinds[op.Kind], Seq: l.next, RAddr: op.RAddr, RKey: op.RKey,
		Imm: op.Imm, Arg0: op.Arg0, Arg1: op.Arg1, Len: uint32(n),
	}
	// What reports nothing, or late, is acknowledged now and then, so that its places become free.
	switch {
	case op.Flags&(transport.FlagSignaled|transport.FlagLazy) == transport.FlagSignaled || l.next%uint64(l.d.stride) == 0:
		h.Flags = wire.AckWanted
		l.wanted = l.next + 1
	case isFetch(op.Kind):
		l.wanted = l.next + 1
	default:
		l.unasked = l.next + 1
	}
	if isAtomic(op.Kind) {
		h.Len = 0
	}
	l.headerLocked(h)
	switch {
	case isFetch(op.Kind) || n == 0:
	case n <= copyMost:
		softnic.Gather(l.pend.room(n), list)
	default:
		for i := range list {
			if list[i].Mem.Bytes > 0 {
				l.pend.refer(list[i].Mem, nil)
			}
		}
	}
}

// runSender sends what the socket did not take at once, until the link has ended.
//
// Before the answer to a long read he gives way: what came with that read may be what another thread of this rank waits for, to ask for as much itself, and on the core
// that they share it would ask only when the answer is gone. Two ranks that read much of each other would do so one after the other.
func (l *link) runSender() {
	step := func(fd uintptr) bool {
		l.mu.Lock()
		// It waits for the socket only if that has taken no more from itself: who sends else leaves the rest to it again.
		wait := l.sendLocked(atOnce) && !l.failed && l.state != stateDown && !l.hard
		l.mu.Unlock()
		l.announce()
		return !wait
	}
	for range l.kick {
		l.mu.Lock()
		answers := len(l.long) > 0
		l.mu.Unlock()
		if answers {
			sched.Yield()
		}
		if l.ended.Load() || l.raw.Write(step) != nil {
			return
		}
	}
}
