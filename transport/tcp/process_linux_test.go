package tcp_test

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
)

func noContext() context.Context { return context.Background() }

// TestProcesses has four processes count on each other and write and read back, all at once.
func TestProcesses(t *testing.T) {
	const ranks = 4
	rounds := 100
	if testing.Short() {
		rounds = 30
	}
	me, children := job(t, ranks, 5*time.Second)
	for r, c := range children[1:] {
		var with []int
		for k := range ranks {
			if k != r+1 {
				with = append(with, k)
			}
		}
		c.exchange(t, rounds, with...)
	}
	require.NoError(t, me.exchange([]int{1, 2, 3}, rounds))
	for _, c := range children[1:] {
		c.ok(t)
	}
	require.EqualValues(t, (ranks-1)*rounds, me.m.Word64(0).Load(), "counts of the others on this rank")
	for r := 1; r < ranks; r++ {
		require.NoError(t, me.do(transport.OpRead, r, 32, 0, 8))
		require.EqualValues(t, (ranks-1)*rounds, me.m.Word64(32).Load(), "counts on rank %d", r)
	}
}

// flood keeps large puts, atomics and gets to a rank under way until one fails, and checks that all are reported.
func flood(t *testing.T, me *peer, to int, strike func()) (failedAfter time.Duration) {
	var began time.Time
	flight, posted, failed := 0, 0, 0
	for failed == 0 || flight > 0 {
		if failed == 0 {
			k, bytes := []transport.Kind{transport.OpWrite, transport.OpFetchAdd, transport.OpRead}[posted%3], 1<<20
			if k == transport.OpFetchAdd {
				bytes = 8
			}
			op, err := me.op(k, to, areaAt+posted%3<<20, areaAt, bytes)
			require.NoError(t, err)
			if k == transport.OpFetchAdd {
				op.RAddr = me.cards[to].Base
			}
			n, err := me.d.Post([]transport.Op{op})
			require.NoError(t, err)
			posted += n
			flight += n
			if posted == 40 && n == 1 {
				strike()
				began = time.Now()
			}
		}
		if flight > 8 || failed > 0 {
			c, err := me.next(20*time.Second, func(c transport.Completion) bool { return c.EP == me.eps[to] && c.Kind != transport.OpPeerDown })
			require.NoError(t, err)
			flight--
			if c.Status != transport.StatusOK {
				failed++
			}
		}
	}
	_, err := me.next(20*time.Second, func(c transport.Completion) bool { return c.EP == me.eps[to] && c.Kind == transport.OpPeerDown })
	require.NoError(t, err)
	return time.Since(began)
}

// TestKilled kills a process under large transfers: all is reported long before the failure timeout, others do not notice, and
// the buffers can be deregistered.
func TestKilled(t *testing.T) {
	const timeout = time.Minute
	me, children := job(t, 4, timeout)
	require.NoError(t, me.exchange([]int{1, 2, 3}, 1))
	rounds := 300
	if testing.Short() {
		rounds = 100
	}
	children[2].exchange(t, rounds, 3, 0)
	children[3].exchange(t, rounds, 2, 0)
	took := flood(t, me, 1, func() { require.NoError(t, children[1].cmd.Process.Kill()) })
	require.Less(t, took, timeout/3, "the connection's end was not noticed, but the silence")
	require.NoError(t, me.exchange([]int{2, 3}, 50))
	children[2].ok(t)
	children[3].ok(t)
	_, err := me.d.Connect(t.Context(), 1, me.cards[1].Address)
	require.ErrorIs(t, err, transport.ErrPeerGone)
	require.NoError(t, me.d.Deregister(me.reg))
}

// TestStopped stops a process: it is called gone within the failure timeout, though its kernel goes on to answer.
func TestStopped(t *testing.T) {
	const timeout = 2 * time.Second
	me, children := job(t, 3, timeout)
	require.NoError(t, me.exchange([]int{1, 2}, 1))
	children[2].exchange(t, 300, 0)
	took := flood(t, me, 1, func() { require.NoError(t, children[1].cmd.Process.Signal(syscall.SIGSTOP)) })
	require.Less(t, took, 5*timeout)
	require.Greater(t, took, timeout/2, "a peer must not be called gone too soon")
	children[2].ok(t)
	require.NoError(t, me.exchange([]int{2}, 50))
	// Who has never connected to it learns the same when it tries.
	start := time.Now()
	_, err := me.d.Connect(t.Context(), 1, me.cards[1].Address)
	require.ErrorIs(t, err, transport.ErrPeerGone)
	require.Less(t, time.Since(start), 5*timeout)
	require.NoError(t, me.d.Deregister(me.reg))
	require.NoError(t, children[1].cmd.Process.Kill())
	require.NoError(t, children[1].cmd.Process.Signal(syscall.SIGCONT))
	_, _ = children[1].cmd.Process.Wait()
}

// TestComesBack gives a rank that was killed a successor with another address: the old one is refused.
func TestComesBack(t *testing.T) {
	me, children := job(t, 2, 2*time.Second)
	require.NoError(t, me.exchange([]int{1}, 1))
	require.NoError(t, children[1].cmd.Process.Signal(os.Kill))
	_, err := me.next(5*time.Second, func(c transport.Completion) bool { return c.Kind == transport.OpPeerDown })
	require.NoError(t, err)
	next, err := openPeer(role{Rank: 1, Size: 2, Timeout: 2 * time.Second})
	require.NoError(t, err)
	defer func() { require.NoError(t, next.d.Close()) }()
	me.cards[1], me.eps[1] = next.card(), transport.EP{}
	require.NoError(t, me.exchange([]int{1}, 10))
	require.EqualValues(t, 10, next.m.Word64(0).Load())
}
