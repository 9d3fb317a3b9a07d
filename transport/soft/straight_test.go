package soft

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
)

// takeAll polls until n completions have come, and returns their cookies.
func takeAll(t *testing.T, d *domain, n int) (cookies []uint64) {
	t.Helper()
	var cq [8]transport.Completion
	for end := time.Now().Add(20 * time.Second); len(cookies) < n; {
		k, err := d.Poll(cq[:])
		require.NoError(t, err)
		for _, c := range cq[:k] {
			require.Equal(t, transport.StatusOK, c.Status)
			cookies = append(cookies, c.Cookie)
		}
		require.True(t, time.Now().Before(end))
	}
	return cookies
}

// TestStraight: what is short goes past the ring where nothing is in it, keeps its place behind what is, and has the credit of others.
func TestStraight(t *testing.T) {
	d, m, op := alone(t, time.Minute)
	post := func(op transport.Op) (n int, past bool) {
		before := d.seats[0].tail.Load()
		n, err := d.Post([]transport.Op{op})
		require.NoError(t, err)
		return n, n == 1 && d.seats[0].tail.Load() == before
	}
	short := op
	short.SGE[0].Mem = m.Slice(8, 8)
	short.Cookie = 1
	went := 0
	for range 100 {
		_, past := post(op)
		require.False(t, past, "it is long")
		if _, past = post(short); past { // the thread has moved the long one already
			went++
		}
		require.Equal(t, []uint64{0, 1}, takeAll(t, d, 2))
		require.Equal(t, m.Word64(8).Load(), m.Word64(chunk).Load(), "it has overtaken")
	}
	require.Less(t, went, 50)
	went = 0
	for i := range 1000 { // at times the thread looks whether there is something to do
		m.Word64(8).Store(uint64(i))
		_, past := post(short)
		if past {
			went++
			require.Equal(t, uint64(i), m.Word64(chunk).Load())
		}
		takeAll(t, d, 1)
	}
	require.Greater(t, went, 500)

	for range d.cfg.MaxPost {
		n, _ := post(short)
		require.Equal(t, 1, n)
	}
	n, _ := post(short)
	require.Zero(t, n, "more than MaxPost are not reported")
	takeAll(t, d, d.cfg.MaxPost)
	n, past := post(transport.Op{Kind: op.Kind, EP: op.EP, RAddr: op.RAddr, RKey: op.RKey})
	require.Equal(t, 1, n, "one of no bytes that reports nothing")
	if past {
		require.Zero(t, d.seats[0].inflight.Load())
	}
}
