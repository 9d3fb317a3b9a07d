package regmgr

import (
	"errors"

	"gopgas/internal/callsite"
	"gopgas/internal/predict"
)

// Remote is what other ranks keep registered for this one and this one may ask for ahead of its use: firehoses on their
// buckets. The helper looks after them with the same predictor as after the cache: the signature of a use is its call site
// and the bucket. Buckets have numbers below 2^63, of Remote's own. The methods are called by the helper alone and do not wait.
type Remote interface {
	// Has reports whether the bucket is held or asked for.
	Has(bucket uint64) bool
	// Ask asks for the bucket, whose use is expected at due. The error is ErrNoBucket where it no longer exists.
	Ask(bucket uint64, due int64) error
	// Yield lets the bucket be given up before others, unless it is in use.
	Yield(bucket uint64) bool
	// Expect says when the next use is expected; 0: nobody knows.
	Expect(bucket uint64, due int64)
}

// Errors of Remote.Ask.
var (
	// ErrNoBucket: the memory is no longer exposed, or is divided otherwise.
	ErrNoBucket = errors.New("the bucket no longer exists")
	// ErrNoFirehose: none is to be had for the bucket now.
	ErrNoFirehose = errors.New("no firehose is free for the bucket")
)

// Foresee has the helper look after r from now on. It reports whether there is a helper.
func (m *Manager) Foresee(r Remote) bool {
	if m.ahead == nil {
		return false
	}
	m.ahead.remote.Store(&r)
	return true
}

// RemoteUse is a use of a bucket, from RemoteMark to RemoteDone; the zero RemoteUse is none.
type RemoteUse struct {
	use predict.Use
	on  bool
}

// RemoteMark notes the time of a transfer that is about to use a bucket, and how its call came about, and returns a hash of that: its
// call site. skip is the number of frames between its caller and the program that are the same for all. The use is told to nobody
// unless RemoteCalled follows.
//
//go:noinline
func (m *Manager) RemoteMark(u *RemoteUse, skip int) (site uint64) {
	u.on = false
	if p := m.ahead; p.counter {
		u.use.At = int64(callsite.Capture(&u.use.Stack, skip))
	} else {
		u.use.At = p.clock.Mark(&u.use.Stack, skip)
	}
	return u.use.Stack.Hash()
}

// RemoteCalled takes the use that was marked into the window of calls, and has RemoteDone tell the helper of it; a destination if read.
func (m *Manager) RemoteCalled(u *RemoteUse, bucket uint64, read bool) {
	p := m.ahead
	u.on = true
	p.remoteBegun.Add(1)
	u.use.Region, u.use.Buf = predict.Elsewhere|predict.Region(bucket), bucket
	kind := uint8(0)
	if read {
		kind = 1
	}
	p.remoteCalls.Note(&u.use, predict.MakeCall(kind, bucket), p.caller())
}

// RemoteDone tells that the transfer has let go of the bucket. nanos is what it takes to get it again, at most.
func (m *Manager) RemoteDone(u *RemoteUse, nanos float64) {
	if !u.on {
		return
	}
	u.on = false
	p := m.ahead
	u.use.Pages = p.pagesIn(nanos)
	p.remoteDone.Add(1)
	p.done(&u.use)
}

// pagesIn is how many pages take so long to register: costs of a bucket in the predictor's measure.
func (p *aheader) pagesIn(nanos float64) uint32 {
	l := p.register
	if l.PerPage <= 0 || nanos <= l.Fixed+l.Residual {
		return 1
	}
	return uint32(min(1<<20, max(1, (nanos-l.Fixed-l.Residual)/l.PerPage+1)))
}

// joint is what the helper looks after: the cache, and other ranks' buckets.
type joint struct {
	spotCache
	p *aheader
}

// bucket returns whose bucket id is; r is nil if it is a region of the cache, or there is nobody.
func (j joint) bucket(id predict.Region) (r Remote, bucket uint64) {
	if of := j.p.remote.Load(); of != nil && id&predict.Elsewhere != 0 {
		return *of, uint64(id &^ predict.Elsewhere)
	}
	return nil, 0
}

func (j joint) Registered(id predict.Region) bool {
	if r, b := j.bucket(id); r != nil {
		return r.Has(b)
	}
	return j.spotCache.Registered(id)
}

func (j joint) Register(id predict.Region) error {
	r, b := j.bucket(id)
	if r == nil {
		return j.spotCache.Register(id)
	}
	err := r.Ask(b, j.p.due[b])
	if errors.Is(err, ErrNoBucket) {
		delete(j.p.due, b)
		return predict.ErrGone
	}
	return err
}

func (j joint) Deregister(id predict.Region) bool {
	if r, b := j.bucket(id); r != nil {
		return r.Yield(b)
	}
	return j.spotCache.Deregister(id)
}

func (j joint) Expect(id predict.Region, at predict.Nanos) {
	r, b := j.bucket(id)
	switch {
	case r == nil:
		j.spotCache.Expect(id, at)
	case at == predict.Never:
		delete(j.p.due, b)
		r.Expect(b, 0)
	default:
		j.p.due[b] = at
		r.Expect(b, at)
	}
}
