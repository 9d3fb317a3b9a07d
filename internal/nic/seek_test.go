package nic

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// forsaken is a NIC whose peers have ended their connections with it, for no death; those in dead have died since.
type forsaken struct {
	transport.Domain
	mu     sync.Mutex
	asked  map[int]int // how often it was to make the connection with a rank again
	dead   map[int]bool
	silent bool // they do not refuse
}

func (f *forsaken) Rejoin(_ context.Context, rank int, _ []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked[rank]++
	switch {
	case !f.dead[rank]:
		return nil
	case f.silent:
		return context.DeadlineExceeded
	}
	return fmt.Errorf("nobody listens there: %w", transport.ErrPeerGone)
}

func (f *forsaken) times(rank int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[rank]
}

func (f *forsaken) die(rank int, silent bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dead[rank], f.silent = true, silent
}

// newForsaken is newWorld of three ranks; rank 0's NIC is forsaken, and attended to.
func newForsaken(t *testing.T) (*NIC, *forsaken) {
	f := &forsaken{asked: map[int]int{}, dead: map[int]bool{}}
	w := newWorld(t, 3, transporttest.FabricConfig{}, func(d transport.Domain) transport.Domain { f.Domain = d; return f })
	n := w.n[0]
	n.between = 5 * time.Millisecond
	n.Start()
	return n, f
}

// TestWhoOnlyWaits: a rank that has no operation of its own learns that the peer has died whose connection had ended before, and the others are told. Nobody is
// asked of whom no wait knows, or of a rank that is known to be gone.
func TestWhoOnlyWaits(t *testing.T) {
	n, f := newForsaken(t)
	time.Sleep(30 * time.Millisecond)
	require.Zero(t, f.times(1), "nobody waits")
	wait := make(chan error, 1)
	go func() { wait <- n.WaitUntil("wait", 1, func() bool { return false }) }()
	require.Eventually(t, func() bool { return f.times(1) > 3 }, patient, time.Millisecond, "the rank that is awaited, again and again")
	require.Zero(t, f.times(2))
	require.NoError(t, n.peers.Check(1), "it lives")
	f.die(1, true)
	asked := f.times(1)
	require.Eventually(t, func() bool { return f.times(1) > asked+2 }, patient, time.Millisecond)
	require.NoError(t, n.peers.Check(1), "that nothing is heard of it is not for this package to judge")
	f.die(1, false)
	select {
	case err := <-wait:
		require.ErrorIs(t, err, transport.ErrPeerGone)
	case <-time.After(patient):
		t.Fatal("the wait does not end")
	}
	require.Eventually(t, func() bool { return len(n.sched.Waits()) == 0 }, patient, time.Millisecond)
	asked = f.times(1)
	time.Sleep(30 * time.Millisecond)
	require.LessOrEqual(t, f.times(1), asked+1, "the last look may have been under way")
}

// TestWhoWaitsForAnybody asks for all.
func TestWhoWaitsForAnybody(t *testing.T) {
	n, f := newForsaken(t)
	ctx, cancel := context.WithCancel(t.Context())
	wait := make(chan error, 1)
	go func() { wait <- n.WaitWithin(ctx, "wait", -1, func() bool { return false }) }()
	require.Eventually(t, func() bool { return f.times(1) > 1 && f.times(2) > 1 }, patient, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-wait, context.Canceled)
	require.Zero(t, f.times(0))
}

func TestSought(t *testing.T) {
	of := func(awaited ...int) []int { return sought(nil, awaited, []bool{true, true, true, true}, 1) }
	require.Empty(t, of())
	require.Equal(t, []int{0, 3}, of(3, 1, 0, 3))
	require.Equal(t, []int{0, 2, 3}, of(-1))
	require.Equal(t, []int{0, 2, 3}, of(2, -2))
	require.Empty(t, of(7))
}

// TestLookAllocatesNothing: it goes on beside programs that allocate nothing.
func TestLookAllocatesNothing(t *testing.T) {
	w := newWorld(t, 3, transporttest.FabricConfig{}, nil)
	n := w.n[0]
	n.between = 0
	defer n.sched.Outside(sched.What{Op: "test", Peer: -1})()
	l := look{named: make([]bool, len(n.ends))}
	require.Equal(t, []int{1, 2}, l.at(n))
	require.Zero(t, testing.AllocsPerRun(100, func() { l.at(n) }))
}
