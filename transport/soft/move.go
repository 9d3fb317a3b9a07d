package soft

import (
	"gopgas/internal/mem"
	"gopgas/internal/softnic"
	"gopgas/transport"
)

// remotePiece is memory of another process.
type remotePiece struct {
	addr  uint64
	bytes int
}

// covered reports whether this rank's pieces are registered for the operation.
func (e *engine) covered(op *slot) bool {
	if op.Flags&transport.FlagInline != 0 {
		return true
	}
	need := transport.Access(0)
	if op.Kind == transport.OpRead || op.Kind == transport.OpFetchAdd || op.Kind == transport.OpCompareSwap {
		need = transport.LocalWrite
	}
	list := op.pieces(&e.whole)
	for i := range list {
		if p := &list[i]; !e.d.table.Local(p.Mem, p.LKey, need) {
			return false
		}
	}
	return true
}

// move copies the next chunk of an operation of total bytes. The peer's key table is asked again for each
// chunk, so that a registration that ends is left within one.
func (e *engine) move(s *seat, p *peer, op *slot, total int) transport.Status {
	need := transport.RemoteWrite
	if op.Kind == transport.OpRead {
		need = transport.RemoteRead
	}
	if !p.begin(op.RAddr, op.RKey, total, need) {
		return p.refusal()
	}
	n := min(total-s.offset, chunk)
	pieces := op.pieces(&e.whole)
	if n < total {
		pieces = e.cut(pieces, s.offset, n)
	}
	err := e.copy(p, op.Kind, op.RAddr+uint64(s.offset), pieces, n)
	mem.StoreFence()         // what the next operation writes is not seen before this
	mem.Publish(p.hazard, 0) // nothing that follows need wait for its being seen
	if n < total {
		clear(pieces) // of part
	}
	switch {
	case err == nil:
		s.offset += n
		return transport.StatusOK
	case isGone(err):
		p.dead.Store(true)
		e.d.alert()
		return transport.StatusPeerGone
	default:
		return p.refusal() // registered memory that is not mapped
	}
}

// begin enters a region of the peer if its key table allows it: the hazard first, then the look. The peer voids
// the key first, then looks at the hazards. One of the two sees the other.
func (p *peer) begin(addr, rkey uint64, n int, need transport.Access) bool {
	slot := softnic.Slot(rkey) & (p.board.regions - 1)
	p.hazard.Store(uint64(slot) + 1)
	if !p.gone() && p.keys[slot].allows(addr, rkey, n, uint64(need)) {
		return true
	}
	p.hazard.Store(0)
	return false
}

// refusal is how an operation ends that the peer's table, or its memory, did not let through.
func (p *peer) refusal() transport.Status {
	if p.gone() || p.life != nil && p.life.ended() {
		return transport.StatusPeerGone
	}
	return transport.StatusRemoteAccess
}

// cut returns the pieces that hold n bytes from off on.
func (e *engine) cut(pieces []transport.SGE, off, n int) []transport.SGE {
	k := 0
	for i := range pieces {
		m := pieces[i].Mem
		if off >= m.Bytes {
			off -= m.Bytes
			continue
		}
		take := min(m.Bytes-off, n)
		e.part[k] = transport.SGE{Mem: m.Slice(off, take)}
		k++
		off, n = 0, n-take
		if n == 0 {
			break
		}
	}
	return e.part[:k]
}

// copy moves the pieces to or from addr, n bytes of the peer's memory.
func (e *engine) copy(p *peer, kind transport.Kind, addr uint64, pieces []transport.SGE, n int) error {
	switch {
	case n == 0:
		return nil
	case p.local && kind == transport.OpWrite:
		softnic.Gather(mem.At(uintptr(addr), n), pieces)
		return nil
	case p.local:
		softnic.Scatter(pieces, mem.At(uintptr(addr), n))
		return nil
	case kind == transport.OpWrite:
		return e.mover.push(p.pid, addr, pieces)
	default:
		return e.mover.pull(p.pid, addr, pieces)
	}
}
