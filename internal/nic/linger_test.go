package nic

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// asked is a NIC over which a peer asks for something again and again while on, which takes threads of this rank.
type asked struct {
	transport.Domain
	performed atomic.Uint64
	on        atomic.Bool
	hushers   atomic.Int32
}

func (a *asked) Hush(how sched.Polling) {
	if how == sched.Steadily {
		a.hushers.Add(1)
	} else {
		a.hushers.Add(-1)
	}
}

func (a *asked) Performed() uint64 { return a.performed.Load() }

func (a *asked) Poll(cq []transport.Completion) (int, error) {
	if a.on.Load() {
		a.performed.Add(1)
	}
	return a.Domain.Poll(cq)
}

// TestLinger: while a wait of the program, which does not poll the NIC itself, lingers, it counts as one who polls, so that whoever attends keeps out of
// the way.
func TestLinger(t *testing.T) {
	a := &asked{}
	alone := func(int) *sched.Sched { return sched.ProcessOn(1, 1) }
	w := newWorldOn(t, 1, alone, transporttest.FabricConfig{}, func(d transport.Domain) transport.Domain { a.Domain = d; return a })
	n := w.n[0]
	n.sched.SetProgress(n.Progress, n.server()) // as Start does
	a.on.Store(true)
	sp := n.sched.Begin(t.Context(), sched.What{Op: "test"}, nil)
	before := n.uses()
	for began := time.Now(); n.pollers.Load() == 0; {
		require.NoError(t, sp.Step())
		require.Less(t, time.Since(began), 10*time.Second)
	}
	require.EqualValues(t, 1, a.hushers.Load())
	require.NotEqual(t, before, n.uses())
	a.on.Store(false)
	for began := time.Now(); n.pollers.Load() > 0; {
		require.NoError(t, sp.Step())
		require.Less(t, time.Since(began), 10*time.Second)
	}
	require.Zero(t, a.hushers.Load())
	sp.End()
}

// TestNoLinger: of a NIC that needs none of this rank's threads waits are told nothing.
func TestNoLinger(t *testing.T) {
	w := newWorldOn(t, 1, func(int) *sched.Sched { return sched.ProcessOn(1, 1) }, transporttest.FabricConfig{}, nil)
	require.Nil(t, w.n[0].server())
}
