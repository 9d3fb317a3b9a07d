package replay

import (
	"gopgas/firehose"
	"gopgas/internal/predict"
)

// lender registers buckets of a rank's memory for others, out of the rank's one account. It is a firehose.Registrar that takes
// virtual time: one registration after the other, from the time that at was set to.
type lender struct {
	c      *cache
	shift  uint8 // of the budget's units
	server *firehose.Server
	at     predict.Nanos
	last   uint64 // key given out last
}

// pagesOf are the pages of a bucket.
func (l *lender) pagesOf(r firehose.Range, b firehose.Bucket) span {
	off, n := r.Extent(l.shift, b)
	return spanOf(r.Start+off, n)
}

// Register implements firehose.Registrar: each bucket is a registration of its own, as with a NIC.
func (l *lender) Register(r firehose.Range, run firehose.Run, pins []firehose.Pin) error {
	for i := range pins {
		s := l.pagesOf(r, run.At(uint32(i)))
		if !l.room(s.bytes()) {
			_ = l.Deregister(r, run, pins[:i]) // it cannot fail
			return errNoRoom
		}
		l.c.account.charge(l.at, s.bytes(), true)
		l.at += l.c.costs.Register.Mean(s.pages())
		l.last++
		pins[i] = firehose.Pin{Key: l.last, Handle: l.last}
	}
	return nil
}

// Deregister implements firehose.Registrar.
func (l *lender) Deregister(r firehose.Range, run firehose.Run, pins []firehose.Pin) error {
	for i := range pins {
		s := l.pagesOf(r, run.At(uint32(i)))
		l.at += l.c.costs.Deregister.Mean(s.pages())
		l.c.account.charge(l.at, -s.bytes(), true)
	}
	return nil
}

// room gives up what it takes for so many more bytes for others.
func (l *lender) room(bytes int64) bool {
	a := &l.c.account
	if a.limit > 0 && bytes > a.limit {
		return false
	}
	for a.asks(l.at, bytes, true) != granted {
		if !l.c.yield(&l.at, false) {
			return false
		}
	}
	return true
}

// yield gives up what was not used for the longest time: an idle region, or a bucket that nobody holds any more. What nobody is
// known to need goes before what is predicted to be used.
func (c *cache) yield(at *predict.Nanos, ahead bool) bool {
	l := c.lender
	if l == nil {
		return c.spare(at, ahead)
	}
	age, some := l.server.Oldest()
	if !some {
		return c.spare(at, ahead)
	}
	if c.evict(at, predict.Never-1, age+1) {
		return true
	}
	l.at = *at
	freed := l.server.Shed(1)
	*at = l.at
	return freed > 0 || c.spare(at, ahead)
}
