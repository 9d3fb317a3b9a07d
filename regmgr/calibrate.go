package regmgr

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"gopgas/internal/cost"
	"gopgas/internal/mem"
	"gopgas/internal/predict"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// calibrationTime is what Calibrate may take in all, turnsTime the part of it for how threads take turns, and leastTime what
// measuring gets of it whatever the preparations have taken.
const (
	calibrationTime = 15 * time.Millisecond
	turnsTime       = time.Millisecond
	leastTime       = 5 * time.Millisecond
)

// Calibrate measures what registrations with this registrar, copies, hits in a cache, what a predictor does of a use, and turns of threads on a core cost on this machine. It registers
// memory of its own, at most 1 MiB (less where that much is refused), and takes 15 ms by the clock of s, or what a try of each takes.
// Where posts is a NIC, what it costs to post operations is measured, too: posts is connected to itself, as rank 0, for which ctx bounds
// the wait, and nobody else may use it meanwhile.
func Calibrate(ctx context.Context, r Registrar, s *sched.Sched, posts transport.Domain) (cost.Model, error) {
	if posts == nil {
		return calibrate(r, s, nil)
	}
	p, err := newPoster(ctx, posts, s)
	if err != nil {
		return cost.Model{}, err
	}
	m, err := calibrate(r, s, p)
	return m, errors.Join(err, p.close())
}

func calibrate(r Registrar, s *sched.Sched, post *poster) (cost.Model, error) {
	begin := s.Now()
	m, err := New(Config{Registrar: r, Sched: s, Quiet: true})
	if err != nil {
		return cost.Model{}, err
	}
	defer m.Forget()
	words := make([]uint64, 256*m.page/8)
	for i := range words {
		words[i] = uint64(i) // what a program sends has been touched, and untouched pages are all the same one
	}
	memory := mem.Of(words)
	cached := Request{Mem: mem.Of(make([]byte, 16*m.page)).Slice(0, m.page)} // pages that nothing else registers
	var h Hold
	if err := m.Acquire(&h, cached); err != nil {
		return cost.Model{}, fmt.Errorf("calibrate: %w", err)
	}
	m.Release(&h)
	pages := 256
	for ; pages > 4; pages /= 2 {
		if reg, err := r.Register(memory.Slice(0, pages*m.page), transport.LocalWrite); err == nil {
			if err := r.Deregister(reg); err != nil {
				return cost.Model{}, fmt.Errorf("calibrate: deregister %d pages: %w", pages, err)
			}
			break
		}
	}
	var region transport.Region
	copied := mem.Of(make([]uint64, 1<<20/8))
	compared := make([]int64, 64)
	probe := cost.Probe{
		Now: s.Now, PageBytes: m.page, Pages: pages,
		Register: func(n int) (err error) {
			region, err = r.Register(memory.Slice(0, n*m.page), transport.LocalWrite)
			return err
		},
		Deregister: func() error { return r.Deregister(region) },
		Copy:       func(n int) { mem.Copy(copied.Data()[:n], memory.Data()[:n]) }, CopyBytes: copied.Bytes,
		Lookup: func() {
			_ = m.Acquire(&h, cached)
			m.Release(&h)
		},
		Compare: func() { latestOf(compared) },
		Hash:    predict.Trial(trialSites),
	}
	if post != nil {
		probe.Post, probe.Drain, probe.Posts = post.post, post.drain, len(post.ops)
	}
	turns := s.Turns(turnsTime)
	probe.Time = max(leastTime, calibrationTime-(s.Now()-begin))
	model, err := cost.Measure(probe)
	if cerr := m.Close(); err == nil {
		err = cerr
	}
	model.Compare /= float64(len(compared))
	model.Slice, model.Swap = float64(turns.Slice), float64(turns.Swap)
	return model, err
}

// trialSites are as many call sites as do not fit into a first-level cache, since a helper that has slept finds none of them there.
const trialSites = 512

// latestOf is a search that compares all entries of a queue.
func latestOf(at []int64) (latest int64) {
	for _, t := range at {
		latest = max(latest, t)
	}
	return latest
}

// poster posts writes of a word to this rank itself.
type poster struct {
	ctx    context.Context
	sched  *sched.Sched
	d      transport.Domain
	ep     transport.EP
	memory mem.Range
	region transport.Region
	ops    []transport.Op
	flying int // posted and not reported: the last of each post is
}

// mostPosted is the largest batch that is measured.
const mostPosted = 16

func newPoster(ctx context.Context, d transport.Domain, s *sched.Sched) (*poster, error) {
	ep, err := d.Connect(ctx, 0, d.Address())
	if err != nil {
		return nil, fmt.Errorf("calibrate: connect the NIC to itself: %w", err)
	}
	p := &poster{ctx: ctx, sched: s, d: d, ep: ep, memory: mem.Of(make([]uint64, 512))}
	if p.region, err = d.Register(p.memory, transport.LocalWrite|transport.RemoteWrite); err != nil {
		return nil, errors.Join(fmt.Errorf("calibrate: register a page: %w", err), d.Disconnect(ep))
	}
	n := mostPosted
	if c := d.Caps(); c.MaxPost > 0 {
		n = min(n, c.MaxPost)
	}
	p.ops = make([]transport.Op, n)
	for i := range p.ops {
		p.ops[i] = transport.Op{
			Kind: transport.OpWrite, Flags: transport.FlagSignaled, NSGE: 1, EP: ep, RAddr: p.memory.Addr(), RKey: p.region.RKey,
			SGE: [4]transport.SGE{{Mem: p.memory.Slice(2048, 8), LKey: p.region.LKey}},
		}
	}
	return p, nil
}

// post hands over so many operations at once.
func (p *poster) post(n int) error {
	k, err := p.d.Post(p.ops[:n])
	p.flying += k
	if err == nil && k < n {
		err = fmt.Errorf("the NIC has taken %d of them, with none in flight", k)
	}
	return err
}

// drain waits until what was posted is done.
func (p *poster) drain() error {
	sp := p.sched.Begin(p.ctx, sched.What{Op: "calibrate", Peer: -1}, nil)
	defer sp.End()
	var cq [mostPosted]transport.Completion
	for p.flying > 0 {
		n, err := p.d.Poll(cq[:])
		if err != nil {
			return fmt.Errorf("poll: %w", err)
		}
		for _, c := range cq[:n] {
			if c.Status != transport.StatusOK {
				return fmt.Errorf("a write to this rank itself has ended as %v", c.Status)
			}
		}
		if p.flying -= n; n == 0 {
			if err := sp.Step(); err != nil {
				return fmt.Errorf("wait for a write to this rank itself: %w", err)
			}
		}
	}
	return nil
}

// close lets go of the NIC.
func (p *poster) close() error {
	err := errors.Join(p.d.Disconnect(p.ep), p.d.Deregister(p.region))
	runtime.KeepAlive(p.memory.Base)
	return err
}
