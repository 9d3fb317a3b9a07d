package pgas_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// refusals are collective calls that one member's arguments alone make impossible. A team is whole after those that only ask.
var refusals = []struct {
	name  string
	whole bool
	call  func(ctx context.Context, t *pgas.Team, bad bool) error
}{
	{"array of a layout for others", true, func(ctx context.Context, t *pgas.Team, bad bool) error {
		l := pgas.Block()
		if bad {
			l = pgas.Irregular(1)
		}
		_, err := pgas.NewArray[int](ctx, t, 10, l)
		return err
	}},
	{"array of less than nothing", true, func(ctx context.Context, t *pgas.Team, bad bool) error {
		_, err := pgas.NewArray[int](ctx, t, either(bad, -1, 10), pgas.Cyclic())
		return err
	}},
	{"array of too much", true, func(ctx context.Context, t *pgas.Team, bad bool) error {
		_, err := pgas.NewArray[int](ctx, t, either(bad, 1<<62, 10), pgas.Cyclic())
		return err
	}},
	{"matrix of another grid", true, func(ctx context.Context, t *pgas.Team, bad bool) error {
		_, err := pgas.NewMatrix[int](ctx, t, 4, 4, pgas.Grid{Rows: either(bad, 7, 0)})
		return err
	}},
	{"allocation", true, func(ctx context.Context, t *pgas.Team, bad bool) error {
		_, err := pgas.Alloc[int](ctx, t, either(bad, -1, 3))
		return err
	}},
	{"window", true, func(ctx context.Context, t *pgas.Team, bad bool) error {
		_, err := window.Allocate[int](ctx, t, either(bad, -1, 3))
		return err
	}},
	{"sub-team", true, func(ctx context.Context, t *pgas.Team, bad bool) error {
		_, err := t.Sub(ctx, []int{0, either(bad, -1, 1)})
		return err
	}},
	{"strided team", true, func(ctx context.Context, t *pgas.Team, bad bool) error {
		_, err := t.Strided(ctx, 0, either(bad, t.Size(), 1), 2)
		return err
	}},
	{"no signals", false, func(ctx context.Context, t *pgas.Team, bad bool) error {
		_, err := pgsync.NewSignals(ctx, t, either(bad, 0, 2))
		return err
	}},
	{"too many signals", false, func(ctx context.Context, t *pgas.Team, bad bool) error {
		_, err := pgsync.NewSignals(ctx, t, either(bad, 1<<60, 2))
		return err
	}},
	{"resize", true, onArray(func(ctx context.Context, a, _, _ *pgas.Array[int], bad bool) error {
		return a.Resize(ctx, either(bad, -1, 5), pgas.Block())
	})},
	{"copy", false, onArray(func(ctx context.Context, a, b, other *pgas.Array[int], bad bool) error {
		return a.CopyFrom(ctx, either(bad, other, b))
	})},
	{"combine", false, onArray(func(ctx context.Context, a, b, other *pgas.Array[int], bad bool) error {
		return a.Combine(ctx, b, either(bad, other, b), func(x, y int) int { return x + y })
	})},
	{"reduce", false, onArray(func(ctx context.Context, a, _, _ *pgas.Array[int], bad bool) error {
		_, err := pgas.Reduce(ctx, a, either(bad, pgsync.Replace, pgsync.Sum))
		return err
	})},
	{"resize of a matrix", true, onMatrix(func(ctx context.Context, m, _, _ *pgas.Matrix[int], bad bool) error {
		return m.Resize(ctx, 5, 5, pgas.Grid{Ghost: either(bad, -1, 1)})
	})},
	{"copy of a matrix", false, onMatrix(func(ctx context.Context, m, like, other *pgas.Matrix[int], bad bool) error {
		return m.CopyFrom(ctx, either(bad, other, like))
	})},
	{"transpose", false, onMatrix(func(ctx context.Context, m, like, _ *pgas.Matrix[int], bad bool) error {
		return m.Transpose(ctx, either(bad, m, like))
	})},
	{"combine of matrices", false, onMatrix(func(ctx context.Context, m, like, other *pgas.Matrix[int], bad bool) error {
		return m.Combine(ctx, like, either(bad, other, like), func(x, y int) int { return x + y })
	})},
}

func either[T any](bad bool, wrong, right T) T {
	if bad {
		return wrong
	}
	return right
}

// onArray makes two arrays of 10 elements and one of 11.
func onArray(f func(ctx context.Context, a, like, other *pgas.Array[int], bad bool) error) func(context.Context, *pgas.Team, bool) error {
	return func(ctx context.Context, t *pgas.Team, bad bool) error {
		var a [3]*pgas.Array[int]
		for i := range a {
			var err error
			if a[i], err = pgas.NewArray[int](ctx, t, 10+i/2, pgas.Block()); err != nil {
				return fmt.Errorf("before the call: %w", err)
			}
		}
		return f(ctx, a[0], a[1], a[2], bad)
	}
}

// onMatrix makes two matrices of 4 by 4 elements and one of 4 by 5.
func onMatrix(f func(ctx context.Context, m, like, other *pgas.Matrix[int], bad bool) error) func(context.Context, *pgas.Team, bool) error {
	return func(ctx context.Context, t *pgas.Team, bad bool) error {
		var m [3]*pgas.Matrix[int]
		for i := range m {
			var err error
			if m[i], err = pgas.NewMatrix[int](ctx, t, 4, 4+i/2, pgas.Grid{}); err != nil {
				return fmt.Errorf("before the call: %w", err)
			}
		}
		return f(ctx, m[0], m[1], m[2], bad)
	}
}

// TestRefusedByOne: where one member's arguments cannot be, all members get an error from the same call: nobody waits for the next one.
func TestRefusedByOne(t *testing.T) {
	pgastest.Each(t, []int{2, 3}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		for i, c := range refusals {
			wrong := i % w.Size()
			team, err := w.Team().Split(ctx, 0, w.Rank())
			if err != nil {
				return err
			}
			err = c.call(ctx, team, w.Rank() == wrong)
			require.Error(t, err, "%s on rank %d, wrong on rank %d", c.name, w.Rank(), wrong)
			require.NotContains(t, err.Error(), "before the call", c.name)
			if w.Rank() != wrong {
				require.ErrorIs(t, err, pgsync.ErrMismatch, "%s, wrong on rank %d", c.name, wrong)
			}
			if err := w.Barrier(ctx); err != nil { // all have learned of it without a further call on the team
				return err
			}
			if !c.whole {
				continue
			}
			if err := team.Barrier(ctx); err != nil {
				return fmt.Errorf("after %s, wrong on rank %d: %w", c.name, wrong, err)
			}
		}
		return nil
	})
}
