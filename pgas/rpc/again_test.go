package rpc

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/transport"
	"gopgas/window"
)

// TestAnswersThatCannotBeBrought: an answer whose put fails, as where a connection has broken and cannot be made again for want of descriptors, is brought when puts do not fail any more, whether the
// function is called in turn, beside others, or behind a message that waits. What has asked for something is told.
func TestAnswersThatCannotBeBrought(t *testing.T) {
	pgastest.EachReal(t, []int{2}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		s := New(w.Team())
		shut, err := window.Allocate[uint64](ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		if err := shut.Free(ctx); err != nil { // puts to it fail
			return err
		}
		var rings *window.Window[uint64]
		swap := func(to *window.Window[uint64]) { // with the lane of rank 0 for itself
			l := &s.lanes[0]
			for !l.busy.CompareAndSwap(false, true) {
				time.Sleep(time.Microsecond)
			}
			rings, s.rings = s.rings, to
			l.busy.Store(false)
		}
		long := func(_ context.Context, _ int, n int) ([]byte, error) { return make([]byte, n), nil }
		turns, beside := HandleInTurn(s, "turns", long), Handle(s, "beside", long)
		note := HandleInTurn(s, "note", func(context.Context, int, int) (int, error) { return 0, nil })
		if err := s.Start(ctx); err != nil {
			return err
		}
		sizes := []int{8, 100_000} // the second one is in pieces
		if w.Rank() == 1 {
			swap(shut)
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		short, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		var calls []*Pending[int, []byte]
		if w.Rank() == 0 {
			for _, n := range sizes {
				for _, f := range []*Func[int, []byte]{turns, beside} {
					p, err := f.CallNB(ctx, 1, n)
					if err != nil {
						return err
					}
					calls = append(calls, p)
				}
			}
		} else {
			for s.lanes[0].waits.Load() != int64(2*len(sizes)) && short.Err() == nil { // all answers have been tried
				time.Sleep(time.Millisecond)
			}
			_, err := note.Call(short, 0, 1)
			require.ErrorIs(t, err, transport.ErrClosed)
			swap(rings)
		}
		for i, p := range calls {
			got, err := p.Wait(short)
			require.NoError(t, err)
			require.Len(t, got, sizes[i/2])
		}
		_, err = note.Call(ctx, 1-w.Rank(), 1)
		require.NoError(t, err)
		return s.Close(ctx)
	})
}
