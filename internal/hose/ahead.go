package hose

import (
	"gopgas/firehose"
	"gopgas/regmgr"
)

// target is a bucket of another rank's memory.
type target struct {
	rank int
	r    firehose.Range
	b    firehose.Bucket
}

// foresight is how the buckets that this rank uses are told to the predictor, which asks for them ahead of their next use.
// It lies under the engine's lock.
type foresight struct {
	on      bool
	base    uint64 // the number of targets[0]
	targets []target
	numbers map[target]uint64
	last    []firehose.Bucket  // by rank: the bucket used last, which is one use for as long as no other is used
	uses    []regmgr.RemoteUse // by piece
}

// mostTargets is how many buckets are kept in mind. Beyond that all are forgotten: they are learnt anew.
const mostTargets = 1 << 16

// frames are those from NoteLocked upwards to what calls the engine's transfer: further down a hit takes another way than a
// miss, and both are the same use of a bucket. So what calls Attach or NoteLocked lies as deep below the transfer on either way.
const frames = 4

// foresee has the policy's helper look after firehoses, where there is one.
func (h *Set) foresee() {
	h.ahead = &foresight{
		numbers: make(map[target]uint64), last: make([]firehose.Bucket, h.size), uses: make([]regmgr.RemoteUse, len(h.q)),
	}
	h.ahead.on = h.reg.Foresee(remote{h})
}

// number returns the number of a target, a new one if it has none.
func (f *foresight) number(t target) uint64 {
	if id, ok := f.numbers[t]; ok {
		return id
	}
	if len(f.targets) == mostTargets {
		f.base += mostTargets
		f.targets = f.targets[:0]
		clear(f.numbers)
	}
	id := f.base + uint64(len(f.targets))
	f.targets = append(f.targets, t)
	f.numbers[t] = id
	return id
}

// find is number's inverse; ok is false if it was forgotten.
func (f *foresight) find(id uint64) (t target, ok bool) {
	if id < f.base || id-f.base >= uint64(len(f.targets)) {
		return target{}, false
	}
	return f.targets[id-f.base], true
}

// NoteLocked tells the predictor that piece id is about to use the bucket at address addr of far, unless the use before was
// of the same: many small operations on one bucket are one use of it. It follows TryLocked; Attach does it itself.
func (h *Set) NoteLocked(id int32, far *Far, addr uint64, read bool) {
	f := h.ahead
	if !f.on {
		return
	}
	b := far.r.Run(h.budget.Shift, far.v.Order(), addr-far.r.Start, 1).First
	if f.last[far.rank] == b+1 {
		return
	}
	f.last[far.rank] = b + 1
	h.reg.RemoteCalled(&f.uses[id], f.number(target{far.rank, far.r, b}), read, frames)
}

// doneLocked tells it that the piece has let go of its bucket, or did not get it.
func (h *Set) doneLocked(id int32) {
	if f := h.ahead; f.on {
		unit := float64(int64(1) << h.budget.Shift)
		h.reg.RemoteDone(&f.uses[id], 2*h.costs.RoundTrip+h.costs.Register+unit*h.costs.RegisterByte)
	}
}

// remote is the firehoses of this rank as the predictor sees them.
type remote struct{ h *Set }

// do calls f for the target with that number, under the engine's lock; false if it was forgotten, or its memory withdrawn.
func (r remote) do(id uint64, f func(v *firehose.View, b firehose.Bucket) bool) (known, done bool) {
	h := r.h
	h.lock.Lock()
	defer h.lock.Unlock()
	t, ok := h.ahead.find(id)
	if !ok {
		return false, false
	}
	v := h.holder.Known(t.rank, t.r)
	if v == nil || v.Order() != t.b.Order() {
		return false, false
	}
	return true, f(v, t.b)
}

// Has implements regmgr.Remote, as all that follows.
func (r remote) Has(id uint64) bool {
	_, has := r.do(id, r.h.holder.Knows)
	return has
}

func (r remote) Ask(id uint64, due int64) error {
	known, done := r.do(id, func(v *firehose.View, b firehose.Bucket) bool { return r.h.holder.Ahead(v, b, due) })
	switch {
	case !known:
		return regmgr.ErrNoBucket
	case !done:
		return regmgr.ErrNoFirehose
	}
	r.h.work.Store(true)
	r.h.send()
	return nil
}

func (r remote) Yield(id uint64) bool {
	_, done := r.do(id, r.h.holder.Yield)
	return done
}

func (r remote) Expect(id uint64, due int64) {
	r.do(id, func(v *firehose.View, b firehose.Bucket) bool { r.h.holder.Expect(v, b, due); return true })
}
