package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/sched"
	"gopgas/transport"
)

// lazily posts lazy writes of a word, and returns when they were performed, and what was reported until then.
func (r *testRank) lazily(t *testing.T, l *link, to *testRank, words int) (reported int) {
	t.Helper()
	l.mu.Lock()
	before := l.done
	l.mu.Unlock()
	for k := range words {
		r.open.Slice(8*k, 8).Word64(0).Store(before + uint64(k) + 1)
		op := r.op(transport.OpWrite, l, to, 8*k, 64, 8)
		op.Flags |= transport.FlagLazy
		n, err := r.Post([]transport.Op{op})
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	require.Eventually(t, func() bool { return to.open.Slice(64, 8).Word64(0).Load() == before+uint64(words) }, time.Minute, time.Millisecond)
	time.Sleep(5 * time.Millisecond) // for the answers that are not to come
	return r.reported(t)
}

// reported is how many operations have ended.
func (r *testRank) reported(t *testing.T) (all int) {
	t.Helper()
	var cq [8]transport.Completion
	for {
		n, err := r.Poll(cq[:])
		require.NoError(t, err)
		if all += n; n == 0 {
			return all
		}
	}
}

// TestLazy: what is lazy is performed at once and reported with what the peer says next, with a later operation, or when it is asked for, which needs no question
// where an answer is due anyway.
func TestLazy(t *testing.T) {
	ways := map[string]func(a, b *testRank, l *link){
		"the peer's frame": func(a, b *testRank, l *link) {
			b.post(t, 1, b.op(transport.OpWrite, b.links[0].Load(), a, 128, 128, 8))
		},
		"a later write": func(a, b *testRank, l *link) { a.post(t, 4, a.op(transport.OpWrite, l, b, 128, 128, 8)) },
		"a later read":  func(a, b *testRank, l *link) { a.post(t, 4, a.op(transport.OpRead, l, b, 128, 128, 8)) },
		"asked":         func(a, b *testRank, l *link) { a.Hasten(l.ep); a.Hasten(l.ep) },
		"a tick":        func(a, b *testRank, l *link) { b.links[0].Load().tick(); b.links[0].Load().tick() },
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			a, b, l := twoRanks(t, Config{})
			a.post(t, 1, a.op(transport.OpWrite, l, b, 0, 0, 8)) // the first request is acknowledged in any case
			require.Zero(t, a.lazily(t, l, b, 3))
			require.EqualValues(t, 3, l.lazy.Load())
			way(a, b, l)
			require.Eventually(t, func() bool { a.reported(t); return l.lazy.Load() == 0 && l.inflight.Load() == 0 }, time.Minute, time.Millisecond)
			l.mu.Lock()
			require.False(t, l.askDue, "nothing is left to ask for")
			l.mu.Unlock()
		})
	}
}

// TestLazyStride: of those behind each other one is acknowledged now and then, so that there is room for more.
func TestLazyStride(t *testing.T) {
	a, b, l := twoRanks(t, Config{MaxPost: 8})
	for k := range 100 {
		op := a.op(transport.OpWrite, l, b, 0, 0, 8)
		op.Flags |= transport.FlagLazy
		require.Eventually(t, func() bool {
			a.reported(t)
			n, err := a.Post([]transport.Op{op})
			require.NoError(t, err)
			return n == 1
		}, time.Minute, 10*time.Microsecond, "write %d", k)
	}
	a.Hasten(l.ep)
	require.Eventually(t, func() bool { a.reported(t); return l.inflight.Load() == 0 }, time.Minute, time.Millisecond)
}

// TestLazyEnds: at the end of its connection it is reported as everything else is.
func TestLazyEnds(t *testing.T) {
	a, b, l := twoRanks(t, Config{})
	a.post(t, 1, a.op(transport.OpWrite, l, b, 0, 0, 8))
	require.Zero(t, a.lazily(t, l, b, 5))
	require.NoError(t, a.Disconnect(l.ep))
	for range 5 {
		c := a.await(t, func(transport.Completion) bool { return true })
		require.Equal(t, transport.OpWrite, c.Kind)
	}
	require.Zero(t, l.lazy.Load())
	a.Hasten(l.ep)
}

// TestLazyIsNotLookedFor: who lingers looks at the link over which requests come, though something lazy is in flight on another one.
func TestLazyIsNotLookedFor(t *testing.T) {
	var r [3]*testRank
	for i := range r {
		r[i] = openRank(t, i, len(r), Config{}, transport.Config{})
	}
	for i := 1; i < len(r); i++ {
		_, err := r[0].Connect(t.Context(), i, r[i].Address())
		require.NoError(t, err)
	}
	asks, lazy := r[0].links[1].Load(), r[0].links[2].Load()
	r[0].post(t, 1, r[0].op(transport.OpWrite, lazy, r[2], 0, 0, 8))
	r[1].post(t, 1, r[1].op(transport.OpWrite, r[1].links[0].Load(), r[0], 0, 0, 8))
	require.Zero(t, r[0].lazily(t, lazy, r[2], 1))
	require.Eventually(t, func() bool { return r[0].asking.Load() == asks }, time.Minute, time.Millisecond)
	r[0].Hush(sched.Steadily)
	defer r[0].Hush(sched.Seldom)
	for range 2 * (patience + 1) {
		r[0].reported(t)
	}
	require.Equal(t, hushBytes, wakesAt(t, asks))
	require.Equal(t, 1, wakesAt(t, lazy))
	r[0].Hasten(lazy.ep)
	require.Eventually(t, func() bool { r[0].reported(t); return lazy.inflight.Load() == 0 }, time.Minute, time.Millisecond)
}
