package transporttest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
)

var connectChecks = []check{
	{"Connect/twice is one endpoint", testConnectTwice},
	{"Connect/by who was called", testConnectCalled},
	{"Connect/all to all at once", testConnectAll},
	{"Connect/by many goroutines", testConnectMany},
	{"Connect/what is no address", testConnectGarbage},
	{"Connect/context ended", testConnectContext},
	{"Disconnect/outstanding operations", testDisconnectOutstanding},
	{"Disconnect/an older incarnation", testDisconnectStale},
	{"Disconnect/both sides come back", testBothRedial},
	{"Disconnect/over and over", testRedialOften},
}

func testConnectTwice(t *testing.T, s *suite) {
	a, b := s.pair(t, 64)
	ep := a.ep(1)
	again, err := a.d.Connect(t.Context(), 1, b.d.Address())
	require.NoError(t, err)
	require.Equal(t, ep, again)
	require.NotEqual(t, a.ep(0).Index, ep.Index)
	a.must(a.op(transport.OpWrite, 1, 0, 0, 8))
	b.must(b.op(transport.OpWrite, 0, 0, 0, 8))
}

// testConnectCalled has a rank that was connected to, and knows it by a message alone, connect in its turn: it gets the
// endpoint that the message came on, however new that is.
func testConnectCalled(t *testing.T, s *suite) {
	need(t, s.caps.Sends, "sends")
	a, b := s.pair(t, 64)
	for round := range 30 {
		b.postRecv(uint64(round), 0, 8)
		a.redial(1)
		a.must(a.op(transport.OpSend, 1, 0, 0, 8))
		from := b.recv().EP
		ep, err := b.d.Connect(t.Context(), 0, a.d.Address())
		require.NoError(t, err)
		require.Equal(t, from, ep, "round %d", round)
	}
}

// testConnectAll has all ranks connect to all at the same moment, themselves included.
func testConnectAll(t *testing.T, s *suite) {
	const ranks = 4
	for range 5 {
		r := s.rig(t, ranks, 1024)
		start := make(chan struct{})
		go close(start)
		together(t, ranks, func(i int) error {
			n := r.nodes[i]
			<-start
			for k := range ranks {
				peer := (i + k) % ranks
				if _, err := n.dial(peer); err != nil {
					return err
				}
				n.mem.Word64(8 * peer).Store(uint64(i*ranks + peer))
				op := n.op(transport.OpWrite, peer, 8*peer, 512+8*i, 8)
				if err := n.tryPost(op); err != nil {
					return err
				}
				if c, err := n.tryWait(op.Cookie); err != nil || c.Status != transport.StatusOK {
					return fmt.Errorf("first write from %d to %d: status %d: %w", i, peer, c.Status, err)
				}
			}
			return nil
		})
		for i, n := range r.nodes {
			for peer := range ranks {
				n.settle(peer)
			}
			for from := range ranks {
				require.EqualValues(t, from*ranks+i, n.read8(i, 512+8*from))
			}
			n.none()
		}
	}
}

func testConnectMany(t *testing.T, s *suite) {
	a, b := s.pair(t, 64)
	eps := make([]transport.EP, 8)
	together(t, len(eps), func(i int) (err error) {
		eps[i], err = a.d.Connect(t.Context(), 1, b.d.Address())
		return err
	})
	for _, ep := range eps {
		require.Equal(t, eps[0], ep)
	}
	a.must(a.op(transport.OpWrite, 1, 0, 0, 8))
}

func testConnectGarbage(t *testing.T, s *suite) {
	a, b := s.pair(t, 64)
	ctx, cancel := context.WithTimeout(t.Context(), s.opt.FailureTimeout)
	defer cancel()
	for _, addr := range [][]byte{nil, {}, {1}, make([]byte, 4096)} {
		_, err := a.d.Connect(ctx, 1, addr)
		require.Error(t, err, "address %q", addr)
	}
	good := b.d.Address()
	_, err := a.d.Connect(ctx, 1, good[:len(good)-1])
	require.Error(t, err, "a cut address")
	a.must(a.op(transport.OpWrite, 1, 0, 0, 8))
}

func testConnectContext(t *testing.T, s *suite) {
	a, b := s.pair(t, 64)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := a.d.Connect(ctx, 1, b.d.Address())
	require.ErrorIs(t, err, context.Canceled)
	a.must(a.op(transport.OpWrite, 1, 0, 0, 8))
}

// testDisconnectOutstanding ends an endpoint with a full queue. Every signalled operation is reported once,
// under the incarnation it was posted to; what succeeded is a beginning of what was posted; an atomic that is
// flushed did not happen.
func testDisconnectOutstanding(t *testing.T, s *suite) {
	a, b := s.pair(t, 1<<16)
	for range 20 {
		b.mem.Word64(0).Store(0)
		ep := a.ep(1)
		var sent []transport.Op
		for k := range min(s.caps.MaxPost, 200) {
			op := a.op(transport.OpWrite, 1, 1024, 1024, s.upTo(4096))
			if k%2 == 1 && s.caps.Atomics64 {
				op.Kind, op.SGE[0], op.Arg0 = transport.OpFetchAdd, a.sge(8, 8), 1
				op.RAddr = b.mem.Addr()
			}
			if k%5 == 4 && op.Kind == transport.OpWrite {
				op = quiet(op)
			}
			sent = append(sent, op)
		}
		n, err := a.d.Post(sent)
		require.NoError(t, err)
		sent = sent[:n]
		require.NoError(t, a.d.Disconnect(ep))
		a.has[1] = false
		next := a.ep(1)
		require.Greater(t, next.Incarnation, ep.Incarnation)
		low, high := a.requireEnds(sent, transport.StatusFlushed)
		// What was flushed without having happened does not happen later either.
		a.must(a.op(transport.OpWrite, 1, 1024, 1024, 8))
		a.none()
		if s.caps.Atomics64 {
			count := a.read8(1, 0)
			require.GreaterOrEqual(t, count, low, "an atomic that was reported as done is missing")
			require.LessOrEqual(t, count, high, "an atomic that was reported as flushed was done")
		}
	}
}

// requireEnds checks the completions of operations to one endpoint that broke on the way: each once, in order,
// first successes, then first as an error, then flushed. It returns how many atomics were done at least and
// at most.
func (n *node) requireEnds(sent []transport.Op, first transport.Status) (low, high uint64) {
	n.t.Helper()
	broken := false
	for k, op := range sent {
		atomic := op.Kind == transport.OpFetchAdd || op.Kind == transport.OpCompareSwap
		if op.Flags&transport.FlagSignaled == 0 {
			// Silent if it succeeded: look whether it was reported when the next signalled one has come.
			continue
		}
		c, err := n.await(n.s.opt.FailureTimeout+n.s.opt.Timeout, func(c *transport.Completion) bool { return c.Cookie == op.Cookie && c.Kind == op.Kind })
		require.NoError(n.t, err, "operation %d of %d", k, len(sent))
		require.Equal(n.t, op.EP, c.EP, "a completion of another incarnation")
		switch {
		case c.Status == transport.StatusOK:
			require.False(n.t, broken, "operation %d succeeded behind one that failed", k)
		case c.Status == transport.StatusFlushed || c.Status == transport.StatusInDoubt && atomic || c.Status == first && !broken:
			broken = true
		default:
			require.Fail(n.t, "wrong status", "operation %d of %d, kind %d: status %d", k, len(sent), op.Kind, c.Status)
		}
		if atomic && c.Status == transport.StatusOK {
			low++
		}
		if atomic && (c.Status == transport.StatusOK || c.Status == transport.StatusInDoubt) {
			high++
		}
	}
	// What is left is at most one report of each unsignalled operation that did not succeed.
	silent := map[uint64]bool{}
	for _, op := range sent {
		silent[op.Cookie] = op.Flags&transport.FlagSignaled == 0
	}
	if len(sent) > 0 && sent[len(sent)-1].Flags&transport.FlagSignaled == 0 {
		_, _ = n.await(200*time.Millisecond, func(c *transport.Completion) bool { return c.Cookie == sent[len(sent)-1].Cookie })
	}
	rest := n.got[:0]
	for _, c := range n.got {
		if silent[c.Cookie] && c.EP == sent[0].EP {
			require.NotEqual(n.t, transport.StatusOK, c.Status, "an unsignalled success was reported")
			silent[c.Cookie] = false
			continue
		}
		rest = append(rest, c)
	}
	n.got = rest
	return low, high
}

// testDisconnectStale ends an endpoint that has been ended before: the new one is not touched. A post to the
// old one is reported as flushed.
func testDisconnectStale(t *testing.T, s *suite) {
	a, b := s.pair(t, 4096)
	fill(b.mem, 2)
	old := a.ep(1)
	a.redial(1)
	require.NoError(t, a.d.Disconnect(old))
	a.must(a.op(transport.OpWrite, 1, 0, 0, 8))
	for _, flags := range []uint8{0, transport.FlagSignaled} {
		op := a.opOn(old, transport.OpWrite, 1, 64, 64, 64)
		op.Flags = flags
		c := a.do(op)
		require.Equal(t, transport.StatusFlushed, c.Status)
	}
	requirePattern(t, b.mem.Slice(64, 64), 2, 64, "memory behind an endpoint that was ended")
	a.must(a.op(transport.OpWrite, 1, 0, 0, 8))
	require.NoError(t, a.d.Disconnect(a.ep(1)))
	require.NoError(t, a.d.Disconnect(a.ep(1)), "ended already")
	a.has[1] = false
	a.must(a.op(transport.OpWrite, 1, 0, 0, 8))
	require.Error(t, a.d.Disconnect(transport.EP{Index: 1 << 30, Incarnation: 1}), "never was an endpoint")
	a.none()
}

// testBothRedial has both ranks end and renew their connection at the same time. In the end it works.
func testBothRedial(t *testing.T, s *suite) {
	r := s.rig(t, 2, 4096)
	for range 20 {
		together(t, 2, func(i int) error {
			n := r.nodes[i]
			ep, err := n.dial(1 - i)
			if err != nil {
				return err
			}
			if err := n.d.Disconnect(ep); err != nil {
				return err
			}
			n.has[1-i] = false
			_, err = n.dial(1 - i)
			return err
		})
		// Who was first may have made a connection that the other has ended after that.
		r.nodes[0].revive(1)
		r.nodes[1].revive(0)
		r.nodes[0].revive(1)
	}
	for _, n := range r.nodes {
		n.none()
	}
}

// testRedialOften must not use up anything.
func testRedialOften(t *testing.T, s *suite) {
	a, _ := s.pair(t, 4096)
	last := a.ep(1).Incarnation
	for range min(s.opt.Ops/4, 200) {
		a.must(a.op(transport.OpWrite, 1, 0, 0, 8))
		ep := a.redial(1)
		require.Greater(t, ep.Incarnation, last)
		last = ep.Incarnation
	}
}
