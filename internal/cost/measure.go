package cost

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Probe is the machine under measurement. Functions that are nil leave their part of the model out.
type Probe struct {
	Now       func() time.Duration // a clock; it may be as coarse as a microsecond
	PageBytes int
	Pages     int           // the largest registration to try; 0: 256
	Time      time.Duration // for all of it; 0: 20 ms

	Register   func(pages int) error // the first so many pages of memory that was touched before
	Deregister func() error          // what Register registered
	Copy       func(bytes int)       // once
	CopyBytes  int                   // the largest copy to try; 0: none
	Post       func()                // an operation, without its completion
	Lookup     func()                // Acquire and Release of a cached region
	Compare    func()                // one comparison in a queue
}

// Limits of Measure.
const (
	defaultTime  = 20 * time.Millisecond
	defaultPages = 256
	leastTries   = 3
)

// Measure measures a model. It fails where registrations do, or where the clock stands still.
func Measure(p Probe) (Model, error) {
	if p.Now == nil || p.PageBytes <= 0 || p.Register == nil || p.Deregister == nil {
		return Model{}, errors.New("measure costs: want a clock, a page size and a registrar")
	}
	if p.Time <= 0 {
		p.Time = defaultTime
	}
	if p.Pages <= 0 {
		p.Pages = defaultPages
	}
	m := Model{Name: "measured", PageBytes: p.PageBytes}
	if err := p.registrations(&m); err != nil {
		return Model{}, err
	}
	sizes := 0
	for n := 256; n <= p.CopyBytes; n *= 4 {
		sizes++
	}
	for n := 256; n <= p.CopyBytes && p.Copy != nil; n *= 4 {
		t := p.best(p.Time/4/time.Duration(sizes), func() { p.Copy(n) })
		if k := len(m.Copy); k > 0 {
			t = max(t, m.Copy[k-1].Nanos+1) // K1
		}
		m.Copy = append(m.Copy, Sample{n, t})
	}
	for _, one := range []struct {
		f  func()
		to *float64
	}{{p.Post, &m.Post}, {p.Lookup, &m.Lookup}, {p.Compare, &m.Compare}} {
		if one.f != nil {
			*one.to = p.best(p.Time/20, one.f)
		}
	}
	return m, m.check()
}

// registrations measures and fits the two lines, in half of the time.
func (p *Probe) registrations(m *Model) error {
	var sizes []int
	for n := 1; n <= p.Pages; n *= 4 {
		sizes = append(sizes, n)
	}
	if sizes[len(sizes)-1] != p.Pages {
		sizes = append(sizes, p.Pages)
	}
	reg, dereg := make([]Sample, len(sizes)), make([]Sample, len(sizes))
	for i, n := range sizes {
		reg[i], dereg[i] = Sample{n, math.Inf(1)}, Sample{n, math.Inf(1)}
	}
	// All sizes in turn, so that a disturbance of some length does not spoil all tries of one.
	for begin, try := p.Now(), 0; try < leastTries || p.Now()-begin < p.Time/2; try++ {
		for i, n := range sizes {
			t0 := p.Now()
			if err := p.Register(n); err != nil {
				return fmt.Errorf("measure the registration of %d pages: %w", n, err)
			}
			t1 := p.Now()
			if err := p.Deregister(); err != nil {
				return fmt.Errorf("measure the deregistration of %d pages: %w", n, err)
			}
			t2 := p.Now()
			reg[i].Nanos, dereg[i].Nanos = min(reg[i].Nanos, float64(t1-t0)), min(dereg[i].Nanos, float64(t2-t1))
			if try >= leastTries && p.Now()-begin > p.Time/2 {
				break
			}
		}
		if try > 1<<20 {
			return errors.New("measure registrations: the clock stands still")
		}
	}
	for i := range sizes {
		reg[i].Nanos, dereg[i].Nanos = max(reg[i].Nanos, 1), max(dereg[i].Nanos, 1)
	}
	var err error
	if m.Register, err = Fit(reg); err != nil {
		return err
	}
	m.RegisterSamples, m.DeregisterSamples = reg, dereg
	m.Deregister, err = Fit(dereg)
	return err
}

// best returns the least time of f in nanoseconds, of batches that fit into limit.
func (p *Probe) best(limit time.Duration, f func()) float64 {
	f()
	least := math.Inf(1)
	batch := 1
	for begin := p.Now(); ; {
		t := p.Now()
		for range batch {
			f()
		}
		now := p.Now()
		took := now - t
		least = min(least, float64(took)/float64(batch))
		if took < limit/16 && batch < 1<<16 {
			batch *= 2 // until the clock's grain does not matter
			least = math.Inf(1)
		}
		if now-begin >= limit && !math.IsInf(least, 1) {
			return max(least, 0.1)
		}
		if now == begin && batch == 1<<16 {
			return max(least, 0.1)
		}
	}
}
