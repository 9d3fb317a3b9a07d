package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
)

// TestRecvQueueStaysSmall: a rank that posts a buffer for each that a message has taken, so that the queue is never empty, has room for those that are in it.
func TestRecvQueueStaysSmall(t *testing.T) {
	for _, posted := range []int{1, 2, 7, 64} {
		var q recvQueue
		next := uint64(0)
		post := func() {
			q.add(transport.Recv{Cookie: next})
			next++
		}
		for range posted {
			post()
		}
		for want := range uint64(10000) {
			post()
			r, ok := q.take()
			require.True(t, ok)
			require.Equal(t, want, r.Cookie)
			if want%3 == 0 { // a message that was refused
				q.putBack(r)
				again, ok := q.take()
				require.True(t, ok)
				require.Equal(t, r, again)
			}
		}
		require.LessOrEqual(t, cap(q.bufs), 8*posted)
	}
}
