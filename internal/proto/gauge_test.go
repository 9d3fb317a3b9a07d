package proto

import (
	"context"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/seats"
	"gopgas/transport/transporttest"
)

// share opens the boards of a team whose ranks are on one node.
func (tm *team) share() {
	words := make([]atomic.Uint64, 3*len(tm.e))
	places := make([]seats.Place, len(tm.e))
	for i := range places {
		places[i] = seats.Place{Bytes: &words[3*i], Gap: &words[3*i+1], Turn: &words[3*i+2]}
	}
	for _, e := range tm.e {
		e.board.Open(places)
	}
}

// TestMeasuredBeside: transfers go on while the costs are measured, and before, when another rank of the node measures. A rank that is gone
// does not keep the others from it.
func TestMeasuredBeside(t *testing.T) {
	const n = 256 << 10
	tm := newTeamWith(t, 3, n, transporttest.FabricConfig{}, nil, func(c *Config) {
		if c.Rank == 1 {
			c.Slots = 7 // it is told nothing
		}
	})
	tm.share()
	src := filled(n)
	transfers := func(e *Engine, to *Remote) {
		for range 3 * enough {
			h, err := e.PutNB(to, 0, src)
			require.NoError(t, err)
			require.NoError(t, h.Wait(context.Background()))
			require.NoError(t, e.Flush(to))
		}
	}
	measured := func(e *Engine) func() bool { return func() bool { return e.nic().prices().Measured } }

	require.True(t, tm.e[2].takeTurn())
	transfers(tm.e[0], &tm.of[0][1])
	require.True(t, tm.e[0].nic().gauge.begun.Load())
	require.False(t, measured(tm.e[0])(), "it is another rank's turn")
	require.False(t, tm.e[0].Measured())
	tm.e[2].leaveTurn()
	require.Eventually(t, measured(tm.e[0]), time.Minute, time.Millisecond)

	require.Eventually(t, tm.e[2].takeTurn, time.Minute, time.Millisecond) // who has measured leaves it a moment later
	tm.fabric.Kill(2)
	require.Eventually(t, func() bool {
		return tm.e[1].Put(&tm.of[1][2], 0, src) != nil || tm.e[1].Flush(&tm.of[1][2]) != nil
	}, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool { return tm.e[1].Peers.Check(2) != nil }, time.Minute, time.Millisecond)
	transfers(tm.e[1], &tm.of[1][0])
	require.Eventually(t, measured(tm.e[1]), time.Minute, time.Millisecond)
	require.Equal(t, src.Data(), tm.mem[0].Data())
}

// TestMeasuredWithAPeer: a large transfer to another rank is the occasion to measure others with it, once, in memory that is nobody's. It counts nothing.
func TestMeasuredWithAPeer(t *testing.T) {
	const n = 256 << 10
	tm := newTeamWith(t, 2, n, transporttest.FabricConfig{}, nil, func(*Config) {})
	e, to := tm.e[0], &tm.of[0][1]
	g := &e.nic().gauge
	require.NoError(t, e.nic().measureNow())
	own := e.nic().prices()
	require.EqualValues(t, peerWanted, g.peer.Load())
	require.False(t, e.Measured())
	src := filled(n)
	require.NoError(t, e.Put(&tm.of[0][0], 0, src))
	require.NoError(t, e.Flush(&tm.of[0][0]))
	require.EqualValues(t, peerWanted, g.peer.Load(), "this very rank is no peer")
	require.NoError(t, e.Put(to, 0, src))
	require.NotEqualValues(t, peerWanted, g.peer.Load())
	require.NoError(t, e.Flush(to))
	before := e.Stats()
	require.Eventually(t, e.Measured, time.Minute, time.Millisecond)
	for p, c := range e.Stats() {
		require.Equal(t, before[p].Ops, c.Ops, "%v", p)
		require.Equal(t, before[p].Bytes, c.Bytes, "%v", p)
	}
	now := e.nic().prices()
	require.NotSame(t, own, now)
	require.True(t, now.Measured)
	require.NoError(t, now.Why)
	require.Equal(t, own.Small, now.Small)
	require.Zero(t, g.flying.Load())
	require.Equal(t, src.Data(), tm.mem[1].Data())
	require.Zero(t, tm.e[1].nic().lent())
	require.NoError(t, e.Put(to, 0, src))
	require.NoError(t, e.Flush(to))
	require.Same(t, now, e.nic().prices(), "once")
}

// TestMeasuringCountsNothing: what a measurement moves is nobody's transfer, at no time: who reads the counters meanwhile would see them fall.
func TestMeasuringCountsNothing(t *testing.T) {
	tm := newTeamWith(t, 2, 4096, transporttest.FabricConfig{}, nil, func(c *Config) { c.CountMapped = true })
	tm.share()
	e := tm.e[0]
	before := e.Stats() // a team's own
	e.nic().measure()
	for over := false; !over; time.Sleep(20 * time.Microsecond) {
		over = e.nic().gauge.over.Load()
		for p, c := range e.Stats() {
			require.Equal(t, before[p].Ops, c.Ops, "%v", p)
			require.Equal(t, before[p].Bytes, c.Bytes, "%v", p)
		}
		mapped, nic := e.Flow(0)
		require.Zero(t, mapped.Ops+nic.Ops)
	}
	require.True(t, e.nic().prices().Measured)
}

// TestCloseEndsMeasuring: nothing of a measurement is at work, or begins, when the NIC is closed, wherever it was.
func TestCloseEndsMeasuring(t *testing.T) {
	const n = 256 << 10
	for _, pause := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond} { // any time will do
		tm := newTeamWith(t, 2, n, transporttest.FabricConfig{Jitter: 10 * time.Microsecond}, nil, func(*Config) {})
		tm.share()
		m := tm.e[0].nic()
		m.measure()
		time.Sleep(pause)
		require.NoError(t, tm.e[0].Close())
		require.True(t, m.gauge.over.Load())
		require.True(t, tm.e[1].takeTurn(), "it has been given back")
		tm.e[1].leaveTurn()
		if p := m.prices(); !p.Measured {
			require.Error(t, p.Why)
		}
	}
}

// TestMeasuredWhereAllIsRegistered: what the cache keeps of transfers that are over makes room for what is measured with.
func TestMeasuredWhereAllIsRegistered(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // two collections let go of what lies idle, and the cache were not full
	const n, most = 512 << 10, 8 << 20
	tm := newTeamWith(t, 2, n, transporttest.FabricConfig{MaxPinned: most}, nil, forcedBulk(t, "register", n))
	e, to := tm.e[0], &tm.of[0][1]
	var sources [most / n]mem.Range // all of them live
	for i := range sources {
		sources[i] = filled(n)
		require.NoError(t, e.Put(to, 0, sources[i]))
		require.NoError(t, e.Flush(to))
	}
	full, _, _ := e.Registered()
	require.Positive(t, full.Evicted, "the cache has been full")
	require.NoError(t, e.nic().measureNow())
	p := e.nic().prices()
	require.NoError(t, p.Why)
	require.True(t, p.Measured)
	require.NoError(t, e.Put(to, 0, sources[0]))
	require.NoError(t, e.Flush(to))
	require.Equal(t, sources[0].Data(), tm.mem[1].Data())
	after, refused, _ := e.Registered()
	require.NoError(t, refused)
	require.Zero(t, after.CopiedRefused+after.CopiedBudget)
}

// TestMeasuringRests: who measures leaves the cores to the program where none is idle, until somebody waits for what he measures.
func TestMeasuringRests(t *testing.T) {
	for _, c := range []struct {
		cores int
		rests bool
	}{{cores: 1, rests: true}, {cores: 64}} {
		tm := newTeamWith(t, 2, 4096, transporttest.FabricConfig{}, nil, func(to *Config) { to.Registration.Idle.Cores = c.cores })
		n := tm.e[0].nic()
		rested := func(worked time.Duration) time.Duration {
			began := time.Now()
			require.NoError(t, n.rest(worked))
			return time.Since(began)
		}
		const long = 5 * time.Second // others may have the core for some of it, and who rests does so for four times as long
		if c.rests {
			require.GreaterOrEqual(t, rested(5*time.Millisecond), gaugeRest*5*time.Millisecond)
		} else {
			require.Less(t, rested(long), long)
		}
		done := tm.e[0].HastenMeasuring()
		require.Less(t, rested(long), long, "somebody waits")
		done()
		if c.rests {
			ended := make(chan error)
			go func() { ended <- n.rest(time.Hour) }()
			require.NoError(t, tm.e[0].Close())
			require.Error(t, <-ended, "the NIC is closed")
		}
	}
}
