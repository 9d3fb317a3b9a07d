package lock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/peers"
	"gopgas/internal/proto"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// groups returns the views of n members, without memory.
func groups(n int) []Group {
	all, ranks := make([]Group, n), make([]int, n)
	for m := range n {
		ranks[m] = m
	}
	for m := range n {
		e := proto.New(proto.Config{Rank: m, Size: n, Sched: sched.Goroutine(n), Peers: peers.New(n), Nodes: make([]int, n)})
		all[m] = Group{Engine: e, Ranks: ranks, Me: m, WaitError: transport.NewOpError}
	}
	return all
}

// blocks returns n blocks that all members map.
func blocks(n, bytes int) []proto.Remote {
	peers := make([]proto.Remote, n)
	for m := range n {
		block := mem.Of(make([]uint64, (bytes+7)/8))
		peers[m] = proto.Remote{Rank: m, Bytes: bytes, Mapped: block}
	}
	return peers
}

// mutexes returns one Mutex as n members see it.
func mutexes(all []Group) []*Mutex {
	peers := blocks(len(all), MutexBytes(all[0]))
	out := make([]*Mutex, len(all))
	for m, g := range all {
		out[m] = new(Mutex)
		out[m].Open(g, peers, peers[m].Mapped)
	}
	return out
}

// rws is mutexes for an RW.
func rws(all []Group) []*RW {
	guards, peers := mutexes(all), blocks(len(all), RWBytes(all[0]))
	out := make([]*RW, len(all))
	for m, g := range all {
		out[m] = new(RW)
		out[m].Open(g, guards[m], peers, peers[m].Mapped)
	}
	return out
}

// TestExclusion: one member at a time changes a plain variable, which the race detector watches, and all have their turns.
func TestExclusion(t *testing.T) {
	const n, rounds = 4, 30
	all := groups(n)
	ms, rs := mutexes(all), rws(all)
	for name, l := range map[string]struct {
		lock   func(m int) error
		unlock func(m int) error
	}{
		"mutex": {func(m int) error { return ms[m].Lock(t.Context()) }, func(m int) error { return ms[m].Unlock() }},
		"rw":    {func(m int) error { return rs[m].Lock(t.Context()) }, func(m int) error { return rs[m].Unlock() }},
	} {
		t.Run(name, func(t *testing.T) {
			sum, errs := 0, make([]error, n)
			var wg sync.WaitGroup
			for m := range n {
				wg.Go(func() {
					for range rounds {
						errs[m] = errors.Join(errs[m], l.lock(m))
						sum++
						errs[m] = errors.Join(errs[m], l.unlock(m))
					}
				})
			}
			wg.Wait()
			require.NoError(t, errors.Join(errs...))
			require.Equal(t, n*rounds, sum)
		})
	}
}

// TestStates: what is not held is not released, what is held is not had at once, and what was closed is of no use.
func TestStates(t *testing.T) {
	all := groups(2)
	ms, rs := mutexes(all), rws(all)
	require.ErrorIs(t, ms[0].Unlock(), ErrState)
	require.ErrorIs(t, rs[0].RUnlock(), ErrState)
	had := func(ok bool, err error) bool { require.NoError(t, err); return ok }
	require.True(t, had(ms[0].TryLock()))
	require.False(t, had(ms[0].TryLock()))
	require.False(t, had(ms[1].TryLock()))
	require.NoError(t, ms[0].Unlock())
	require.True(t, had(rs[0].TryRLock()))
	require.True(t, had(rs[1].TryRLock()))
	require.ErrorIs(t, rs[0].Unlock(), ErrState, "it is held to read")
	require.NoError(t, rs[0].RUnlock())
	require.False(t, had(rs[0].TryLock()))
	require.NoError(t, rs[1].RUnlock())
	require.True(t, had(rs[0].TryLock()))
	require.NoError(t, rs[0].Unlock())
	for _, l := range []interface {
		Lock(context.Context) error
		Unlock() error
		Close()
	}{ms[0], rs[0], new(Mutex), new(RW)} {
		l.Close()
		require.ErrorIs(t, l.Lock(t.Context()), transport.ErrClosed)
		require.ErrorIs(t, l.Unlock(), transport.ErrClosed)
	}
}

// TestReleaseIsHeard: another goroutine of the rank, which sleeps until the lock is not this one's any more, is waked, since no other rank does that.
func TestReleaseIsHeard(t *testing.T) {
	g := groups(1)[0]
	m := mutexes([]Group{g})[0]
	var rings, sleepers atomic.Uint32
	bell := sched.NewBell(&rings, &sleepers)
	g.Engine.Sched.SetBell(bell)
	require.NoError(t, m.Lock(t.Context()))
	asleep := bell.Arm()
	defer bell.Disarm()
	require.NoError(t, m.Unlock())
	require.NotEqual(t, asleep, rings.Load())
}

// TestLost: whose holder is gone is lost, and who wants it is told who held it (L1); who gives up leaves nothing behind (L2).
func TestLost(t *testing.T) {
	all := groups(3)
	ms, rs := mutexes(all), rws(all)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, ms[1].Lock(t.Context()))
	require.NoError(t, rs[1].RLock(t.Context()))
	require.ErrorIs(t, ms[2].Lock(ended), context.Canceled)
	require.ErrorIs(t, rs[2].Lock(ended), context.Canceled)
	require.NoError(t, rs[0].RLock(t.Context()), "no writer waits any more")
	require.NoError(t, rs[0].RUnlock())
	for _, g := range all {
		g.Engine.Peers.MarkGone(1, peers.Vanished)
	}
	for _, err := range []error{ms[0].Lock(t.Context()), ms[2].Lock(t.Context()), rs[0].Lock(t.Context()), rs[2].Lock(t.Context())} {
		require.ErrorIs(t, err, transport.ErrPeerGone)
		require.ErrorContains(t, err, "it held the lock: ")
		require.ErrorContains(t, err, "rank 1")
	}
	require.NoError(t, rs[0].RLock(t.Context()), "it has read, and others may")
}

// TestWhoHoldsIt: who waits for a lock is listed with the rank that holds it, wherever the lock's state lies.
func TestWhoHoldsIt(t *testing.T) {
	all := groups(3)
	ms, rs := mutexes(all), rws(all)
	for name, c := range map[string]struct {
		hold, wait func(context.Context) error
		free, done func() error
	}{
		"mutex":   {ms[1].Lock, ms[2].Lock, ms[1].Unlock, ms[2].Unlock},
		"writer":  {rs[1].Lock, rs[2].RLock, rs[1].Unlock, rs[2].RUnlock},
		"readers": {rs[1].RLock, rs[2].Lock, rs[1].RUnlock, rs[2].Unlock},
	} {
		require.NoError(t, c.hold(t.Context()), name)
		got := make(chan error, 1)
		go func() { got <- c.wait(t.Context()) }()
		require.Eventually(t, func() bool {
			waits := all[2].Engine.Sched.Waits()
			return len(waits) == 1 && waits[0].Peer == 1
		}, 20*time.Second, time.Millisecond, name)
		require.NoError(t, c.free(), name)
		require.NoError(t, <-got, name)
		require.NoError(t, c.done(), name)
	}
}
