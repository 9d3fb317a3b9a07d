package replay

import (
	"gopgas/firehose"
	"gopgas/internal/callsite"
	"gopgas/internal/foresight"
	"gopgas/internal/predict"
	"gopgas/internal/trace"
)

// joint is what a rank's helper looks after, as in the library: its registrations, and the buckets that it holds of others' memory.
type joint struct {
	*cache
	r *rank
}

// outlook is what is known ahead of a rank's uses of buckets.
type outlook struct {
	table *foresight.Table
	ctx   *predict.Stream
	due   map[predict.Region]predict.Nanos // when a bucket's next use is expected
	costs firehose.Costs
}

// told has the uses of a piece's buckets told to the helper when they are over, those that are worth it.
func (r *rank) told(now predict.Nanos, f *flow) {
	h := r.hose
	f.uses = nil
	if !r.cfg.Policy.helped() || f.q.State() == firehose.Failed || !h.holder.Pressed(int(f.e.Peer)) {
		return
	}
	o := &h.ahead
	run, found := f.q.Run(), foresight.OutcomeOf(f.q)
	u := predict.Use{At: now, Stack: callsite.Stack(f.e.Stack)}
	kind := uint8(0)
	if f.e.Kind == trace.Get {
		kind = 1
	}
	for i := range run.Count {
		b := run.At(i)
		if o.table.Again(int(f.e.Peer), b) || !o.table.Tell(u.Stack.Hash(), found, foresight.Costs{Miss: o.costs.RoundTrip}) {
			continue
		}
		n := o.table.Number(foresight.Target{Rank: int(f.e.Peer), Range: h.ranges[reach{f.e.Peer, f.e.To}], Bucket: b})
		u.Region, u.Buf = predict.Elsewhere|predict.Region(n), n
		u.Pages = pagesIn(r.mind.Costs().Register, foresight.Back(o.costs, b.Weight()<<h.lender.shift))
		o.ctx.Note(&u, predict.MakeCall(kind, n), 0)
		f.uses = append(f.uses, u)
	}
}

// over tells the helper of uses that are over.
func (r *rank) over(now predict.Nanos, uses []predict.Use) {
	for i := range uses {
		r.dq.Put(&uses[i])
		r.wake = min(r.wake, now+r.cfg.Costs.Poll)
	}
}

// pagesIn is how many pages take so long to register.
func pagesIn(l predict.Line, nanos float64) uint32 {
	if l.PerPage <= 0 || nanos <= l.Fixed+l.Residual {
		return 1
	}
	return uint32(min(1<<20, max(1, (nanos-l.Fixed-l.Residual)/l.PerPage+1)))
}

// bucket returns the view and the bucket that a number stands for. v is nil where it is a region of the rank's own; known is false
// where the range's buckets have another size now.
func (j joint) bucket(id predict.Region) (v *firehose.View, b firehose.Bucket, known bool) {
	h := j.r.hose
	if h == nil || id&predict.Elsewhere == 0 {
		return nil, 0, false
	}
	t, ok := h.ahead.table.Find(uint64(id &^ predict.Elsewhere))
	if !ok {
		return nil, 0, false
	}
	v = h.holder.Known(t.Rank, t.Range)
	return v, t.Bucket, v != nil && v.Order() == t.Bucket.Order()
}

// Registered implements predict.Cache, as all that follows.
func (j joint) Registered(id predict.Region) bool {
	if id&predict.Elsewhere == 0 {
		return j.cache.Registered(id)
	}
	v, b, known := j.bucket(id)
	return known && j.r.hose.holder.Knows(v, b)
}

// Register asks for a bucket. Its move leaves at once; the helper goes on.
func (j joint) Register(id predict.Region) error {
	if id&predict.Elsewhere == 0 {
		return j.cache.Register(id)
	}
	h := j.r.hose
	v, b, known := j.bucket(id)
	switch {
	case !known:
		delete(h.ahead.due, id)
		return predict.ErrGone
	case !h.holder.Ahead(v, b, h.ahead.due[id]):
		return errNoRoom
	}
	h.send(j.now)
	return nil
}

func (j joint) Deregister(id predict.Region) bool {
	if id&predict.Elsewhere == 0 {
		return j.cache.Deregister(id)
	}
	v, b, known := j.bucket(id)
	return known && j.r.hose.holder.Yield(v, b)
}

func (j joint) Expect(id predict.Region, at predict.Nanos) {
	if id&predict.Elsewhere == 0 {
		j.cache.Expect(id, at)
		return
	}
	h := j.r.hose
	if at == predict.Never {
		delete(h.ahead.due, id)
		at = 0
	} else {
		h.ahead.due[id] = at
	}
	if v, b, known := j.bucket(id); known {
		h.holder.Expect(v, b, at)
	}
}
