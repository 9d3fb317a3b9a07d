package pgas_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
)

// TestStrings: what is printed for an object says what it is.
func TestStrings(t *testing.T) {
	pgastest.Each(t, []int{2}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		a, e1 := pgas.NewArray[float64](ctx, w.Team(), 10, pgas.BlockCyclic(3))
		m, e2 := pgas.NewMatrix[int8](ctx, w.Team(), 4, 6, pgas.Grid{Rows: 1, Ghost: 2})
		p, e3 := pgas.Alloc[uint16](ctx, w.Team(), 5)
		if err := errors.Join(e1, e2, e3); err != nil {
			return err
		}
		for want, x := range map[string]any{
			fmt.Sprintf("rank %d of a world of 2", w.Rank()):                      w,
			"array of 10 float64, blocks of 3 dealt out, over a team of 2":        a,
			"matrix of 4 by 6 int8, in 1 by 2 blocks with ghost cells of width 2": m,
			"pointer to uint16 4 of member 1":                                     p.On(1).Add(4),
			"nil pointer to uint16":                                               pgas.Ptr[uint16]{},
		} {
			require.Equal(t, want, fmt.Sprint(x))
		}
		return errors.Join(a.Free(ctx), m.Free(ctx), p.Free(ctx))
	})
}
