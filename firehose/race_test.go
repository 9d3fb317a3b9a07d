package firehose

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// locked is an owner that several goroutines call.
type locked struct {
	mu sync.Mutex
	o  owner
}

func (l *locked) Register(r Range, run Run, pins []Pin) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.o.Register(r, run, pins)
}

func (l *locked) Deregister(r Range, run Run, pins []Pin) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.o.Deregister(r, run, pins)
}

// TestConcurrentServer: a poller serves moves while other goroutines pin, shed, and look at the counts. The race detector
// watches, and the Registrar that never more is registered than the budget allows.
func TestConcurrentServer(t *testing.T) {
	const rounds, workers = 300, 3
	b, err := Split(Limits{Ranks: 2, Pinnable: 12 * unit, Peers: 6 * unit, Own: 6 * unit, Unit: unit, Page: unit})
	require.NoError(t, err)
	l := &locked{o: owner{t: t, budget: b, pins: make(map[Bucket]Pin), keys: make(map[uint64]Bucket)}}
	s := NewServer(b, l, nil)
	l.o.s = s
	require.NoError(t, s.Expose(Range{ID: 1, Start: start, Bytes: 64 * unit}))
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			rng := newRand(uint64(w))
			for range rounds {
				run := Run{MakeBucket(1, 0, rng.Uint64N(60)), 1 + rng.Uint32N(2)}
				if _, err := s.Pin(run, nil); err == nil {
					s.Unpin(run)
				}
				s.Shed(rng.Int64N(2))
				_ = s.Stats()
			}
		})
	}
	h, err := NewHolder(HolderConfig{Budget: b, Payload: 448})
	require.NoError(t, err)
	v, err := h.View(1, Range{ID: 1, Start: start, Bytes: 64 * unit})
	require.NoError(t, err)
	wire := &direct{t: t, h: h, s: s}
	rng := newRand(99)
	for range rounds {
		var q Request
		h.Acquire(v, &q, rng.Uint64N(60)*unit, 3*unit)
		for q.State() == Waiting {
			wire.progress()
		}
		require.Equal(t, Ready, q.State(), "%v", q.Err())
		h.Release(&q)
	}
	wg.Wait()
	require.LessOrEqual(t, s.Stats().Peak, int64(12))
	s.Lost(0)
	s.Withdraw(1)
	require.True(t, s.Withdrawn(1))
	require.Empty(t, l.o.pins)
}

// direct is a way from one holder to one server.
type direct struct {
	t testing.TB
	h *Holder
	s *Server
	r []Reply
}

func (d *direct) Move(_ int, m *Move) (bool, error) {
	var r Reply
	if d.s.Serve(0, m, &r) {
		d.r = append(d.r, r)
	}
	return true, nil
}

func (d *direct) progress() {
	d.h.Send(d)
	var late Reply
	if _, _, ok := d.s.Resume(&late); ok {
		d.r = append(d.r, late)
	}
	for i := range d.r {
		require.NoError(d.t, d.h.Reply(1, &d.r[i]))
	}
	d.r = d.r[:0]
}
