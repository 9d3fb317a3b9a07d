package verbs

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"gopgas/internal/invariants"
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
	if op.NSGE == 1 { // as nearly all have
		switch n, inline := op.SGE[0].Mem.Bytes, op.Flags&transport.FlagInline != 0; {
		case op.Kind == transport.OpWrite && inline:
			if uint(n) <= uint(c.MaxInline) {
				return uint32(n), nil
			}
		case inline:
		case op.Kind == transport.OpWrite || op.Kind == transport.OpRead:
			if uint(n) <= uint(c.MaxMessage) {
				return uint32(n), nil
			}
		case isAtomic(op.Kind):
			if n == 8 && op.RAddr&7 == 0 && c.Atomics64 {
				return 8, nil
			}
		}
	}
	return checkAll(op, c)
}

func checkAll(op *transport.Op, c *transport.Caps) (uint32, error) {
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

// Post hands ops over, up to 64 in one crossing, and takes what is done by then in the same: a Poll that follows finds that here.
// It takes two locks, allocates nothing, and does not wait for the NIC, or for who polls; on a device made of software the transfer itself
// may run in it.
func (d *domain) Post(ops []transport.Op) (n int, err error) {
	look := d.poll.mu.TryLock() // else somebody looks anyway
	d.post.mu.Lock()
	if d.closed.Load() {
		err = transport.ErrClosed
	} else {
		n, err = d.postLocked(ops, look)
	}
	d.post.mu.Unlock()
	if look {
		d.poll.mu.Unlock()
	}
	runtime.KeepAlive(ops)
	return n, err
}

// postLocked posts as much as there is room for. look says that the caller holds domain.poll, too.
func (d *domain) postLocked(ops []transport.Op, look bool) (n int, err error) {
	if len(ops) == 1 { // as most are, and those for which somebody waits
		took, p, err := d.enterLocked(&ops[0], &d.post.ops[0])
		if p != nil {
			d.post.to[0] = p
			d.crossLocked(1, look)
		}
		return took, err
	}
	for n < len(ops) && err == nil {
		var took int
		took, err = d.postBatchLocked(ops[n:], look)
		if took == 0 {
			break
		}
		n += took
	}
	return n, err
}

// postBatchLocked takes a beginning of ops: all it has room for, in one crossing at most.
func (d *domain) postBatchLocked(ops []transport.Op, look bool) (took int, err error) {
	batch := 0
	for took < len(ops) && batch < ibv.Batch {
		k, p, wrong := d.enterLocked(&ops[took], &d.post.ops[batch])
		if err = wrong; k == 0 {
			break
		}
		took++
		if p != nil {
			d.post.to[batch] = p
			batch++
		}
	}
	if batch > 0 {
		d.crossLocked(batch, look)
	}
	return took, err
}

// enterLocked enters an operation in the ring of its pair, which it returns, and writes it to w for the device. It takes 0 operations
// where there is no room, or something is wrong; of a pair that has ended it is taken, and no work of the device's.
func (d *domain) enterLocked(op *transport.Op, w *ibv.Send) (took int, p *pair, err error) {
	bytes, err := check(op, &d.caps)
	if err != nil {
		return 0, nil, err
	}
	if p = d.pairOf(op.EP); p == nil {
		return 0, nil, errEndpoint
	}
	if p.full() {
		return 0, nil, nil
	}
	rec, number := p.next()
	rec.note(op, bytes)
	if p.state.Load() == pairEnded {
		p.addGhost()
		return 1, nil, nil
	}
	p.quiet++
	rec.asked = rec.signaled || p.quiet >= p.limit/4
	w.QP, w.ID = p.qp.Handle, uint64(p.slot)<<32|uint64(number)
	fill(w, op)
	if rec.asked {
		w.Flags |= ibv.FlagSignaled
		p.quiet = 0
	}
	p.add()
	return 1, p, nil
}

// crossLocked hands a batch to the device. If it may look for completions, and none are left from before, it takes those that there are:
// they are digested by whoever polls next.
func (d *domain) crossLocked(batch int, look bool) {
	var refused int
	if look && !d.poll.anyFresh() && !invariants.Sometimes(30) { // as where the NIC takes its time
		var took int
		refused, took = ibv.PostPoll(d.post.ops[:batch], &d.nic, d.poll.done[:])
		d.poll.fresh = [2]int{0, took}
	} else {
		refused = ibv.Post(d.post.ops[:batch])
	}
	if refused > 0 {
		d.refusedLocked(batch)
	}
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

// flagsOf are the device's words for flags; FlagSignaled is not among them.
var flagsOf = [8]uint8{
	transport.FlagInline: ibv.FlagInline, transport.FlagInline | transport.FlagSignaled: ibv.FlagInline,
	transport.FlagFence: ibv.FlagFence, transport.FlagFence | transport.FlagSignaled: ibv.FlagFence,
	transport.FlagInline | transport.FlagFence:                          ibv.FlagInline | ibv.FlagFence,
	transport.FlagInline | transport.FlagFence | transport.FlagSignaled: ibv.FlagInline | ibv.FlagFence,
}

// solicits are the flags of what the peer has to handle: it may sleep for that alone (WaitSolicited).
var solicits = [...]uint8{
	transport.OpWriteImm: ibv.FlagSolicited, transport.OpSend: ibv.FlagSolicited, transport.OpCompareSwap: 0,
}

// fill writes an operation in the device's words. Pieces of no bytes are left out: some devices take zero for 2 GiB.
func fill(w *ibv.Send, op *transport.Op) {
	w.RAddr, w.RKey, w.Imm = op.RAddr, key32(op.RKey), op.Imm
	w.Arg0, w.Arg1 = op.Arg0, op.Arg1
	w.Op, w.Flags, w.NSGE = opcodes[op.Kind], flagsOf[op.Flags&7]|solicits[op.Kind], 0
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
