package proto

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/peers"
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
	down  atomic.Bool // it has yet to report the end of rank 2
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

// Poll reports the end of rank 2 once.
func (h *hesitant) Poll(cq []transport.Completion) (int, error) {
	if h.down.Swap(false) {
		cq[0] = transport.Completion{Kind: transport.OpPeerDown, EP: transport.EP{Index: 2}}
		return 1, nil
	}
	return h.Domain.Poll(cq)
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
	h.down.Store(true)
	require.Eventually(t, func() bool { return e.Peers.Check(2) != nil }, 10*time.Second, time.Millisecond, "somebody has heard")
	h.may.Store(true)
	select {
	case err := <-put:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		t.Fatal("the connection waits for itself")
	}
	require.Eventually(t, func() bool { return tm.mem[1].Word64(peers.GoneOff(2)).Load() != 0 }, 10*time.Second, time.Millisecond, "rank 1 is told")
}

// TestNewsOfAHalfKnownDeath: a rank that has been told of a death and not yet that it is the first one tells others of it, who know both.
// They must not forget what they know: as long as nobody is known as the first one lost, a rank asks for no cause.
func TestNewsOfAHalfKnownDeath(t *testing.T) {
	tm := newTeam(t, 3, transporttest.FabricConfig{}, func(d transport.Domain) transport.Domain { return d })
	for r := range 2 {
		tm.e[r].Join(tm.mem[r], tm.of[r])
	}
	require.True(t, tm.e[1].Peers.MarkGone(2, peers.Silent))
	tm.mem[0].Word64(peers.GoneOff(2)).Store(uint64(peers.Vanished))
	tm.e[0].TellNodes()
	require.Eventually(t, func() bool { return peers.Cause(tm.mem[1].Word64(peers.GoneOff(2)).Load()) == peers.Vanished }, 10*time.Second, time.Millisecond, "rank 1 is told")
	require.Never(t, func() bool { return tm.e[1].Peers.Check(2) == nil }, 100*time.Millisecond, 100*time.Microsecond, "and still knows")
}

// TestNewsPassBy: a rank that cannot be connected for a while keeps nobody from being told who is connected.
func TestNewsPassBy(t *testing.T) {
	h := &hesitant{}
	tm := newTeamWith(t, 4, 4096, transporttest.FabricConfig{}, func(d transport.Domain) transport.Domain { h.Domain = d; return h }, func(*Config) {})
	e := tm.e[0]
	e.Join(tm.mem[0], tm.of[0])
	require.NoError(t, e.Put(&tm.of[0][3], 0, filled(64)))
	h.sched.Store(e.Sched)
	e.Peers.MarkGone(2, peers.Vanished)
	e.TellNodes()
	told := func(rank int) func() bool {
		return func() bool { return tm.mem[rank].Word64(peers.FirstOff).Load() == 2+1 }
	}
	require.Eventually(t, told(3), 10*time.Second, time.Millisecond, "rank 3 is told")
	require.False(t, told(1)())
	h.may.Store(true)
	require.Eventually(t, told(1), 10*time.Second, time.Millisecond, "rank 1 is told in the end")
}

// crowded is a NIC whose first connections to rank 1 find no descriptor left.
type crowded struct {
	transport.Domain
	times atomic.Int32
}

func (c *crowded) Connect(ctx context.Context, rank int, addr []byte) (transport.EP, error) {
	if rank == 1 && c.times.Add(1) <= 2 {
		return transport.EP{}, &transport.LimitError{What: "a connection", Found: "no descriptor", Needed: "1", Setting: "ulimit -n"}
	}
	return c.Domain.Connect(ctx, rank, addr)
}

// TestNewsAgain: who cannot be reached for now is told later. Nobody else need have heard of the death.
func TestNewsAgain(t *testing.T) {
	tm := newTeam(t, 3, transporttest.FabricConfig{}, func(d transport.Domain) transport.Domain { return &crowded{Domain: d} })
	e := tm.e[0]
	e.Join(tm.mem[0], tm.of[0])
	e.Peers.MarkGone(2, peers.Vanished)
	e.TellNodes()
	require.Eventually(t, func() bool { return tm.mem[1].Word64(peers.FirstOff).Load() == 2+1 }, 10*time.Second, time.Millisecond, "rank 1 is told")
	require.Equal(t, peers.Vanished, peers.Cause(tm.mem[1].Word64(peers.GoneOff(2)).Load()))
}

// addressed is a NIC that writes down where its operations go.
type addressed struct {
	transport.Domain
	mu sync.Mutex
	at []uint64
}

func (a *addressed) Post(ops []transport.Op) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range ops {
		a.at = append(a.at, ops[i].RAddr)
	}
	return a.Domain.Post(ops)
}

// TestNewsInOrder: who was lost first is told first: as long as a rank knows only of another one it blames that.
func TestNewsInOrder(t *testing.T) {
	a := &addressed{}
	tm := newTeam(t, 4, transporttest.FabricConfig{}, func(d transport.Domain) transport.Domain { a.Domain = d; return a })
	e := tm.e[0]
	e.Join(tm.mem[0], tm.of[0])
	e.Peers.MarkGone(3, peers.Vanished)
	e.Peers.MarkGone(2, peers.Vanished)
	e.TellNodes()
	require.Eventually(t, func() bool { return tm.mem[1].Word64(peers.GoneOff(2)).Load() != 0 }, 10*time.Second, time.Millisecond)
	a.mu.Lock()
	defer a.mu.Unlock()
	to := tm.mem[1].Addr()
	require.Equal(t, []uint64{to + uint64(peers.GoneOff(3)), to + peers.FirstOff, to + uint64(peers.GoneOff(2))}, a.at[:3])
}

// TestUnreachableSaysWhy: the error of an operation whose rank the NIC cannot reach has what the NIC has met, too.
func TestUnreachableSaysWhy(t *testing.T) {
	var c *cutting
	tm := newTeam(t, 2, transporttest.FabricConfig{}, func(d transport.Domain) transport.Domain { c = newCutting(d); return c })
	c.mu.Lock()
	c.dead = fmt.Errorf("%w: dial tcp 192.0.2.1:7: %w", transport.ErrPeerGone, syscall.EHOSTUNREACH)
	c.mu.Unlock()
	err := tm.e[0].Put(&tm.of[0][1], 0, filled(64))
	require.ErrorIs(t, err, transport.ErrPeerGone)
	require.ErrorIs(t, err, syscall.EHOSTUNREACH)
	require.ErrorContains(t, err, "rank 1 does not answer")
	require.ErrorContains(t, err, "192.0.2.1:7")
}
