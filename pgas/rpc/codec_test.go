package rpc_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/pgas/rpc"
	pgsync "gopgas/sync"
)

// TestNilPointers: where an argument or a result is a pointer, nil comes as nil, and what points to a zero as that.
func TestNilPointers(t *testing.T) {
	pgastest.Each(t, []int{1, 2}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		s := rpc.New(w.Team())
		find := rpc.Handle(s, "find", func(_ context.Context, _ int, n *note) (*int, error) {
			switch {
			case n == nil:
				return nil, nil // there is none
			case n.Title == "":
				return new(int), nil
			}
			v := len(n.Title)
			return &v, nil
		})
		if err := s.Start(ctx); err != nil {
			return err
		}
		for m := range w.Size() {
			v, err := find.Call(ctx, m, nil)
			require.NoError(t, err)
			require.Nil(t, v)
			for _, title := range []string{"", "gopher"} {
				v, err = find.Call(ctx, m, &note{Title: title})
				require.NoError(t, err)
				require.NotNil(t, v)
				require.Equal(t, len(title), *v)
			}
		}
		return s.Close(ctx)
	})
}

// TestWaitOfSeveral: whoever waits for a call has its result, for himself where that has pointers.
func TestWaitOfSeveral(t *testing.T) {
	pgastest.EachReal(t, []int{2}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		s := rpc.New(w.Team())
		index := rpc.Handle(s, "index", func(_ context.Context, from int, n note) (note, error) {
			n.Marks = map[string]int{"from": from}
			return n, nil
		})
		if err := s.Start(ctx); err != nil {
			return err
		}
		p, err := index.CallNB(ctx, 1-w.Rank(), note{Title: "a"})
		if err != nil {
			return err
		}
		want := note{Title: "a", Marks: map[string]int{"from": w.Rank()}}
		errs := make([]error, 4)
		var g sync.WaitGroup
		for i := range errs {
			g.Go(func() {
				var n note
				if n, errs[i] = p.Wait(ctx); errs[i] == nil && n.Marks["from"] == w.Rank() {
					n.Marks["seen"] = i
				}
			})
		}
		g.Wait()
		n, err := p.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, want, n)
		return errors.Join(append(errs, s.Close(ctx))...)
	})
}

// TestTypesThatDiffer: a function of the same name that takes or returns another type is another function, also where that is as long.
func TestTypesThatDiffer(t *testing.T) {
	pgastest.Each(t, []int{2}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		s := rpc.New(w.Team())
		if w.Rank() == 0 {
			rpc.Handle(s, "a", func(context.Context, int, int64) (int64, error) { return 0, nil })
		} else {
			rpc.Handle(s, "a", func(context.Context, int, float64) (int64, error) { return 0, nil })
		}
		require.ErrorIs(t, s.Start(ctx), pgsync.ErrMismatch)
		s = rpc.New(w.Team())
		names := []string{"a", "b"}
		if w.Rank() == 0 {
			names = []string{"a, b"}
		}
		for _, name := range names {
			rpc.Handle(s, name, func(context.Context, int, int64) (int64, error) { return 0, nil })
		}
		require.ErrorIs(t, s.Start(ctx), pgsync.ErrMismatch)
		return nil
	})
}
