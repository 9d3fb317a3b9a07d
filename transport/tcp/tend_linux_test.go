package tcp

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
)

// TestReaderTends: for a rank that sleeps in Wait the link's own goroutine does what there is to do, and wakes the rank only if
// something is left.
func TestReaderTends(t *testing.T) {
	from, to := openRank(t, 0, 2, Config{}, transport.Config{}), openRank(t, 1, 2, Config{}, transport.Config{})
	ep, err := from.Connect(t.Context(), 1, to.Address())
	require.NoError(t, err)
	send := func(cookie uint64) {
		n, err := to.PostRecv([]transport.Recv{{Buf: transport.SGE{Mem: to.open.Slice(0, 64), LKey: to.reg.LKey}, Cookie: cookie}})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		op := transport.Op{Kind: transport.OpSend, Flags: transport.FlagInline, EP: ep, NSGE: 1}
		op.SGE[0].Mem = from.open.Slice(0, 8)
		n, err = from.Post([]transport.Op{op})
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	var tended, idle atomic.Int64
	var lazy atomic.Bool
	var cq [4]transport.Completion
	to.sched.SetTender(func() bool {
		if lazy.Load() {
			return false
		}
		n, err := to.Poll(cq[:])
		if err != nil || n == 0 {
			idle.Add(1)
			return false
		}
		tended.Add(int64(n))
		return true
	})
	woken := make(chan error, 1)
	go func() { woken <- to.Wait(context.Background()) }()
	require.Eventually(t, to.sleeping.Load, time.Minute, time.Millisecond)
	for i := range int64(5) {
		send(uint64(i))
		require.Eventually(t, func() bool { return tended.Load() == i+1 && idle.Load() == i+1 }, time.Minute, 100*time.Microsecond)
	}
	require.Empty(t, woken)
	require.True(t, to.sleeping.Load(), "it was woken for nothing")
	require.GreaterOrEqual(t, to.alone.Load(), int32(promptAfter))

	lazy.Store(true)
	send(6)
	require.NoError(t, <-woken)
	n, err := to.Poll(cq[:])
	require.NoError(t, err)
	require.Equal(t, 1, n)
	for range patience + 1 {
		_, err = to.Poll(cq[:])
		require.NoError(t, err)
	}
	require.Zero(t, to.alone.Load(), "who looks again and again serves itself")
}
