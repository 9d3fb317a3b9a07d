package nic

import (
	"cmp"
	"slices"
	"time"

	"gopgas/internal/am"
	"gopgas/internal/inflight"
	"gopgas/internal/peers"
	"gopgas/transport"
)

// A connection that breaks is made again: what was flushed is posted again in its order before anything newer, and what
// was posted again am.MostTries times fails when it is flushed once more. Once would not do: a connection that breaks while
// nothing is in flight is noticed by the next operation, which a break of its own can still meet.
//
// But what changes the target's memory fails no sooner than such operations behind it that have met fewer breaks: one of them may be a flag, by which the target learns that all
// before it is there. Each holds its piece until then, so there is an end to that.

// broke notes that an operation on ep has ended in an error, which breaks the connection.
func (n *NIC) broke(ep transport.EP) {
	e := n.ends[ep.Index]
	e.fail(ep)
	if e.ep.Load() == pack(ep) && e.state.CompareAndSwap(epUp, epBroken) {
		n.Go(func() { n.mend(int(ep.Index)) })
	}
}

// fail notes an incarnation that has reported an error. What goes over an older one, as the answer to what came over it, may do so later.
func (e *endpoint) fail(ep transport.EP) {
	for {
		newest := e.failed.Load()
		if newest >= pack(ep) || e.failed.CompareAndSwap(newest, pack(ep)) {
			return
		}
	}
}

// mendPause is how long a mender leaves the NIC to others when it has nothing to report.
const mendPause = 50 * time.Microsecond

// redialPause is how long a mender waits before it tries what has just failed.
const redialPause = time.Millisecond

// mend takes a broken endpoint over until it works again or is found to be of no use. It polls for itself and never
// spreads news, which would need the endpoint.
func (n *NIC) mend(rank int) {
	e := n.ends[rank]
	for !n.empty(e) {
		if n.closed.Load() {
			return
		}
		if !n.Progress() && n.sched.Sleep(n.ctx, mendPause) != nil {
			return
		}
	}
	n.mu.Lock()
	redo, spoiled := e.redo, e.spoiled
	e.redo, e.spoiled = nil, 0
	n.mu.Unlock()
	// What was posted after the break may have been reported before what was flushed by it.
	slices.SortFunc(redo, func(a, b int32) int { return cmp.Compare(n.table.Piece(a).Seq, n.table.Piece(b).Seq) })
	redo = n.dropTired(redo)
	if len(redo) == 0 && !n.holds() && !e.wanted.Load() {
		n.mended(e, epNone) // whoever has something to do connects
		return
	}
	err := n.peers.Check(rank)
	if err == nil && e.refused.Load() {
		err = n.sched.Sleep(n.ctx, redialPause)
	}
	if err == nil {
		e.wanted.Store(false)
		err = n.dial(rank, epBroken, epBroken)
	}
	for _, id := range redo {
		switch p := n.table.Piece(id); {
		case err != nil:
			n.settle(id, nil, err)
		case p.Has(inflight.Shows) && behind(p.Seq, spoiled):
			n.settle(id, nil, ErrBehind)
		default:
			if err = n.postAgain(e, id); err != nil {
				n.settle(id, nil, err)
			}
		}
	}
	if err != nil {
		n.giveUp(rank, err)
		n.mended(e, epNone)
		return
	}
	n.mended(e, epUp)
	if e.failed.Load() == e.ep.Load() {
		n.broke(e.now()) // it has broken while nobody but the mender used it
	}
}

// tired reports whether a piece has been posted again as often as any is for its own sake.
func tired(p *inflight.Piece) bool { return p.Tries >= am.MostTries }

// alone reports whether it is all the same to the target what becomes of a piece.
func alone(p *inflight.Piece) bool { return p.Op()[0].Kind == transport.OpRead }

// dropTired ends the pieces of redo, which is in order, that are tired and have none behind them that is not and that they are to be there for. It returns the others.
func (n *NIC) dropTired(redo []int32) []int32 {
	k := len(redo)
	for k > 0 && (tired(n.table.Piece(redo[k-1])) || alone(n.table.Piece(redo[k-1]))) {
		k--
	}
	return append(redo[:k], slices.DeleteFunc(redo[k:], func(id int32) bool {
		p := n.table.Piece(id)
		if !tired(p) {
			return false
		}
		op := &p.Op()[0]
		n.settle(id, nil, n.statusError(p.Rank, &transport.Completion{Cookie: uint64(id), EP: op.EP, Kind: op.Kind, Status: transport.StatusFlushed}))
		return true
	})...)
}

// behind reports whether what has the number seq was sent behind what has spoiled, if anything has.
func behind(seq, spoiled uint64) bool { return spoiled != 0 && seq > spoiled }

// Show has an operation that TryLay has laid tell its target that all that this rank has sent there before has arrived: where something of that fails, or has failed and nobody was
// told of it, it is not carried out, and fails. On an error its piece has been freed.
func (n *NIC) Show(op *Laid) error {
	err := n.Told(int(op[0].EP.Index)) // what was known when it entered; what fails from then on is found by the mender
	if err != nil {
		n.giveUpLaid(op)
		return err
	}
	n.table.Piece(int32(op[0].Cookie)).Mark(inflight.Shows)
	return nil
}

// spoilLocked notes that piece p has failed for good, and broken its connection: what it was to bring is not there.
func (e *endpoint) spoilLocked(p *inflight.Piece) {
	if p.Op()[0].Kind != transport.OpRead && (e.spoiled == 0 || p.Seq < e.spoiled) {
		e.spoiled = p.Seq
	}
}

// mended ends a mender's hold of an endpoint. Messages may wait for that where nobody of this rank polls.
func (n *NIC) mended(e *endpoint, state uint32) {
	e.state.Store(state)
	n.sched.Ring()
	n.Domain.Wake()
}

// postAgain posts a flushed piece on the new connection. It is called by the mender only, in order.
func (n *NIC) postAgain(e *endpoint, id int32) error {
	if p := n.table.Piece(id); !tired(p) {
		p.Tries++
	}
	op := n.table.Op(id)
	op[0].EP = e.now()
	op[0].Flags &^= transport.FlagLazy // who waits for it may have asked already
	n.mu.Lock()
	e.entered++ // it keeps its Seq
	n.mu.Unlock()
	for {
		k, err := n.Domain.Post(op)
		if k == 1 {
			return nil
		}
		if err == nil && !n.Progress() {
			err = n.sched.Sleep(n.ctx, mendPause)
		}
		if err != nil {
			n.leave(e)
			return err
		}
	}
}

// retellPause is how long news rest that not everybody could be told.
const retellPause = time.Second

// lost records that rank is gone, and leaves the telling to the next one who polls.
func (n *NIC) lost(rank int) {
	if n.peers.MarkGone(rank, peers.Silent) {
		n.news.Store(true)
	}
	n.giveUp(rank, n.peers.Check(rank))
}

// News has ranks that do not see it told who is gone: for an end of which this rank has not heard from the NIC.
func (n *NIC) News() {
	n.news.Store(true)
	n.Domain.Wake()
}

// spreadSoon has the news spread, unless that goes on already.
func (n *NIC) spreadSoon() {
	if !n.closed.Load() && !n.spreading.Swap(true) {
		n.Go(n.spread)
	}
}

// spread has every other rank told who is gone: only those that were connected to a rank hear of its end from the NIC.
// The telling posts and may wait, for a connection that is being made for instance, perhaps by the very goroutine whose wait has polled:
// so it runs beside.
func (n *NIC) spread() {
	n.news.Store(false)
	missed := n.client.Tell()
	n.spreading.Store(false)
	if n.news.Load() {
		n.Domain.Wake() // somebody looks once more
	} else if missed && n.sched.Sleep(n.ctx, retellPause) == nil {
		n.News()
	}
}

// giveUp ends the requests to a rank with err: no answer will come.
func (n *NIC) giveUp(rank int, err error) {
	var own, others []uint64
	if n.am != nil {
		for _, cookie := range n.am.Lost(rank) {
			if cookie < FirstCookie {
				own = append(own, cookie)
			} else {
				others = append(others, cookie)
			}
		}
	}
	n.client.GaveUp(rank, others, err)
	for _, id := range own {
		n.ends[rank].asked.Add(-1)
		n.settle(int32(id), nil, err)
	}
}
