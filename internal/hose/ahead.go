package hose

import (
	"gopgas/firehose"
	"gopgas/internal/foresight"
	"gopgas/regmgr"
)

// outlook is how the buckets that this rank uses are told to the predictor, which asks for them ahead of their next use.
// It lies under the engine's lock.
type outlook struct {
	on    bool
	table *foresight.Table
	uses  []regmgr.RemoteUse // by piece
}

// frames are those from NoteLocked upwards to what calls the engine's transfer: further down a hit takes another way than a
// miss, and both are the same use of a bucket. So what calls Attach or NoteLocked lies as deep below the transfer on either way.
const frames = 4

// foresee has the policy's helper look after firehoses, where there is one.
func (h *Set) foresee() {
	h.ahead = &outlook{table: foresight.New(h.size), uses: make([]regmgr.RemoteUse, len(h.q))}
	h.ahead.on = h.reg.Foresee(remote{h})
}

// NoteLocked tells the predictor that piece id, which has its bucket of far or waits for it, is about to use that, if such uses of its
// call site are worth it. Many small operations on one bucket are one use. It follows TryLocked; Attach does it itself.
func (h *Set) NoteLocked(id int32, far *Far, read bool) {
	f := h.ahead
	if !f.on || !h.holder.Pressed(far.rank) {
		return
	}
	q := &h.q[id]
	b := q.Run().First
	if f.table.Again(far.rank, b) {
		return
	}
	u := &f.uses[id]
	site := h.reg.RemoteMark(u, frames)
	if f.table.Tell(site, foresight.OutcomeOf(q), foresight.Costs{Miss: h.costs.RoundTrip}) {
		h.reg.RemoteCalled(u, f.table.Number(foresight.Target{Rank: far.rank, Range: far.r, Bucket: b}), read)
	}
}

// doneLocked tells it that the piece has let go of its bucket, or did not get it.
func (h *Set) doneLocked(id int32) {
	if f := h.ahead; f.on {
		h.reg.RemoteDone(&f.uses[id], foresight.Back(h.costs, h.q[id].Run().First.Weight()<<h.budget.Shift))
	}
}

// remote is the firehoses of this rank as the predictor sees them.
type remote struct{ h *Set }

// do calls f for the target with that number, under the engine's lock; false if it was forgotten, or its memory withdrawn.
func (r remote) do(id uint64, f func(v *firehose.View, b firehose.Bucket) bool) (known, done bool) {
	h := r.h
	h.lock.Lock()
	defer h.lock.Unlock()
	t, ok := h.ahead.table.Find(id)
	if !ok {
		return false, false
	}
	v := h.holder.Known(t.Rank, t.Range)
	if v == nil || v.Order() != t.Bucket.Order() {
		return false, false
	}
	return true, f(v, t.Bucket)
}

// Has implements regmgr.Remote, as all that follows.
func (r remote) Has(id uint64) bool {
	_, has := r.do(id, r.h.holder.Knows)
	return has
}

func (r remote) Ask(id uint64, due int64) error {
	known, done := r.do(id, func(v *firehose.View, b firehose.Bucket) bool { return r.h.holder.Ahead(v, b, due) })
	if !known {
		return regmgr.ErrNoBucket
	}
	r.h.work.Store(true)
	r.h.send() // where it was not asked for firehoses may have been given up all the same
	if !done {
		return regmgr.ErrNoFirehose
	}
	return nil
}

func (r remote) Yield(id uint64) bool {
	_, done := r.do(id, r.h.holder.Yield)
	return done
}

func (r remote) Expect(id uint64, due int64) {
	r.do(id, func(v *firehose.View, b firehose.Bucket) bool { r.h.holder.Expect(v, b, due); return true })
}
