package pgastest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/window"
)

func TestProcessRanks(t *testing.T) {
	for _, n := range []int{1, 4} {
		t.Run(fmt.Sprint(n, " ranks"), func(t *testing.T) {
			pgastest.RunProcs(t, n, func(ctx context.Context, w *pgas.World) error {
				win, err := window.Allocate[int](ctx, w.Team(), 4)
				if err != nil {
					return err
				}
				if err := win.Put((w.Rank()+1)%n, 0, []int{os.Getpid()}); err != nil {
					return err
				}
				if err := win.Fence(ctx); err != nil {
					return err
				}
				if n > 1 && win.Local()[0] == os.Getpid() {
					return errors.New("the ranks are not processes of their own")
				}
				return win.Free(ctx)
			})
		})
	}
}

// TestCreateBetweenProcesses: memory that cannot be mapped is reached all the same.
func TestCreateBetweenProcesses(t *testing.T) {
	pgastest.RunProcs(t, 2, func(ctx context.Context, w *pgas.World) error {
		mine := make([]int32, 1000+w.Rank())
		win, err := window.Create(ctx, w.Team(), mine)
		if err != nil {
			return err
		}
		other := 1 - w.Rank()
		for i := range win.Len(other) {
			if _, err := window.FetchAdd(win, other, i, int32(i)); err != nil {
				return err
			}
			if i == 20 {
				break
			}
		}
		if err := win.Put(other, 500, []int32{7, 8, 9}); err != nil {
			return err
		}
		if err := window.Accumulate(win, other, 500, []int32{1, 1, 1}, 0); err != nil {
			return err
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		for i := range 20 {
			if mine[i] != int32(i) {
				return fmt.Errorf("element %d is %d", i, mine[i])
			}
		}
		if mine[500] != 8 || mine[502] != 10 {
			return fmt.Errorf("elements 500 to 502 are %v", mine[500:503])
		}
		got := make([]int32, 3)
		if err := win.Get(other, 500, got); err != nil || got[1] != 9 {
			return fmt.Errorf("got %v: %w", got, err)
		}
		return win.Free(ctx)
	})
}

func TestFailureOfAProcessRank(t *testing.T) {
	r, out := pgastest.StartProcs(t, 3, pgastest.Procs{}, 1, func(ctx context.Context, w *pgas.World) error {
		if w.Rank() == 1 {
			return errors.New("out of luck")
		}
		return w.Barrier(ctx)
	})
	require.Equal(t, 1, r.Code)
	require.Contains(t, out, "rank 1: out of luck")
}
