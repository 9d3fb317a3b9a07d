package proto

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// reticent is a NIC that, once it is set, tells of nothing until so many messages are under way; where they never are it gives up.
type reticent struct {
	transport.Domain
	mu     sync.Mutex
	until  int       // messages that it waits for; 0: it tells at once
	latest time.Time // when it gives up
	vain   bool      // it has
}

func (q *reticent) set(until int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.until, q.vain, q.latest = until, false, time.Now().Add(time.Minute)
}

// waits reports whether there are too few messages yet.
func (q *reticent) waits() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.until > 0 && time.Now().After(q.latest) {
		q.until, q.vain = 0, true
	}
	return q.until > 0
}

// together reports whether they were under way at once.
func (q *reticent) together() bool { return !q.waits() && !q.vain }

func (q *reticent) Post(ops []transport.Op) (int, error) {
	n, err := q.Domain.Post(ops)
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range n {
		if ops[i].Kind == transport.OpSend && q.until > 0 {
			q.until--
		}
	}
	return n, err
}

func (q *reticent) Poll(c []transport.Completion) (int, error) {
	if q.waits() {
		return 0, nil
	}
	return q.Domain.Poll(c)
}

// teamWithout makes two engines of which rank 0 has no buckets of rank 1's memory and gets none, nor leases.
func teamWithout(t testing.TB, wrap func(transport.Domain) transport.Domain) (*team, *Engine, *Remote) {
	tm := newTeamWith(t, 2, 16<<20, transporttest.FabricConfig{MaxPinned: 10 << 20}, wrap, func(c *Config) { c.Leases = -1 })
	e, to := tm.e[0], &tm.of[0][1]
	require.NotNil(t, to.hosed)
	require.NoError(t, errors.Join(e.Put(to, 0, filled(8)), e.Flush(to))) // so that they have some
	e.nic().hoses.End(1, nil, errors.New("the test wants none"))
	return tm, e, to
}

// TestRunsAskedTogether: the messages that read runs are under way together, as many as there are credits, and bring what they should.
func TestRunsAskedTogether(t *testing.T) {
	q := new(reticent)
	tm, e, to := teamWithout(t, func(d transport.Domain) transport.Domain {
		q.Domain = d
		return q
	})
	rng := rand.New(rand.NewPCG(71, 72))
	fill(tm.mem[1].Slice(0, 1<<20), rng)
	for _, bytes := range []int{1, 64, 300, 5000} { // 5000 are two messages
		const rows = 200
		back, want := memoryOf(rows*bytes, 3), make([]byte, rows*bytes)
		run := func(k int) Run { return Run{to, 7 + k*(bytes+40), (rows - 1 - k) * bytes, bytes} }
		for k := range rows {
			copy(want[run(k).Near:], tm.mem[1].Slice(run(k).Far, bytes).Data())
		}
		before := e.Stats()[PathMessage]
		q.set(8)
		require.NoError(t, e.GetRuns("get-section", rows, run, back))
		require.True(t, q.together(), "one after the other: %d bytes", bytes)
		require.Equal(t, want, back.Data())
		s := e.Stats()[PathMessage]
		require.EqualValues(t, rows*bytes, s.Bytes-before.Bytes)
	}
	tm.settled(t)
}

// TestRunsAskedAmongHeld: runs of which some lie in buckets that are held, some in none, some in registered memory, by several goroutines
// over a NIC with few slots.
func TestRunsAskedAmongHeld(t *testing.T) {
	tm := newTeamWith(t, 3, 16<<20, transporttest.FabricConfig{MaxPinned: 10 << 20}, nil, func(c *Config) { c.Leases = -1 })
	e := tm.e[0]
	for r := 1; r < 3; r++ {
		require.NoError(t, errors.Join(e.Put(&tm.of[0][r], 0, filled(8)), e.Flush(&tm.of[0][r])))
		fill(tm.mem[r].Slice(0, 4<<20), rand.New(rand.NewPCG(81, uint64(r))))
	}
	e.nic().hoses.End(1, nil, errors.New("the test wants none"))
	errs := make([]error, 4)
	var wg sync.WaitGroup
	for g := range errs {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(91, uint64(g)))
			for range 20 {
				const rows, room = 150, 9000
				var runs []Run
				for k := range rows {
					runs = append(runs, Run{&tm.of[0][rng.IntN(3)], rng.IntN(4<<20 - room), k * room, rng.IntN(room)})
				}
				back, want := memoryOf(rows*room, 0), make([]byte, rows*room)
				for _, r := range runs {
					copy(want[r.Near:], tm.mem[r.To.Rank].Slice(r.Far, r.Bytes).Data())
				}
				err := e.GetRuns("get-section", rows, func(k int) Run { return runs[k] }, back)
				if err == nil && string(want) != string(back.Data()) {
					err = errors.New("wrong bytes")
				}
				errs[g] = errors.Join(errs[g], err)
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	tm.settled(t)
}

// TestRunsAskedOfTheDead: a rank that dies under such reads is the error of their reader, and leaves nothing behind.
func TestRunsAskedOfTheDead(t *testing.T) {
	q := new(reticent)
	tm, e, to := teamWithout(t, func(d transport.Domain) transport.Domain {
		q.Domain = d
		return q
	})
	const rows, bytes = 100, 300
	back := mem.Of(make([]byte, rows*bytes))
	run := func(k int) Run { return Run{to, k * 2 * bytes, k * bytes, bytes} }
	q.set(1 << 30) // they stay under way
	killed := time.AfterFunc(10*time.Millisecond, func() {
		tm.fabric.Kill(1)
		q.set(0)
	})
	err := e.GetRuns("get-section", rows, run, back)
	killed.Stop()
	require.ErrorIs(t, err, transport.ErrPeerGone)
	require.ErrorIs(t, e.GetRuns("get-section", rows, run, back), transport.ErrPeerGone)
	require.Eventually(t, e.nic().Idle, time.Minute, time.Millisecond)
	(&team{e: tm.e[:1]}).settled(t)
}

// BenchmarkAskedSection gets 500 rows of 1000 bytes of memory that is not registered, by messages.
func BenchmarkAskedSection(b *testing.B) {
	const rows, cols = 500, 1000
	_, e, to := teamWithout(b, nil)
	back, run := mem.Of(make([]byte, rows*cols)), func(k int) Run { return Run{to, k * 2 * cols, k * cols, cols} }
	b.SetBytes(rows * cols)
	for b.Loop() {
		require.NoError(b, e.GetRuns("get-section", rows, run, back))
	}
}
