package tcp

import (
	"errors"
	"time"

	"gopgas/internal/mem"
	"gopgas/internal/softnic"
	"gopgas/internal/wire"
	"gopgas/transport"
)

// Pace of reading.
const (
	readBytes   = 64 << 10 // of a link's buffer
	behindBytes = 1 << 10  // of it that are read along with a long payload
	readerReads = 64       // system calls of the reader before it lets others have their turn
	pollReads   = 2        // system calls of a Poll
)

// where the payload of a long frame goes, whose bytes are read straight to it.
type whereTo uint8

const (
	toNowhere whereTo = iota // no frame is under way
	toRegion                 // a write
	toBuffer                 // a message
	toReader                 // the answer to a read
	toWaste                  // a request that must come again
)

// inbound is the reading side of a link.
type inbound struct {
	buf      []byte
	from, to int // what was read and is not handled yet

	h    wire.Header // of the frame under way
	mode whereTo
	off  int // bytes of its payload that are where they belong
	left int

	polled bool          // who reads polls,
	more   bool          // and has found something else than reads
	looked time.Duration // when who polls has looked last while much of it was to come

	expect    uint64 // the peer's next request
	longReads uint64 // of those that are done and not published: reads of so much that the next is far, for which nobody has to get up
	starved   bool   // it needs a receive buffer: what follows is thrown away until it comes again
	wanted    bool   // the peer waits for an acknowledgement
	say       bool   // there may be something to send
	recv      transport.Recv
	hasRecv   bool // recv was taken and not reported yet

	vec  [6][]byte
	hold *softnic.Hold
	one  [1]transport.SGE
}

var errProtocol = errors.New("the peer broke the rules of the protocol")

// runReader serves the link until its end.
func (l *link) runReader() {
	step := func(fd uintptr) bool {
		l.rmu.Lock()
		defer l.rmu.Unlock()
		l.in.polled = false
		again := l.serve(int(fd), readerReads)
		if !again {
			l.sip(int(fd), true)
		}
		return again
	}
	for l.raw.Read(step) == nil {
		// It has stopped to let others have their turn.
	}
	l.end(endCut) // it has ended before
	_ = l.conn.Close()
	l.ended.Store(true)
	select {
	case l.kick <- struct{}{}:
	default:
	}
	l.d.forget(l)
}

// serve reads and handles what has come, in at most so many system calls. It reports whether it stopped for that
// reason, so that more may be there; else the next arrival wakes the reader. The caller holds rmu.
//
// It announces itself and then looks whether the link lives; who ends the link does it the other way round. So one
// of them sees the other, and the last to leave settles (C4).
func (l *link) serve(fd, reads int) (again bool) {
	l.reading.Store(true)
	again = true
	for again && reads > 0 && l.alive.Load() {
		again = l.readOnce(fd)
		reads--
	}
	l.reading.Store(false)
	if l.alive.Load() {
		return again
	}
	l.mu.Lock()
	l.performed = l.in.expect
	l.flushLocked() // what was refused, and Bye
	l.settleLocked()
	l.mu.Unlock()
	l.announce()
	if reads > 0 {
		return l.waste(fd)
	}
	return again
}

// readOnce makes one system call and handles what it brought. It reports whether another may bring more.
func (l *link) readOnce(fd int) bool {
	vec, room, ok := l.space()
	if !ok {
		return false
	}
	n, err := readInto(fd, vec)
	l.leaveTarget(vec[:len(vec)-1])
	switch {
	case err != nil && notNow(err):
		return false
	case err != nil || n == 0:
		how := endGone
		if !l.met.Load() {
			how = endCut // there never was a connection
		}
		l.end(how)
		return false
	}
	if !l.heard.Load() {
		l.heard.Store(true)
	}
	served := l.in.expect
	if err := l.handle(n); err != nil {
		l.end(endCut)
		return false
	}
	l.afterBatch(served)
	if l.in.left > 0 && l.in.mode != toWaste {
		l.d.came(l)
	}
	return n == room
}

// space returns where the next bytes go: the payload's place first, and then the buffer.
func (l *link) space() (vec [][]byte, room int, ok bool) {
	in := &l.in
	n := 0
	if in.left > 0 && in.mode != toWaste {
		// The buffer is empty: what it held of the payload was copied.
		if n, ok = l.enterTarget(in.left); !ok {
			return nil, 0, false
		}
		room = in.left
	}
	if in.from > 0 {
		in.to = copy(in.buf, in.buf[in.from:in.to])
		in.from = 0
	}
	rest := in.buf[in.to:]
	if n > 0 {
		rest = rest[:behindBytes] // the next frame's header, and little that would have to be copied again
	}
	in.vec[n] = rest
	return in.vec[:n+1], room + len(rest), true
}

// handle takes n new bytes.
func (l *link) handle(n int) error {
	in := &l.in
	if in.left > 0 && in.mode != toWaste {
		k := min(n, in.left)
		in.off, in.left = in.off+k, in.left-k
		n -= k
		if in.left == 0 {
			if err := l.finish(); err != nil {
				return err
			}
		}
	}
	in.to += n
	for in.from < in.to && l.alive.Load() {
		if in.mode != toNowhere {
			if err := l.takePayload(); err != nil {
				return err
			}
			continue
		}
		size, err := in.h.Decode(in.buf[in.from:in.to])
		if err != nil {
			return err
		}
		bytes := 0
		if size != 0 {
			bytes = in.h.Payload()
		}
		if size == 0 || bytes <= copyMost && in.to-in.from < size+bytes {
			return nil // the rest is still to come
		}
		if !l.met.Load() {
			l.meet()
		}
		in.more = in.more || in.h.Kind != wire.Read
		in.from += size
		if bytes > copyMost {
			err = l.begin()
		} else {
			payload := in.buf[in.from : in.from+bytes]
			in.from += bytes
			err = l.frame(payload)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// begin prepares for a long payload.
func (l *link) begin() error {
	in := &l.in
	in.off, in.left = 0, int(in.h.Len)
	if in.left > l.d.caps.MaxMessage {
		return errProtocol
	}
	switch in.h.Kind {
	case wire.Data:
		if l.asked() == nil {
			return errProtocol
		}
		in.mode = toReader
		return nil
	case wire.Write, wire.WriteImm, wire.Send:
		turn, err := l.turn()
		if err != nil {
			return err
		}
		if !turn || in.h.Kind != wire.Send && l.lentOut(in.left) {
			in.mode = toWaste
			return nil
		}
	}
	if in.h.Kind != wire.Send {
		_, hold := l.d.table.Hold(in.h.RAddr, in.h.RKey, in.left, transport.RemoteWrite)
		if hold == nil {
			l.refuse(transport.StatusRemoteAccess)
			return nil
		}
		hold.Release()
		in.mode = toRegion
	}
	if in.h.Kind != wire.Write {
		if !l.takeRecv() {
			in.mode = toWaste
			return nil
		}
		if in.h.Kind == wire.Send {
			if in.left > in.recv.Buf.Mem.Bytes {
				l.arrived(transport.StatusTooLong, 0)
				l.refuse(transport.StatusTooLong)
				return nil
			}
			in.mode = toBuffer
		}
	}
	return nil
}

// enterTarget puts the place of the next most bytes of payload into vec and holds the region it lies in. If the
// region is gone the request is refused and ok is false.
func (l *link) enterTarget(most int) (n int, ok bool) {
	in := &l.in
	switch in.mode {
	case toRegion:
		r, hold := l.d.table.Hold(in.h.RAddr+uint64(in.off), in.h.RKey, most, transport.RemoteWrite)
		if hold == nil {
			l.refuse(transport.StatusRemoteAccess)
			return 0, false
		}
		in.hold, in.vec[0] = hold, r.Data()
		return 1, true
	case toBuffer:
		r := in.recv.Buf.Mem.Slice(in.off, most)
		hold := l.d.table.HoldLocal(r, in.recv.Buf.LKey, transport.LocalWrite)
		if hold == nil {
			l.arrived(transport.StatusLocalAccess, 0)
			l.refuse(transport.StatusRemoteAccess)
			return 0, false
		}
		in.hold, in.vec[0] = hold, r.Data()
		return 1, true
	default: // toReader: the poster has promised to keep the registration
		s := l.asked()
		skip := in.off
		for i := range s.op.SGE[:s.op.NSGE] {
			m := s.op.SGE[i].Mem
			if skip >= m.Bytes {
				skip -= m.Bytes
				continue
			}
			k := min(m.Bytes-skip, most)
			if k == 0 {
				break
			}
			in.vec[n] = m.Slice(skip, k).Data()
			n, most, skip = n+1, most-k, 0
		}
		return n, true
	}
}

// leaveTarget lets go of what enterTarget has put into vec.
func (l *link) leaveTarget(vec [][]byte) {
	if len(vec) > 0 {
		clear(vec)
	}
	if l.in.hold != nil {
		l.in.hold.Release()
		l.in.hold = nil
	}
}

// takePayload moves what the buffer holds of a long payload to its place.
func (l *link) takePayload() error {
	in := &l.in
	k := min(in.left, in.to-in.from)
	if in.mode != toWaste {
		n, ok := l.enterTarget(k)
		if !ok {
			return nil
		}
		from := in.buf[in.from : in.from+k]
		for _, to := range in.vec[:n] {
			from = from[mem.Copy(to, from):]
		}
		l.leaveTarget(in.vec[:n])
	}
	in.from += k
	in.off, in.left = in.off+k, in.left-k
	if in.left == 0 {
		return l.finish()
	}
	return nil
}

// finish ends a frame whose payload is complete.
func (l *link) finish() error {
	in := &l.in
	mode := in.mode
	in.mode = toNowhere
	switch mode {
	case toRegion, toBuffer:
		if in.hasRecv {
			l.arrived(transport.StatusOK, in.off)
		}
		l.did()
	case toReader:
		l.asked().answered = true
	}
	return l.heardAck(in.h.Ack)
}

// waste reads and throws away what the peer sends on a link that has ended, until the peer's end of it.
func (l *link) waste(fd int) (again bool) {
	for {
		l.in.vec[0] = l.in.buf
		n, err := readInto(fd, l.in.vec[:1])
		switch {
		case err != nil && notNow(err):
			return false
		case err != nil:
			l.end(endCut)
			return false
		case n == 0:
			l.mu.Lock()
			l.deaf = true // what this side still has to say may be on its way
			if l.state == stateDown {
				l.hangUp()
			}
			l.mu.Unlock()
			return false
		case n < len(l.in.buf):
			return false
		}
	}
}
