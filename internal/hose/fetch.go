package hose

import (
	"context"
	"time"

	"gopgas/firehose"
	"gopgas/transport"
)

// Fetch is a question for buckets of a long transfer together. It keeps none of them: whoever held some and waited for more could
// wait for ever. Most will still be there when they are used. The zero Fetch is none.
type Fetch struct {
	h     *Set
	q     *firehose.Request // nil: nothing is waited for
	rank  int
	bytes int
	begun time.Duration
}

// Fetch asks for the buckets of n bytes at address addr of far, as many as the share allows beside other transfers. It does not wait:
// the caller has something to do until the answer comes, and calls End then. Where the first of them are held it is for those alone, and
// those that follow are on their way meanwhile. alone: a single bucket is asked for too; otherwise whoever uses it will do that, perhaps
// with a put that travels along.
func (h *Set) Fetch(name string, far *Far, addr uint64, n int, alone bool) (Fetch, error) {
	if far.bare {
		return Fetch{bytes: n}, nil
	}
	at := addr - far.start
	h.lock.Lock()
	v, err := h.viewLocked(far)
	if err != nil {
		h.lock.Unlock()
		return Fetch{}, transport.NewOpError(name, far.rank, err)
	}
	piece := uint64(h.stretchLocked(v, at, n))
	f := Fetch{h: h, rank: far.rank, bytes: int(piece)}
	if piece <= v.End(at)-at && (!alone || h.holder.Held(v, at, piece)) {
		h.lock.Unlock()
		return f, nil
	}
	var waits bool
	if held := h.heldLocked(v, at, piece); held > 0 {
		f.bytes, waits = int(held), held < piece && h.orderLocked(v, at+held, piece-held)
	} else {
		f.q = &firehose.Request{Early: true}
		if waits = h.holder.Acquire(v, f.q, at, piece) == firehose.Waiting; !waits {
			h.letGoLocked(f.q)
			f.q = nil
		}
	}
	h.lock.Unlock()
	if waits {
		f.begun = h.sched.Now()
		h.work.Store(true)
		h.send()
	}
	return f, nil
}

// heldLocked returns how many of n bytes at an offset lie in buckets that are held, from the first byte on. They become the last
// to be given up.
func (h *Set) heldLocked(v *firehose.View, at, n uint64) uint64 {
	h.part.Early = true
	from, held := h.holder.Partial(v, &h.part, at, n)
	if held > 0 {
		h.letGoLocked(&h.part)
	}
	if from != at {
		return 0
	}
	return held
}

// orderLocked asks for buckets that nobody waits for yet, and reports whether they are on their way.
func (h *Set) orderLocked(v *firehose.View, at, n uint64) bool {
	q := &firehose.Request{Early: true}
	if h.holder.Acquire(v, q, at, n) != firehose.Waiting {
		h.letGoLocked(q)
		return false
	}
	h.holder.Abandon(q)
	return true
}

// Bytes is for how many bytes buckets are asked.
func (f *Fetch) Bytes() int { return f.bytes }

// Pending reports whether the answer has not come.
func (f *Fetch) Pending() bool {
	if f.q == nil {
		return false
	}
	f.h.lock.Lock()
	defer f.h.lock.Unlock()
	return f.q.State() == firehose.Waiting
}

// End waits for the answer, and returns for how many bytes buckets were asked. It is called once for each Fetch.
func (f *Fetch) End(name string) (int, error) {
	if f.q == nil {
		return f.bytes, nil
	}
	if f.Pending() {
		if err := f.h.await(name, f.rank, f.q, f.begun); err != nil {
			return 0, err
		}
	}
	f.h.lock.Lock()
	defer f.h.lock.Unlock()
	f.h.letGoLocked(f.q) // nothing, if it failed: the parts will find their own way
	f.q = nil
	return f.bytes, nil
}

// Span is a run of a transfer that has many. Where Far is nil it needs no bucket.
type Span struct {
	Far   *Far
	Addr  uint64
	Bytes int
}

// fetchMost is how many runs of a transfer have their buckets asked for together.
const fetchMost = 64

// fetcher asks for the buckets of many runs at once, so that their moves are under way together.
type fetcher struct{ q [fetchMost]firehose.Request }

// FetchRuns asks for the buckets of the runs from number i on, to whatever members, as many as half a share holds, and
// returns the number of the first run it did not ask for. When it returns no answer is outstanding. It keeps no bucket:
// each is let go of as soon as it is there, else transfers that hold some and wait for more could wait for each other for
// ever. Most will still be there when they are used.
func (h *Set) FetchRuns(op string, count, i int, run func(int) Span) (next int, err error) {
	if h == nil {
		return count, nil
	}
	f, _ := h.fetchers.Get().(*fetcher)
	if f == nil {
		f = new(fetcher)
	}
	used := 0
	var waits [fetchMost]int32 // who is waited for: rank by request
	h.lock.Lock()
	for left := max(1, h.budget.Share/2); i < count && used < fetchMost && left > 0; i++ {
		r := run(i)
		if r.Far == nil || r.Far.bare || r.Bytes == 0 {
			continue
		}
		v, verr := h.viewLocked(r.Far)
		if verr != nil {
			continue // the run itself will say so
		}
		at := r.Addr - r.Far.start
		n := h.holder.Piece(v, at, uint64(r.Bytes))
		if n < uint64(r.Bytes) {
			n = min(n, v.End(at)-at) // a long run asks for itself, later
		}
		q := &f.q[used]
		q.Early = true
		if h.holder.Acquire(v, q, at, n) == firehose.Ready {
			h.letGoLocked(q)
			continue
		}
		waits[used] = int32(r.Far.rank)
		used++
		left -= int64(q.Run().Weight())
	}
	h.lock.Unlock()
	if used > 0 {
		h.work.Store(true)
		h.send()
	}
	for k := 0; k < used && err == nil; k++ {
		err = h.awaitAll(op, int(waits[k]), f.q[k:used])
	}
	if err == nil {
		h.fetchers.Put(f)
	} // else some request may still be under way: it stays where it is
	return i, err
}

// awaitAll returns when the first of the requests, which is to rank, waits no longer, and lets go of all that are there.
func (h *Set) awaitAll(op string, rank int, q []firehose.Request) error {
	done := func() bool {
		h.lock.Lock()
		defer h.lock.Unlock()
		for k := range q {
			h.letGoLocked(&q[k])
		}
		return q[0].State() != firehose.Waiting
	}
	if done() {
		return nil
	}
	err := h.nic.WaitUntil(context.Background(), op, rank, done)
	if err != nil {
		h.lock.Lock()
		defer h.lock.Unlock()
		for k := range q {
			h.holder.Abandon(&q[k])
		}
		h.holder.Lost(rank, err) // as in await
	}
	return err
}
