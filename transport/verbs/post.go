package verbs

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"gopgas/transport"
	"gopgas/transport/verbs/internal/ibv"
)

// postSide is what posters share.
type postSide struct {
	mu  sync.Mutex
	ops [ibv.Batch]ibv.Send // the batch that crosses
	to  [ibv.Batch]*pair    // whose each one is
}

var (
	errKind      = errors.New("post: there is no operation of this kind")
	errNoAtomics = errors.New("post: the device has no atomics")
	errNoSends   = errors.New("post: the device has no shared receive queue, so there are no messages")
	errPieces    = errors.New("post: more pieces than Caps.MaxSGE")
	errLength    = errors.New("post: longer than Caps.MaxMessage")
	errInline    = errors.New("post: inline payload longer than Caps.MaxInline, or of an operation that has none")
	errAlign     = errors.New("post: an atomic's address at the target is not a multiple of 8; the device would never complete it")
	errWord      = errors.New("post: an atomic needs one piece of 8 bytes for the old value")
	errEndpoint  = errors.New("post: there is no such endpoint")
)

// opcodes are the device's words for kinds.
var opcodes = [...]uint8{
	transport.OpWrite: ibv.OpWrite, transport.OpRead: ibv.OpRead, transport.OpWriteImm: ibv.OpWriteImm,
	transport.OpSend: ibv.OpSendImm, transport.OpFetchAdd: ibv.OpFetchAdd, transport.OpCompareSwap: ibv.OpCompareSwap,
}

// check refuses what can be seen to be wrong from the operation alone, and returns its length.
func check(op *transport.Op, c *transport.Caps) (uint32, error) {
	if op.Kind < transport.OpWrite || op.Kind > transport.OpCompareSwap {
		return 0, errKind
	}
	if int(op.NSGE) > c.MaxSGE {
		return 0, errPieces
	}
	total := 0
	for i := range op.SGE[:op.NSGE] {
		n := op.SGE[i].Mem.Bytes
		if n < 0 || n > c.MaxMessage-total {
			return 0, errLength
		}
		total += n
	}
	switch op.Kind {
	case transport.OpSend, transport.OpWriteImm:
		if !c.Sends {
			return 0, errNoSends
		}
	case transport.OpFetchAdd, transport.OpCompareSwap:
		switch {
		case !c.Atomics64:
			return 0, errNoAtomics
		case op.RAddr&7 != 0:
			return 0, errAlign
		case op.NSGE != 1 || total != 8:
			return 0, errWord
		}
	}
	if op.Flags&transport.FlagInline != 0 && (total > c.MaxInline || op.Kind == transport.OpRead || isAtomic(op.Kind)) {
		return 0, errInline
	}
	return uint32(total), nil
}

// Post hands ops over, up to 64 in one crossing. It takes one lock, allocates nothing, and does not wait for the NIC;
// on a device made of software the transfer itself may run in it.
func (d *domain) Post(ops []transport.Op) (n int, err error) {
	d.post.mu.Lock()
	defer d.post.mu.Unlock()
	if d.closed.Load() {
		return 0, transport.ErrClosed
	}
	for n < len(ops) && err == nil {
		var took int
		took, err = d.postBatchLocked(ops[n:])
		if took == 0 {
			break
		}
		n += took
	}
	runtime.KeepAlive(ops)
	return n, err
}

// postBatchLocked takes a beginning of ops: all it has room for, in one crossing at most.
func (d *domain) postBatchLocked(ops []transport.Op) (took int, err error) {
	batch := 0
	for took < len(ops) && batch < ibv.Batch {
		op := &ops[took]
		bytes, wrong := check(op, &d.caps)
		if wrong != nil {
			err = wrong
			break
		}
		p := d.pairOf(op.EP)
		if p == nil {
			err = errEndpoint
			break
		}
		if p.full() {
			break
		}
		took++
		rec, number := p.next()
		rec.note(op, bytes)
		if p.state.Load() == pairEnded {
			p.addGhost()
			continue
		}
		p.quiet++
		rec.asked = rec.signaled || p.quiet >= p.limit/4
		w := &d.post.ops[batch]
		w.QP, w.ID = p.qp.Handle, uint64(p.slot)<<32|uint64(number)
		fill(w, op)
		if rec.asked {
			w.Flags |= ibv.FlagSignaled
			p.quiet = 0
		}
		p.add()
		d.post.to[batch] = p
		batch++
	}
	if batch > 0 && ibv.Post(d.post.ops[:batch]) > 0 {
		d.refusedLocked(batch)
	}
	return took, err
}

// note writes down what is to be known of an operation until it is reported.
func (r *record) note(op *transport.Op, bytes uint32) {
	r.cookie, r.ep, r.bytes, r.kind = op.Cookie, op.EP, bytes, op.Kind
	r.signaled, r.asked, r.pieces = op.Flags&transport.FlagSignaled != 0, false, 0
	if op.Flags&transport.FlagInline == 0 {
		r.pieces = op.NSGE
		for i := range op.SGE[:op.NSGE] {
			r.lkeys[i] = key32(op.SGE[i].LKey)
		}
	}
}

// fill writes an operation in the device's words. Pieces of no bytes are left out: some devices take zero for 2 GiB.
func fill(w *ibv.Send, op *transport.Op) {
	w.RAddr, w.RKey, w.Imm = op.RAddr, key32(op.RKey), op.Imm
	w.Arg0, w.Arg1 = op.Arg0, op.Arg1
	w.Op, w.Flags, w.NSGE = opcodes[op.Kind], 0, 0
	if op.Flags&transport.FlagInline != 0 {
		w.Flags |= ibv.FlagInline
	}
	if op.Flags&transport.FlagFence != 0 {
		w.Flags |= ibv.FlagFence
	}
	for i := range op.SGE[:op.NSGE] {
		if s := &op.SGE[i]; s.Mem.Bytes > 0 {
			w.SGE[w.NSGE] = ibv.SGE{Addr: s.Mem.Addr(), Bytes: uint32(s.Mem.Bytes), LKey: key32(s.LKey)}
			w.NSGE++
		}
	}
}

// refusedLocked ends the pairs that took not all of a batch. Their records from the first refused one on never
// reached the NIC.
func (d *domain) refusedLocked(batch int) {
	for i := range d.post.ops[:batch] {
		w, p := &d.post.ops[i], d.post.to[i]
		if w.Error == 0 || p.state.Load() == pairEnded {
			continue
		}
		p.endLocked(uint32(w.ID), faultLocal, &StatusError{
			Op: "post", Peer: p.peer.rank, Status: fmt.Sprintf("the device took no more: error %d", w.Error),
		})
	}
}

// pairOf returns what takes operations to an endpoint: its pair, the ring of ghosts where the endpoint is an older
// incarnation, or nil where it never was one.
func (d *domain) pairOf(ep transport.EP) *pair {
	if ep.Index >= uint32(len(d.peers)) {
		return nil
	}
	p := d.peers[ep.Index].cur.Load()
	switch {
	case p == nil || ep.Incarnation == 0 || ep.Incarnation > p.ep.Incarnation:
		return nil
	case ep.Incarnation == p.ep.Incarnation:
		return p
	default:
		return d.stale
	}
}
