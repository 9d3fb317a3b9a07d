package nic

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// sleeper is a NIC that lets nobody doze for a time only: what does not end a sleep leaves the test waiting.
type sleeper struct {
	transport.Domain
	dozes atomic.Int64 // begun
	now   atomic.Bool
	wakes atomic.Int64
}

func (s *sleeper) WaitSolicited(ctx context.Context, _ time.Duration) (bool, error) {
	s.dozes.Add(1)
	s.now.Store(true)
	defer s.now.Store(false)
	return s.Domain.(solicited).WaitSolicited(ctx, time.Hour)
}

func (s *sleeper) Wake() {
	s.wakes.Add(1)
	s.Domain.Wake()
}

// newDozing is two ranks, connected, of which somebody attends to rank 0's NIC. It returns how to use that until he dozes.
func newDozing(t *testing.T) (w *world, s *sleeper, use func()) {
	s = &sleeper{}
	w = newWorld(t, 2, transporttest.FabricConfig{}, func(d transport.Domain) transport.Domain { s.Domain = d; return s })
	n := w.n[0]
	for r, at := range w.n {
		require.NoError(t, at.Connect("put", 1-r))
	}
	t.Cleanup(n.attended())
	return w, s, func() {
		t.Helper()
		for began := time.Now(); !s.now.Load(); {
			require.Less(t, time.Since(began), patient, "nobody dozes")
			w.put(t, 1, 0, 1) // the first wakes who attends
			require.NoError(t, n.Flush(t.Context(), 1))
			briefly()
		}
	}
}

// briefly lets 100 us pass: a sleep may take ten times as long, and then nobody uses the NIC again and again.
func briefly() {
	for began := time.Now(); time.Since(began) < 100*time.Microsecond; {
		runtime.Gosched()
	}
}

// TestDozeOperation: the end of an operation that its poster looks for wakes nobody beside him.
func TestDozeOperation(t *testing.T) {
	w, s, use := newDozing(t)
	use()
	before := s.dozes.Load()
	for k := range 100 {
		w.put(t, 1, 0, uint64(k))
		require.NoError(t, w.n[0].Flush(t.Context(), 1))
	}
	require.EqualValues(t, 99, w.mem[1].Word64(0).Load())
	require.True(t, w.n[0].dozing.Load())
	require.Equal(t, before, s.dozes.Load(), "it is one doze still")
}

// TestDozePosts: who posts and waits for nothing yet uses the NIC, too.
func TestDozePosts(t *testing.T) {
	w, s, _ := newDozing(t)
	for began := time.Now(); !s.now.Load(); briefly() {
		require.Less(t, time.Since(began), patient, "nobody dozes")
		w.put(t, 1, 0, 1)
	}
	require.Zero(t, w.n[0].waits.Load())
	require.NoError(t, w.n[0].Flush(t.Context(), 1))
}

// TestDozeMessage: a peer is served at once, though nobody of the rank polls.
func TestDozeMessage(t *testing.T) {
	w, s, use := newDozing(t)
	use()
	n := w.n[1]
	for range 20 { // more than there are reply buffers for one rank
		k, err := n.Keep("ask", 0, false, true)
		require.NoError(t, err)
		require.NoError(t, n.Ask("ask", k.ID, echo, [4]uint64{}, mem.Of([]byte("hello"))))
		require.NoError(t, k.Wait(t.Context()))
		n.Give(k.ID)
	}
	require.Zero(t, s.wakes.Load())
}

// TestDozePipe: who begins a pipe wakes who dozes, who learns of its end though nobody polls.
func TestDozePipe(t *testing.T) {
	w, s, use := newDozing(t)
	n, l := w.n[0], w.to[0]
	src := mem.Of([]uint64{9})
	key, err := n.Domain.Register(src, 0)
	require.NoError(t, err)
	op := w.write(1, 0)
	op.Flags, op.EP = transport.FlagSignaled, transport.EP{Index: 1}
	op.SGE[0] = transport.SGE{Mem: src, LKey: key.LKey}
	for k := range 5 {
		use()
		op.Cookie = 1<<40 + uint64(k)
		posted, err := n.TryPost(&op)
		require.NoError(t, err)
		require.True(t, posted)
		require.EqualValues(t, k+1, s.wakes.Load())
		require.Eventually(t, func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return len(l.reported) == k+1
		}, patient, 100*time.Microsecond)
	}
	require.NoError(t, n.Domain.Deregister(key))
}

// TestQuiet: nobody dozes while something is under way that goes on only if who attends learns of its end.
func TestQuiet(t *testing.T) {
	w := newWorld(t, 2, transporttest.FabricConfig{}, nil)
	n, l := w.n[0], w.to[0]
	for r, at := range w.n {
		require.NoError(t, at.Connect("put", 1-r))
	}
	require.True(t, n.quiet())

	require.True(t, n.poll.take())
	require.False(t, n.quiet(), "somebody polls")
	n.poll.leave()

	op := w.write(1, 0)
	op.Flags, op.Cookie, op.EP, op.NSGE = transport.FlagSignaled, 1<<40, transport.EP{Index: 1}, 0
	posted, err := n.TryPost(&op)
	require.NoError(t, err)
	require.True(t, posted)
	require.False(t, n.quiet(), "a pipe")
	w.until(t, n.quiet)
	require.Contains(t, l.reported, op.Cookie)

	sent, err := n.TryAsk(1, echo, [4]uint64{}, nil, FirstCookie)
	require.NoError(t, err)
	require.True(t, sent)
	require.False(t, n.quiet(), "a request")
	for len(l.answered) == 0 {
		w.n[1].Progress()
		n.Progress()
	}
	w.until(t, n.quiet)

	w.put(t, 1, 0, 7)
	require.True(t, n.quiet(), "who has put it looks for its end")
	require.NoError(t, n.Flush(t.Context(), 1))

	done := n.Alone()
	require.False(t, n.doze(time.Hour), "somebody polls")
	done()
	other := w.n[1]
	other.solicited = nil
	require.False(t, other.doze(time.Hour), "the NIC cannot")
}

// TestDozeUsed: who puts without waiting uses the NIC too, where who attends may doze.
func TestDozeUsed(t *testing.T) {
	w := newWorld(t, 2, transporttest.FabricConfig{}, nil)
	n := w.n[0]
	require.NoError(t, n.Connect("put", 1))
	for _, dozes := range []bool{true, false} {
		if !dozes {
			n.solicited = nil
		}
		before := n.uses()
		w.put(t, 1, 0, 7)
		require.Equal(t, dozes, n.uses() != before)
	}
	require.NoError(t, n.Flush(t.Context(), 1))
}
