package firehose

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCarriedBesideARefusal: a request whose put has set out is not over before the answer to that is there, also where another request's bucket that it needs is refused: till
// then the bytes are the move's, and the owner may store them.
func TestCarriedBesideARefusal(t *testing.T) {
	for _, sent := range []bool{true, false} {
		n := newNet(t, config{ranks: 2, f: 8, v: 8})
		h, v := n.holders[0], n.view(0, 1)
		n.owners[1].refuse = func(run Run) error {
			if run.First.Index() == 0 {
				return errFull
			}
			return nil
		}
		var first, q Request
		require.Equal(t, Waiting, h.Acquire(v, &first, 0, 8))
		n.send(0)
		n.stuck[1] = !sent
		q.Put = []byte("a put of two buckets")
		require.Equal(t, Waiting, h.Acquire(v, &q, unit-8, uint64(len(q.Put))))
		n.send(0)
		n.deliver(0) // the first move, and its answer
		for i, e := range n.way {
			if e.reply {
				n.deliver(i)
				break
			}
		}
		require.Equal(t, Failed, first.State())
		require.Equal(t, Waiting, q.State(), "its put is under way")
		n.stuck[1] = false
		n.send(0)
		n.settle()
		require.Equal(t, Failed, q.State())
		require.ErrorIs(t, q.Err(), ErrRefused)
		require.True(t, q.Carried())
		require.Equal(t, map[string]int{"1 4088 a put of two buckets": 1}, n.stored)

		q.Put = nil
		n.owners[1].refuse = nil
		require.Equal(t, Waiting, h.Acquire(v, &q, unit-8, 16))
		n.send(0)
		n.settle()
		require.Equal(t, Ready, q.State())
		require.False(t, q.Carried())
		h.Release(&q)
	}
}
