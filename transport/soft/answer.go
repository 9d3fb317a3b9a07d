package soft

import (
	"gopgas/internal/mem"
	"gopgas/internal/softnic"
	"gopgas/transport"
)

// answer performs the requests of a peer. blocked says that the next one waits for a receive buffer.
func (e *engine) answer(p *peer) (worked, blocked bool) {
	for {
		m := p.inbox.mail(p.rank, int(p.expect%mailSlots))
		state := m.word(mailState)
		w := state.Load()
		seq, phase := w>>phaseBits, w&(1<<phaseBits-1)
		switch {
		case seq > p.expect:
			// The one expected was taken back and its place used again, which takes the end of all that were
			// written into the ring before.
			p.expect = max(p.expect+1, seq-mailSlots+1)
			continue
		case seq != p.expect:
			return worked, false
		case phase == mailCancelled:
			p.expect++
			continue
		case phase != mailPending:
			return worked, false
		}
		r := e.readRequest(m)
		live := p.link.Load() == linkWord(r.inc, linkUp)
		if live && (r.kind == transport.OpSend || r.kind == transport.OpWriteImm) && e.d.recvs.ready.Load() == 0 {
			e.d.starved.Store(true)
			if e.d.recvs.ready.Load() == 0 {
				return worked, true
			}
		}
		if !state.CompareAndSwap(w, mailWord(seq, mailClaimed)) {
			continue // taken back at this moment
		}
		worked = true
		status, result := transport.StatusFlushed, uint64(0)
		if live {
			status, result = e.fulfil(p, m, &r)
			e.d.sched.Served()
			if status != transport.StatusOK {
				e.breakLink(p, r.inc) // before the answer: what is behind it must not happen
			}
		}
		m.word(mailStatus).Store(uint64(status))
		m.word(mailResult).Store(result)
		state.Store(mailWord(seq, mailDone))
		p.expect++
		p.bell.Ring()
	}
}

// request is what a peer asks for, read once: the peer may change it at any time.
type request struct {
	kind        transport.Kind
	inc, imm    uint32
	raddr, rkey uint64
	arg0, arg1  uint64
	bytes       int
	from        [4]remotePiece
	pieces      int // 0: the payload is in the request
	bad         bool
}

func (e *engine) readRequest(m mail) request {
	k := m.word(mailKind).Load()
	n := m.word(mailLen).Load()
	r := request{
		kind: transport.Kind(k >> 32), inc: uint32(k), imm: uint32(m.word(mailImm).Load()),
		raddr: m.word(mailRAddr).Load(), rkey: m.word(mailRKey).Load(),
		arg0: m.word(mailArg0).Load(), arg1: m.word(mailArg1).Load(),
		bytes: int(min(n, 1<<31)), pieces: int(k >> 40 & 0xff),
	}
	if r.bytes > e.d.cfg.MaxMessage || r.pieces > len(r.from) || r.pieces == 0 && r.bytes > maxInline {
		r.bad, r.pieces = true, 0
		return r
	}
	sum := uint64(0)
	for i := range r.pieces {
		bytes := m.word(mailPayload + 16*i + 8).Load()
		r.from[i] = remotePiece{m.word(mailPayload + 16*i).Load(), int(min(bytes, 1<<31))}
		sum += bytes
		r.bad = r.bad || bytes > 1<<31
	}
	r.bad = r.bad || r.pieces > 0 && sum != n
	return r
}

// fulfil performs one request on this rank's memory.
func (e *engine) fulfil(p *peer, m mail, r *request) (transport.Status, uint64) {
	switch r.kind {
	case transport.OpFetchAdd, transport.OpCompareSwap:
		word, h := e.d.table.Hold(r.raddr, r.rkey, 8, transport.RemoteAtomic)
		if h == nil {
			return transport.StatusRemoteAccess, 0
		}
		defer h.Release()
		if r.raddr&7 != 0 {
			return transport.StatusRemoteAccess, 0
		}
		return transport.StatusOK, softnic.Apply(r.kind, word, r.arg0, r.arg1)
	case transport.OpSend, transport.OpWriteImm:
		if r.bad {
			return transport.StatusRemoteAccess, 0
		}
		return e.deliver(p, m, r), 0
	default:
		return transport.StatusRemoteAccess, 0
	}
}

// deliver brings a message, or a write with an immediate, and uses up a receive buffer.
func (e *engine) deliver(p *peer, m mail, r *request) transport.Status {
	d := e.d
	var dst mem.Range
	if r.kind == transport.OpWriteImm {
		var h *softnic.Hold
		if dst, h = d.table.Hold(r.raddr, r.rkey, r.bytes, transport.RemoteWrite); h == nil {
			return transport.StatusRemoteAccess
		}
		defer h.Release()
	}
	recv, ok := d.recvs.take()
	if !ok {
		return transport.StatusRemoteAccess // not reached: this engine alone takes, and has seen one
	}
	d.starved.Store(false)
	status, arrived := transport.StatusOK, transport.StatusOK
	if r.kind == transport.OpSend {
		if r.bytes > recv.Buf.Mem.Bytes {
			status, arrived = transport.StatusTooLong, transport.StatusTooLong
		} else if h := d.table.HoldLocal(recv.Buf.Mem, recv.Buf.LKey, transport.LocalWrite); h == nil {
			status, arrived = transport.StatusRemoteAccess, transport.StatusLocalAccess
		} else {
			defer h.Release()
			dst = recv.Buf.Mem.Slice(0, r.bytes)
		}
	}
	n := 0
	if arrived == transport.StatusOK {
		if err := e.fetch(p, m, r, dst); err != nil {
			// The sender is gone, or has unmapped what it sends: the buffer is as good as before.
			d.recvs.giveBack(recv)
			if isGone(err) {
				p.dead.Store(true)
				d.alert()
			}
			return transport.StatusLocalAccess
		}
		n = r.bytes
	}
	d.report(transport.Completion{
		Cookie: recv.Cookie, EP: transport.EP{Index: uint32(p.rank), Incarnation: r.inc},
		Kind: transport.OpRecv, Status: arrived, Bytes: uint32(n), Imm: r.imm,
	}, nil)
	return status
}

// fetch copies a request's payload to dst, which is as long.
func (e *engine) fetch(p *peer, m mail, r *request, dst mem.Range) error {
	switch {
	case r.bytes == 0:
		return nil
	case r.pieces == 0:
		e.part[0] = transport.SGE{Mem: m.payload(r.bytes)}
		softnic.Gather(dst, e.part[:1])
		return nil
	case p.local:
		for i, from := range r.from[:r.pieces] {
			e.part[i] = transport.SGE{Mem: mem.At(uintptr(from.addr), from.bytes)}
		}
		softnic.Gather(dst, e.part[:r.pieces])
		clear(e.part[:r.pieces])
		return nil
	default:
		return e.mover.collect(p.pid, dst, r.from[:r.pieces])
	}
}
