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
	Time      time.Duration // for all of it; 0: 15 ms

	Register   func(pages int) error // the first so many pages of memory that was touched before
	Deregister func() error          // what Register registered
	Copy       func(bytes int)       // once
	CopyBytes  int                   // the largest copy to try; 0: none
	Post       func(ops int) error   // hands the NIC so many operations at once, without their completion
	Posts      int                   // how many it takes at once, at most
	Drain      func() error          // waits until what Post has handed over is done
	Lookup     func()                // Acquire and Release of a cached region
	Compare    func()                // one comparison in a queue
	Hash       func()                // a use that a predictor takes in
}

// Limits of Measure.
const (
	defaultTime  = 15 * time.Millisecond
	defaultPages = 256
	mostTries    = 1 << 16
)

// Shares of the time by which the parts of a measurement are to be over, in sixteenths.
const (
	untilRegistered = 8
	untilPosted     = 10
	untilCopied     = 14
	untilAll        = 16
)

// Measure measures a model. It fails where registrations do, or where the clock stands still. When its time is over it takes what it has:
// each thing was tried once then, if it took the machine so long, and as often as there was time for otherwise.
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
	begin := p.Now()
	until := func(share time.Duration) time.Duration { return begin + p.Time*share/untilAll }
	if err := p.registrations(&m, until(untilRegistered)); err != nil {
		return Model{}, err
	}
	if err := p.posts(&m, until(untilPosted)); err != nil {
		return Model{}, err
	}
	p.copies(&m, until(untilCopied))
	ones := []struct {
		f  func()
		to *float64
	}{{p.Lookup, &m.Lookup}, {p.Compare, &m.Compare}, {p.Hash, &m.Hash}}
	for i, one := range ones {
		if one.f != nil {
			*one.to = p.best(p.part(until(untilAll), len(ones)-i), one.f)
		}
	}
	return m, m.check()
}

// part returns the end of the first of so many equal parts of the time until end.
func (p *Probe) part(end time.Duration, parts int) time.Duration {
	now := p.Now()
	return now + max(0, end-now)/time.Duration(parts)
}

// sizes are the powers of four up to most, and most.
func sizes(least, most int) (all []int) {
	for n := least; n <= most; n *= 4 {
		all = append(all, n)
	}
	if all[len(all)-1] != most {
		all = append(all, most)
	}
	return all
}

// inTurns calls f for all sizes, and again until end: in turns, so that a disturbance of some length does not spoil all tries of one.
func (p *Probe) inTurns(what string, all []int, end time.Duration, f func(i, n int) error) error {
	for try := 0; try == 0 || p.Now() < end; try++ {
		for i, n := range all {
			if try > 0 && p.Now() >= end {
				return nil
			}
			if err := f(i, n); err != nil {
				return err
			}
		}
		if try > mostTries {
			return fmt.Errorf("measure %s: the clock stands still", what)
		}
	}
	return nil
}

// registrations measures and fits the two lines.
func (p *Probe) registrations(m *Model, end time.Duration) error {
	all := sizes(1, p.Pages)
	reg, dereg := untried(all), untried(all)
	err := p.inTurns("registrations", all, end, func(i, n int) error {
		t0 := p.Now()
		if err := p.Register(n); err != nil {
			return fmt.Errorf("measure the registration of %d pages: %w", n, err)
		}
		t1 := p.Now()
		if err := p.Deregister(); err != nil {
			return fmt.Errorf("measure the deregistration of %d pages: %w", n, err)
		}
		reg[i].least(t1 - t0)
		dereg[i].least(p.Now() - t1)
		return nil
	})
	if err != nil {
		return err
	}
	if m.Register, err = Fit(reg); err != nil {
		return err
	}
	m.RegisterSamples, m.DeregisterSamples = reg, dereg
	m.Deregister, err = Fit(dereg)
	return err
}

// posts measures what it takes to hand over 1 to Posts operations, and fits the line of them. What the clock takes itself, which is as much
// as a post, is taken off.
func (p *Probe) posts(m *Model, end time.Duration) error {
	if p.Post == nil || p.Drain == nil || p.Posts < 2 {
		return nil
	}
	clock := time.Duration(math.MaxInt64)
	for range 16 {
		t := p.Now()
		clock = min(clock, p.Now()-t)
	}
	all := sizes(1, p.Posts)
	took := untried(all)
	err := p.inTurns("posts", all, end, func(i, n int) error {
		t := p.Now()
		if err := p.Post(n); err != nil {
			return fmt.Errorf("measure the post of %d operations: %w", n, err)
		}
		took[i].least(p.Now() - t - clock)
		if err := p.Drain(); err != nil {
			return fmt.Errorf("measure the post of %d operations: %w", n, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	line, err := Fit(took)
	if err != nil {
		return err
	}
	m.PostLine, m.PostSamples, m.Post = &line, took, line.A+line.B
	return nil
}

// copies measures the curve of copies.
func (p *Probe) copies(m *Model, end time.Duration) {
	if p.Copy == nil || p.CopyBytes < leastCopy {
		return
	}
	all := sizes(leastCopy, p.CopyBytes)
	for i, n := range all {
		t := p.best(p.part(end, len(all)-i), func() { p.Copy(n) })
		if k := len(m.Copy); k > 0 {
			t = max(t, m.Copy[k-1].Nanos+1) // K1
		}
		m.Copy = append(m.Copy, Sample{n, t})
	}
}

// leastCopy is the smallest copy that is measured.
const leastCopy = 256

// untried are samples of those sizes, before the first try.
func untried(sizes []int) []Sample {
	all := make([]Sample, len(sizes))
	for i, n := range sizes {
		all[i] = Sample{n, math.Inf(1)}
	}
	return all
}

// least takes in a try: what disturbs one makes it longer, never shorter.
func (s *Sample) least(took time.Duration) { s.Nanos = min(s.Nanos, max(1, float64(took))) }

// best returns the least time of f in nanoseconds, of batches until end: one at least.
func (p *Probe) best(end time.Duration, f func()) float64 {
	f()
	begin := p.Now()
	limit := max(0, end-begin)
	least := math.Inf(1)
	for batch := 1; ; {
		t := p.Now()
		for range batch {
			f()
		}
		now := p.Now()
		took := now - t
		least = min(least, float64(took)/float64(batch))
		if now >= end || now == begin && batch == 1<<16 {
			return max(least, 0.1)
		}
		if took < limit/16 && batch < 1<<16 {
			batch *= 2 // until the clock's grain does not matter
			least = math.Inf(1)
		}
	}
}
