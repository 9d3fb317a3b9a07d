package pgas_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// asked is a context that ends when it has been asked for the n-th time whether it has.
type asked struct {
	context.Context
	n *int
}

func (a asked) Err() error {
	if *a.n--; *a.n > 0 {
		return nil
	}
	return context.Canceled
}

// ends returns how often a call on a rank alone looks at its context, which is as often as it can end, and whether it ends each time.
func ends(t *testing.T, ctx context.Context, name string, call func(ctx context.Context) error) (looks int) {
	t.Helper()
	for looks = 1; ; looks++ {
		n := looks
		err := call(asked{ctx, &n})
		if err == nil {
			return looks - 1
		}
		require.ErrorIs(t, err, context.Canceled, "%s, at look %d", name, looks)
	}
}

// TestLoneCalls: on a rank alone every call that takes a context ends with it, before anything moves, and what is long between times, too. What
// gives memory back goes on.
func TestLoneCalls(t *testing.T) {
	ctx := t.Context()
	w, err := pgas.Init(ctx, &pgas.Config{Environ: []string{"PATH=/bin"}})
	require.NoError(t, err)
	team, cause := w.Team(), errors.New("told to end")
	ended, end := context.WithCancelCause(ctx)
	end(cause)
	const rows, cols = 1100, 1000 // more than a copy takes at once
	a, err := pgas.NewArray[int](ctx, team, 200_000, pgas.Block())
	require.NoError(t, err)
	b, err := pgas.NewArray[int](ctx, team, 200_000, pgas.Cyclic())
	require.NoError(t, err)
	m, err := pgas.NewMatrix[int](ctx, team, rows, cols, pgas.Grid{})
	require.NoError(t, err)
	o, err := pgas.NewMatrix[int](ctx, team, rows, cols, pgas.Grid{})
	require.NoError(t, err)
	x, err := pgas.NewMatrix[int](ctx, team, cols, rows, pgas.Grid{})
	require.NoError(t, err)
	p, err := pgas.Alloc[int](ctx, team, 3)
	require.NoError(t, err)
	win, err := window.AllocateConfig[int](ctx, team, 3, window.Config{Epochs: true})
	require.NoError(t, err)
	add := func(x, y int) int { return x + y }
	for name, call := range map[string]func(ctx context.Context) error{
		"barrier":   w.Barrier,
		"new array": func(ctx context.Context) error { _, err := pgas.NewArray[int](ctx, team, 3, pgas.Block()); return err },
		"new matrix": func(ctx context.Context) error {
			_, err := pgas.NewMatrix[int](ctx, team, 3, 3, pgas.Grid{})
			return err
		},
		"alloc":            func(ctx context.Context) error { _, err := pgas.Alloc[int](ctx, team, 3); return err },
		"array's fence":    a.Fence,
		"array's fill":     func(ctx context.Context) error { return a.Fill(ctx, 1) },
		"array's apply":    func(ctx context.Context) error { return a.Apply(ctx, add) },
		"array's combine":  func(ctx context.Context) error { return a.Combine(ctx, a, b, add) },
		"array's copy":     func(ctx context.Context) error { return a.CopyFrom(ctx, b) },
		"array's resize":   func(ctx context.Context) error { return a.Resize(ctx, 200_000, pgas.Block()) },
		"array's sum":      func(ctx context.Context) error { _, err := pgas.Reduce(ctx, a, pgsync.Sum); return err },
		"matrix's fence":   m.Fence,
		"ghosts":           m.UpdateGhosts,
		"matrix's fill":    func(ctx context.Context) error { return m.Fill(ctx, 1) },
		"matrix's apply":   func(ctx context.Context) error { return m.Apply(ctx, func(i, _, _ int) int { return i }) },
		"matrix's combine": func(ctx context.Context) error { return m.Combine(ctx, m, o, add) },
		"matrix's copy":    func(ctx context.Context) error { return m.CopyFrom(ctx, o) },
		"transpose":        func(ctx context.Context) error { return m.Transpose(ctx, x) },
		"matrix's resize":  func(ctx context.Context) error { return m.Resize(ctx, rows, cols, pgas.Grid{}) },
		"matrix's sum":     func(ctx context.Context) error { _, err := pgas.Reduce(ctx, m, pgsync.Sum); return err },
		"window's fence":   win.Fence,
	} {
		require.ErrorIs(t, call(ended), cause, name)
		require.NoError(t, call(ctx), name)
	}
	for name, c := range map[string]struct{ open, shut func() error }{
		"lock":     {func() error { return win.Lock(ended, 0, window.LockExclusive) }, func() error { return win.Unlock(0) }},
		"lock all": {func() error { return win.LockAll(ended) }, win.UnlockAll},
		"start":    {func() error { return win.Start(ended, []int{0}) }, win.Complete},
	} {
		require.ErrorIs(t, c.open(), cause, name)
		require.ErrorIs(t, c.shut(), window.ErrEpoch, name)
	}
	for name, call := range map[string]func(ctx context.Context) error{
		"fill":    func(ctx context.Context) error { return m.Fill(ctx, 1) },
		"combine": func(ctx context.Context) error { return m.Combine(ctx, m, o, add) },
		"copy":    func(ctx context.Context) error { return m.CopyFrom(ctx, o) },
		"turned":  func(ctx context.Context) error { return m.Transpose(ctx, x) },
		"sum":     func(ctx context.Context) error { _, err := pgas.Reduce(ctx, m, pgsync.Sum); return err },
	} {
		require.Greater(t, ends(t, ctx, name, call), 4, "%s looks at fences alone", name)
	}
	require.NoError(t, errors.Join(a.Free(ended), m.Free(ended), p.Free(ended), win.Free(ended)))
	require.NoError(t, w.Close(ctx))
}
