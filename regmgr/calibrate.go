package regmgr

import (
	"fmt"
	"time"

	"gopgas/internal/cost"
	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// Calibrate measures what registrations with this registrar, copies, and hits in a cache cost on this machine. It registers
// memory of its own, at most 1 MiB (less where that much is refused), and takes about 25 ms, of which the clock of s is asked.
func Calibrate(r Registrar, s *sched.Sched) (cost.Model, error) {
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
	model, err := cost.Measure(cost.Probe{
		Now: s.Now, PageBytes: m.page, Pages: pages, Time: 18 * time.Millisecond,
		Register: func(n int) (err error) {
			region, err = r.Register(memory.Slice(0, n*m.page), transport.LocalWrite)
			return err
		},
		Deregister: func() error { return r.Deregister(region) },
		Copy:       func(n int) { copy(copied.Data()[:n], memory.Data()[:n]) }, CopyBytes: copied.Bytes,
		Lookup: func() {
			_ = m.Acquire(&h, cached)
			m.Release(&h)
		},
		Compare: func() { latestOf(compared) },
	})
	if cerr := m.Close(); err == nil {
		err = cerr
	}
	model.Compare /= float64(len(compared))
	return model, err
}

// latestOf is a search that compares all entries of a queue.
func latestOf(at []int64) (latest int64) {
	for _, t := range at {
		latest = max(latest, t)
	}
	return latest
}
