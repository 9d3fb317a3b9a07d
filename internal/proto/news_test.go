package proto

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// hesitant is a NIC whose connections to rank 1 wait, as a NIC waits for a peer's answer, until they may be made.
type hesitant struct {
	transport.Domain
	sched atomic.Pointer[sched.Sched]
	asked atomic.Bool
	may   atomic.Bool
}

func (h *hesitant) Connect(ctx context.Context, rank int, addr []byte) (transport.EP, error) {
	if s := h.sched.Load(); s != nil && rank == 1 {
		h.asked.Store(true)
		sp := s.Begin(ctx, sched.What{Op: "connect", Peer: rank}, nil)
		defer sp.End()
		for !h.may.Load() {
			if err := sp.Step(); err != nil {
				return transport.EP{}, err
			}
		}
	}
	return h.Domain.Connect(ctx, rank, addr)
}

// Wait leaves the polling to those who wait for something.
func (h *hesitant) Wait(ctx context.Context) error {
	if h.asked.Load() {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return h.Domain.Wait(ctx)
}

// TestNewsWhileConnecting: a rank that learns of a death while it waits for a connection tells the others beside that wait. It
// would else wait, inside of it, for that same connection, to tell its peer.
func TestNewsWhileConnecting(t *testing.T) {
	h := &hesitant{}
	tm := newTeamWith(t, 3, 4096, transporttest.FabricConfig{}, func(d transport.Domain) transport.Domain { h.Domain = d; return h }, func(*Config) {})
	e := tm.e[0]
	e.Join(tm.mem[0], tm.of[0])
	h.sched.Store(e.Sched)
	put := make(chan error, 1)
	go func() { put <- e.Put(&tm.of[0][1], 0, filled(64)) }()
	require.Eventually(t, h.asked.Load, 10*time.Second, time.Millisecond)
	n := e.nic()
	n.lost(2)
	require.Eventually(t, func() bool { return !n.news.Load() }, 10*time.Second, time.Millisecond, "somebody has heard")
	h.may.Store(true)
	select {
	case err := <-put:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		t.Fatal("the connection waits for itself")
	}
	require.Eventually(t, func() bool { return !n.spreading.Load() }, 10*time.Second, time.Millisecond)
}
