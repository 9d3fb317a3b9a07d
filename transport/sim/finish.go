package sim

import "gopgas/transport"

// deliver reports a message, or an immediate, to the target.
func (fl *flight) deliver(s transport.Status) {
	e := fl.e
	c := transport.Completion{
		Cookie: fl.recv.Cookie, EP: transport.EP{Index: uint32(e.d.rank), Incarnation: e.ep.Incarnation},
		Kind: transport.OpRecv, Status: s, Imm: fl.op.Imm,
	}
	if s == transport.StatusOK {
		c.Bytes = uint32(fl.bytes)
	}
	e.peer.report(entry{c: c})
}

// fail ends an operation that the target, or this rank's own table, refuses. It breaks the connection.
func (fl *flight) fail(s transport.Status) {
	e := fl.e
	if fl.op.Kind == transport.OpSend || fl.op.Kind == transport.OpWriteImm && fl.recv != (transport.Recv{}) {
		switch {
		case s == transport.StatusLocalAccess || fl.op.Kind == transport.OpWriteImm:
			e.peer.takeBack(fl.recv)
		case s == transport.StatusRemoteAccess:
			fl.deliver(transport.StatusLocalAccess)
		default:
			fl.deliver(s)
		}
	}
	fl.status = s
	e.at(e.now()+e.latency, fl, stageDone)
	e.breakUp(linkBroken, e.now())
}

// flush ends an operation on a connection that is down, at the moment at which its poster knows that.
func (fl *flight) flush() {
	e := fl.e
	fl.status = transport.StatusFlushed
	fl.gone = e.link.state == linkGone
	if r := fl.recv; r != (transport.Recv{}) { // the connection has ended while the payload was on its way into it
		fl.recv = transport.Recv{}
		e.peer.takeBack(r)
	}
	if e.link.known > e.now() {
		e.at(e.link.known, fl, stageDone)
		return
	}
	fl.finish()
}

// finish notes that the poster's NIC knows the operation's end, and reports what can be reported in order.
func (fl *flight) finish() {
	e := fl.e
	fl.done = true
	if fl.status == transport.StatusOK && (fl.op.Kind == transport.OpFetchAdd || fl.op.Kind == transport.OpCompareSwap) {
		storeWord(fl.op.SGE[0].Mem, fl.old)
	}
	if fl.fetches() {
		if e.fetching--; e.fetching == 0 {
			e.release()
		}
	}
	for e.posted.first != nil && e.posted.first.done {
		e.conclude(e.posted.pop())
	}
}

// conclude reports an operation, of which all earlier ones of the endpoint have been reported.
func (e *end) conclude(fl *flight) {
	f := e.d.f
	op := &fl.op
	s := fl.status
	atomic := op.Kind == transport.OpFetchAdd || op.Kind == transport.OpCompareSwap
	switch {
	case fl.gone && !e.sawGone:
		e.sawGone = true
		s = transport.StatusPeerGone
		if atomic {
			s = transport.StatusInDoubt
		}
	case s == transport.StatusOK && e.sawGone:
		// It overtook what the peer's end has flushed: nobody can rely on it.
		s = transport.StatusFlushed
		if atomic {
			s = transport.StatusInDoubt
		}
	}
	c := transport.Completion{Cookie: op.Cookie, EP: op.EP, Kind: op.Kind, Status: s}
	if s == transport.StatusOK {
		c.Bytes = uint32(fl.bytes)
	} else {
		f.counts.Failed++
	}
	f.tally(op.Kind, fl.bytes)
	f.note(noteDone<<8|uint64(op.Kind)<<4|uint64(s), e.d.rank, e.peer.rank, fl.bytes)
	if s == transport.StatusOK && op.Flags&transport.FlagSignaled == 0 {
		c = transport.Completion{}
	}
	e.d.report(entry{c: c, e: e, places: 1})
	fl.e = nil
	fl.next = f.free
	f.free = fl
}

func (f *Fabric) tally(k transport.Kind, bytes int) {
	c := &f.counts
	c.Bytes += uint64(bytes)
	switch k {
	case transport.OpWrite:
		c.Writes++
	case transport.OpRead:
		c.Reads++
	case transport.OpFetchAdd, transport.OpCompareSwap:
		c.Atomics++
	default:
		c.Messages++
	}
}
