package transporttest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
)

var deathChecks = []check{
	{"PeerDown/idle connection", testPeerDownIdle},
	{"PeerDown/in the middle of traffic", testPeerDownTraffic},
	{"PeerDown/sender without a receiver", testPeerDownSend},
	{"PeerDown/others go on", testOthersGoOn},
	{"PeerDown/connect to the dead", testConnectDead},
	{"Close/outstanding operations", testCloseOutstanding},
	{"Close/then everything is refused", testClosed},
}

func isPeerDown(ep transport.EP) func(c *transport.Completion) bool {
	return func(c *transport.Completion) bool { return c.Kind == transport.OpPeerDown && c.EP == ep }
}

// awaitDown waits until the death of a peer has been reported.
func (n *node) awaitDown(ep transport.EP) {
	n.t.Helper()
	_, err := n.await(n.s.opt.FailureTimeout, isPeerDown(ep))
	require.NoError(n.t, err, "the peer's death was not reported")
}

// testPeerDownIdle kills a peer while nothing is on the way: who waits for its writes must be told. It is told
// once, whichever side had connected.
func testPeerDownIdle(t *testing.T, s *suite) {
	r := s.rig(t, 3, 4096)
	a, passive, dead := r.nodes[0], r.nodes[1], r.nodes[2]
	ep := a.ep(2)
	a.must(a.op(transport.OpWrite, 2, 0, 0, 8))
	dead.must(dead.op(transport.OpWrite, 1, 0, 0, 8)) // the dead one made this connection
	back := passive.ep(2)
	r.kill(t, 2)
	a.awaitDown(ep)
	passive.awaitDown(back)
	a.none()
	passive.none()
	c := a.do(a.opOn(ep, transport.OpWrite, 2, 0, 0, 8))
	require.Contains(t, []transport.Status{transport.StatusPeerGone, transport.StatusFlushed}, c.Status)
	require.NoError(t, a.d.Disconnect(ep))
}

// testPeerDownTraffic kills a peer under writes and atomics. Each is reported once; the atomics add up.
func testPeerDownTraffic(t *testing.T, s *suite) {
	for round := range 5 {
		r := s.rig(t, 2, 1<<16)
		a, dead := r.nodes[0], r.nodes[1]
		ep := a.ep(1)
		a.must(a.op(transport.OpWrite, 1, 0, 0, 8))
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			time.Sleep(time.Duration(round) * 300 * time.Microsecond)
			r.kill(t, 1)
		}()
		var sent []transport.Op
		for deadline := time.Now().Add(s.opt.FailureTimeout); ; {
			op := a.opOn(ep, transport.OpWrite, 1, 1024, 1024, s.upTo(2048))
			if len(sent)%2 == 1 && s.caps.Atomics64 {
				op.Kind, op.SGE[0], op.Arg0, op.RAddr = transport.OpFetchAdd, a.sge(8, 8), 1, dead.mem.Addr()
			}
			require.NoError(t, a.tryPost(op))
			sent = append(sent, op)
			_, err := a.drain()
			require.NoError(t, err)
			if len(a.got) > 0 && a.got[len(a.got)-1].Status != transport.StatusOK {
				break
			}
			require.False(t, time.Now().After(deadline), "operations to the dead go on to succeed")
		}
		<-killed
		_, err := a.await(s.opt.FailureTimeout, isPeerDown(ep))
		require.NoError(t, err)
		low, high := a.requireEnds(sent, transport.StatusPeerGone)
		a.none()
		if s.caps.Atomics64 {
			// The dead rank's memory is still there, in this process: what does it say?
			count := dead.mem.Word64(0).Load()
			require.GreaterOrEqual(t, count, low, "an atomic that was reported as done is missing")
			require.LessOrEqual(t, count, high, "an atomic that was reported as flushed was done")
		}
	}
}

// testPeerDownSend kills a peer for whose receive buffer a message waits.
func testPeerDownSend(t *testing.T, s *suite) {
	need(t, s.caps.Sends, "sends")
	r := s.rig(t, 2, 4096)
	a := r.nodes[0]
	op := a.op(transport.OpSend, 1, 0, 0, 8)
	a.post(op)
	r.kill(t, 1)
	c, err := a.await(s.opt.FailureTimeout, func(c *transport.Completion) bool { return c.Cookie == op.Cookie })
	require.NoError(t, err)
	require.Contains(t, []transport.Status{transport.StatusPeerGone, transport.StatusFlushed}, c.Status)
	a.awaitDown(op.EP)
}

// testOthersGoOn kills one of four; the others do not notice but for its completion.
func testOthersGoOn(t *testing.T, s *suite) {
	const ranks = 4
	r := s.rig(t, ranks, 4096)
	for i, n := range r.nodes {
		for k := range ranks {
			n.must(n.op(transport.OpWrite, k, 0, 64*i, 8))
		}
	}
	r.kill(t, 3)
	together(t, ranks-1, func(i int) error {
		n := r.nodes[i]
		for k := range 200 {
			op := n.op(transport.OpWrite, (i+1+k%2)%(ranks-1), 0, 1024+64*i, 64)
			if err := n.tryPost(op); err != nil {
				return err
			}
			if c, err := n.tryWait(op.Cookie); err != nil || c.Status != transport.StatusOK {
				return fmt.Errorf("write %d of rank %d: status %d: %w", k, i, c.Status, err)
			}
		}
		_, err := n.await(s.opt.FailureTimeout, isPeerDown(n.eps[3]))
		return err
	})
	for _, n := range r.nodes[:3] {
		n.none()
	}
}

func testConnectDead(t *testing.T, s *suite) {
	r := s.rig(t, 3, 64)
	never, was := r.nodes[0], r.nodes[1]
	ep := was.ep(2)
	addr := r.nodes[2].d.Address()
	r.kill(t, 2)
	was.awaitDown(ep)
	require.NoError(t, was.d.Disconnect(ep))
	ctx, cancel := context.WithTimeout(t.Context(), 2*s.opt.FailureTimeout)
	defer cancel()
	for _, n := range []*node{never, was} {
		_, err := n.d.Connect(ctx, 2, addr)
		require.ErrorIs(t, err, transport.ErrPeerGone)
	}
}

// testCloseOutstanding closes both ends of full queues at once.
func testCloseOutstanding(t *testing.T, s *suite) {
	for range 5 {
		r := s.rig(t, 3, 1<<16)
		for _, n := range r.nodes {
			for peer := range r.nodes {
				n.ep(peer)
			}
		}
		together(t, 3, func(i int) error {
			n := r.nodes[i]
			for k := range 100 {
				if _, err := n.d.Post([]transport.Op{n.op(transport.OpWrite, k%3, 0, 8192*(1+i), s.upTo(4096))}); err != nil {
					return err
				}
			}
			r.s.opt.Kill(t, n.d)
			return nil
		})
		for i := range r.nodes {
			r.gone[i] = true
		}
	}
}

func testClosed(t *testing.T, s *suite) {
	r := s.rig(t, 2, 4096)
	a := r.nodes[0]
	op := a.op(transport.OpWrite, 1, 0, 0, 8)
	addr := r.nodes[1].d.Address()
	require.NoError(t, a.d.Close())
	r.gone[0] = true
	_, err := a.d.Connect(t.Context(), 1, addr)
	require.ErrorIs(t, err, transport.ErrClosed)
	require.ErrorIs(t, a.d.Disconnect(op.EP), transport.ErrClosed)
	_, err = a.d.Register(a.mem, transport.AllAccess)
	require.ErrorIs(t, err, transport.ErrClosed)
	require.ErrorIs(t, a.d.Deregister(a.reg), transport.ErrClosed)
	n, err := a.d.Post([]transport.Op{op})
	require.ErrorIs(t, err, transport.ErrClosed)
	require.Zero(t, n)
	if s.caps.Sends {
		_, err = a.d.PostRecv([]transport.Recv{{Buf: a.sge(0, 8)}})
		require.ErrorIs(t, err, transport.ErrClosed)
	}
	_, err = a.d.Poll(make([]transport.Completion, 1))
	require.ErrorIs(t, err, transport.ErrClosed)
	require.ErrorIs(t, a.d.Wait(t.Context()), transport.ErrClosed)
	a.d.Wake()
	if err := a.d.Close(); err != nil {
		require.ErrorIs(t, err, transport.ErrClosed)
	}
}
