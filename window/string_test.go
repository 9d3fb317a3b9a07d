package window_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/window"
)

// TestStrings: what is printed for an object says what it is.
func TestStrings(t *testing.T) {
	pgastest.Each(t, []int{2}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		win, e1 := window.Allocate[int32](ctx, w.Team(), 5)
		dyn, e2 := window.NewDynamic[float64](ctx, w.Team())
		if err := errors.Join(e1, e2); err != nil {
			return err
		}
		ref, err := dyn.Alloc(7)
		if err != nil {
			return err
		}
		view, mapped := win.View(w.Rank())
		n := 0
		if mapped {
			n = 5
		}
		h, err := win.GetNB(1-w.Rank(), 0, make([]int32, 5))
		if err != nil {
			return err
		}
		require.Regexp(t, "^transfer, (done|under way)$", fmt.Sprint(h))
		if err := h.Wait(ctx); err != nil {
			return err
		}
		for want, x := range map[string]any{
			fmt.Sprintf("window of int32, 5 of 10 elements on this rank, member %d of 2", w.Rank()):     win,
			fmt.Sprintf("dynamic window of float64, 1 attached by this rank, member %d of 2", w.Rank()): dyn,
			fmt.Sprintf("7 elements attached by member %d", w.Rank()):                                   ref,
			"nothing attached":                        window.Ref{},
			fmt.Sprintf("view of %d int32", n):        view,
			fmt.Sprintf("atomic view of %d int32", n): window.Atomics(view),
			"view of 0 int8":                          window.View[int8]{},
			"transfer, done":                          h,
			"shared":                                  window.LockShared,
			"exclusive":                               window.LockExclusive,
		} {
			require.Equal(t, want, fmt.Sprint(x))
		}
		if err := errors.Join(win.Free(ctx), dyn.Free(ctx)); err != nil {
			return err
		}
		require.Equal(t, "window of int32, freed", fmt.Sprint(win))
		require.Equal(t, "dynamic window of float64, freed", fmt.Sprint(dyn))
		return nil
	})
}
