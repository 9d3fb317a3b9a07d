package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/window"
)

var program = pgastest.Program(run)

func TestTranspose(t *testing.T) {
	for _, order := range []string{"8", "29"} {
		args := func(bool) []string { return []string{"-order", order, "-times", "3"} }
		program.InWorlds(t, args, func(t *testing.T, _ bool, outs []string) {
			out := pgastest.OnlyRank0(t, outs)
			require.Contains(t, out, fmt.Sprintf("%s x %s transposed 3 times by %d ranks: ", order, order, len(outs)))
			require.Contains(t, out, "verified: all elements exact")
		})
	}
}

func TestWrongArguments(t *testing.T) {
	program.Refuses(t, 3, "needed 3 (a row for each rank)", "-order", "2")
	program.Refuses(t, 1, `arguments ["x"]`, "x")
	program.Refuses(t, 1, "flag provided but not defined: -y", "-y")
}

// TestCheck shows that a missing transposition, and a wrong element, are found.
func TestCheck(t *testing.T) {
	pgastest.Run(t, 1, func(ctx context.Context, w *pgas.World) error {
		b := &band{order: 2, ranks: 1}
		var err error
		b.b, err = window.Allocate[float64](ctx, w.Team(), 4)
		require.NoError(t, err)
		copy(b.b.Local(), []float64{0, 2, 1, 3})
		require.Zero(t, b.worst(1))
		require.NotZero(t, b.worst(2))
		b.b.Local()[3] = 2
		require.EqualValues(t, 1, b.worst(1))
		return nil
	})
}
