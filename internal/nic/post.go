package nic

import (
	"sync/atomic"

	"gopgas/internal/inflight"
	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// Post hands the operation of piece id to the NIC; it waits for the connection, and while the NIC has no room. The caller has filled in
// all of op but for its endpoint and its cookie. On an error the piece has been freed.
func (n *NIC) Post(name string, id int32, op transport.Op) error {
	n.table.Op(id)[0] = op
	return n.PostLaid(name, id)
}

// Lay writes the operation of piece id, between so many bytes of its buffer and the target's memory, to where it is posted from, and
// returns both: the caller fills the buffer, and adds what else the operation needs. It is for what is posted by PostLaid, or
// PostLaidLater: an operation is larger than all that most of them need, so it is written once and copied nowhere.
func (n *NIC) Lay(id int32, kind transport.Kind, flags uint8, bytes int, raddr, rkey uint64) (op *transport.Op, buf mem.Range) {
	op = n.table.Lay(id, kind, flags, bytes, raddr, rkey)
	return op, op.SGE[0].Mem
}

// Tally is operations and their bytes, for who holds a lock while he adds: what is stored takes less than what is added at once.
type Tally struct{ Ops, Bytes atomic.Uint64 }

// Add counts an operation of so many bytes.
func (t *Tally) Add(bytes int) {
	mem.Publish(&t.Ops, t.Ops.Load()+1)
	mem.Publish(&t.Bytes, t.Bytes.Load()+uint64(bytes))
}

// PostLaid is Post for an operation that Lay has written.
func (n *NIC) PostLaid(name string, id int32) error {
	op, err := n.Enter(name, id)
	if err != nil {
		return err
	}
	return n.Send(name, op)
}

// Enter has the operation of piece id, which Lay has written, enter its endpoint, which it waits for, and completes it. On an error the piece
// has been freed.
func (n *NIC) Enter(name string, id int32) (*Laid, error) {
	n.mu.Lock()
	op := n.EnterLocked(id)
	n.mu.Unlock()
	if op != nil {
		return op, nil
	}
	p := n.table.Piece(id)
	e, seq, err := n.enter(name, p.Rank)
	if err != nil {
		n.Abandon(id)
		return nil, err
	}
	p.Op()[0].Flags |= transport.FlagSignaled
	return e.address(p, id, seq), nil
}

// EnterLocked is Enter for who holds Lock, if there is a connection; else it returns nil.
func (n *NIC) EnterLocked(id int32) *Laid {
	p := n.table.Piece(id)
	e := n.ends[p.Rank]
	if e.state.Load() != epUp {
		return nil
	}
	p.Op()[0].Flags |= transport.FlagSignaled
	return e.addressLocked(p, id)
}

// addressLocked has the operation of piece id, which has been laid, enter its endpoint, which is up, and completes it.
func (e *endpoint) addressLocked(p *inflight.Piece, id int32) *Laid {
	e.entered++
	return e.address(p, id, e.entered)
}

// address completes the operation of piece id, which has been laid, and has entered its endpoint.
func (e *endpoint) address(p *inflight.Piece, id int32, seq uint64) *Laid {
	p.Seq = seq
	op := (*Laid)(p.Op())
	op[0].Cookie, op[0].EP = uint64(id), e.now()
	return op
}

// Laid is an operation that is complete, and has entered its endpoint, at the place from which it is posted. Its Cookie is its piece.
type Laid [1]transport.Op

// TryLay is TryAcquire, without a slot, and then Lay, for an operation to rank, and all else that can be done at once before it is posted, by
// Send, SendLater or Carry: it is counted in tally, and has entered. The caller fills its buffer, which is op[0].SGE[0].Mem. It returns nil, and has done
// nothing, where there is no tally, no piece or no connection, or the buffer is too short.
//
// Of a short operation that somebody waits for what it costs beyond the NIC is what the program sees. So this is one passage through the lock.
func (n *NIC) TryLay(tally *Tally, rank int, kind transport.Kind, flags uint8, bytes int, raddr, rkey uint64) (op *Laid) {
	if tally == nil || uint(bytes) > ScratchBytes {
		return nil
	}
	e := n.ends[rank]
	n.mu.Lock()
	if e.state.Load() == epUp {
		if p, id := n.table.Take(); p != nil {
			p.Rank = rank
			n.beganLocked(e, p, id)
			tally.Add(bytes)
			p.Lay(kind, flags|transport.FlagSignaled, raddr, rkey)
			n.table.Scratch(p, bytes)
			op = e.addressLocked(p, id)
		}
	}
	n.mu.Unlock()
	return op
}

// AcquireLaid is Acquire, Lay and Enter, in one passage through the lock if none of them has to wait. On an error it holds nothing.
func (n *NIC) AcquireLaid(name string, rank int, slot bool, kind transport.Kind, flags uint8, bytes int, raddr, rkey uint64) (op *Laid, err error) {
	n.mu.Lock()
	id, ok := n.TryAcquireLocked(rank, slot)
	if ok {
		n.Lay(id, kind, flags, bytes, raddr, rkey)
		op = n.EnterLocked(id)
	}
	n.mu.Unlock()
	if op != nil {
		return op, nil
	}
	if !ok {
		if id, err = n.Acquire(name, rank, slot); err != nil {
			return nil, err
		}
		n.Lay(id, kind, flags, bytes, raddr, rkey)
	}
	return n.Enter(name, id)
}

// Send posts an operation that TryLay has laid. On an error its piece has been freed.
func (n *NIC) Send(name string, op *Laid) error {
	n.used()
	if n.crowd.many() && op[0].SGE[0].Mem.Bytes < longLeast { // to post what is long takes longer than a look
		return n.leaveToCrowd(name, op)
	}
	if n.HeldBack() > 0 && !n.push() { // what was put before goes before
		return n.insist(name, op, nil)
	}
	if k, err := n.Domain.Post(op[:]); k != 1 {
		return n.insist(name, op, err)
	}
	return nil
}

// longLeast is how many bytes take so long to post that their end may come before.
const longLeast = 32 << 10

// PostAwaited is Post for who waits for the end next. A NIC that wants to know who polls without a pause is told so from the post of what is long on: its
// end may come before that is over.
func (n *NIC) PostAwaited(name string, id int32, op transport.Op) error {
	if n.hushable == nil || op.Kind != transport.OpWrite || op.SGE[0].Mem.Bytes < longLeast || n.HeldBack() > 0 {
		return n.Post(name, id, op)
	}
	n.table.Op(id)[0] = op
	laid, err := n.Enter(name, id)
	if err != nil {
		return err
	}
	n.used()
	n.hushable.Hush(sched.Steadily)
	k, err := n.Domain.Post(laid[:])
	n.hushable.Hush(sched.NoMore)
	if k != 1 {
		return n.insist(name, laid, err)
	}
	return nil
}

// Carry is Send for an operation that brings something, which it waits for and copies to dst, which is as long. The piece is free then.
func (n *NIC) Carry(name string, op *Laid, dst mem.Range) error {
	id := int32(op[0].Cookie)
	p := n.table.Piece(id)
	p.Mark(inflight.Awaited)
	if !n.crowd.many() && n.addBehind(op) {
		n.push() // else the wait does
	} else if err := n.Send(name, op); err != nil {
		return err
	}
	if vain := n.lookFirst(); !p.Over() || p.Err() != nil {
		if err := n.await(name, p, vain); err != nil {
			n.Give(id)
			return err
		}
	}
	mem.CopyRange(dst, mem.Range{Base: op[0].SGE[0].Mem.Base, Bytes: dst.Bytes})
	n.mu.Lock()
	n.table.FreeSought(p, id)
	n.mu.Unlock()
	return nil
}

// insist posts an operation as soon as the NIC takes it, unless it has refused it for good.
func (n *NIC) insist(name string, op *Laid, refused error) error {
	rank, posted := int(op[0].EP.Index), false
	err := transport.NewOpError(name, rank, refused)
	if err == nil {
		err = n.WaitUntil(name, rank, func() bool {
			if !n.push() {
				return false
			}
			k, err := n.Domain.Post(op[:])
			posted, refused = k == 1, err
			return posted || err != nil
		})
	}
	if posted {
		return nil
	}
	if err == nil {
		err = transport.NewOpError(name, rank, refused)
	}
	n.giveUpLaid(op)
	return err
}

// giveUpLaid ends what has entered and was not posted.
func (n *NIC) giveUpLaid(op *Laid) {
	n.leave(n.ends[op[0].EP.Index])
	n.Abandon(int32(op[0].Cookie))
}

// TryPost hands one operation to the NIC, from and to memory of the caller's, if that can be done now; it waits for nothing. op.EP.Index
// is the rank. How it ends Client.Reported is told, with op.Cookie. That it cannot be done no piece of others is the reason: these may wait for it.
func (n *NIC) TryPost(op *transport.Op) (posted bool, err error) {
	rank := int(op.EP.Index)
	if n.closed.Load() {
		return false, ErrOwnEnd
	}
	if err := n.peers.Check(rank); err != nil {
		return false, err
	}
	e := n.ends[rank]
	n.mu.Lock()
	seq, entered := e.tryEnterLocked()
	id, ok := int32(0), false
	if entered {
		if id, ok = n.TryAcquireLocked(rank, false); !ok {
			id, ok = n.tryAsideLocked(rank)
		}
	}
	n.mu.Unlock()
	if !entered {
		n.want(rank)
		return false, nil
	}
	if !ok || !n.push() {
		n.leave(e)
		if ok {
			n.Abandon(id)
		}
		return false, nil
	}
	p, ops := n.table.Piece(id), n.table.Op(id)
	p.Inner, p.Seq = op.Cookie, seq
	p.Mark(inflight.Piped)
	n.piped.Add(1)
	ops[0] = *op
	ops[0].Cookie, ops[0].EP = uint64(id), e.now()
	k, err := n.Domain.Post(ops)
	if k == 1 {
		n.rouse()
		return true, nil
	}
	n.piped.Add(-1)
	n.leave(e)
	n.Abandon(id)
	return false, err
}

// Lane is a NIC as those see it who have names of their own for their operations, and call an endpoint by its rank: pipes, for instance.
type Lane struct{ N *NIC }

// Caps returns what the NIC can do.
func (l Lane) Caps() transport.Caps { return l.N.Caps }

// Register registers memory with the NIC.
func (l Lane) Register(r mem.Range, a transport.Access) (transport.Region, error) {
	return l.N.Domain.Register(r, a)
}

// Deregister ends a registration.
func (l Lane) Deregister(r transport.Region) error { return l.N.Domain.Deregister(r) }

// Post hands over as many operations as can be now, by TryPost: it waits for nothing.
func (l Lane) Post(ops []transport.Op) (posted int, err error) {
	for posted < len(ops) && err == nil {
		var ok bool
		if ok, err = l.N.TryPost(&ops[posted]); !ok {
			break
		}
		posted++
	}
	return posted, err
}
