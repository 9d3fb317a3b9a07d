package pgas_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/grid"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// TestNoElementsOfWhatWasFreed: a call that is about no element moves nothing, and is refused as others are when what it is about was freed.
func TestNoElementsOfWhatWasFreed(t *testing.T) {
	pgastest.Each(t, []int{1, 3}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		a, aerr := pgas.NewArray[int64](ctx, w.Team(), 40, pgas.Block())
		c, cerr := pgas.NewArray[int64](ctx, w.Team(), 40, pgas.Cyclic())
		m, merr := pgas.NewMatrix[int64](ctx, w.Team(), 4, 6, pgas.Grid{})
		g, gerr := grid.New[int64](ctx, w.Team(), []int{4, 6}, grid.Config{})
		if err := errors.Join(aerr, cerr, merr, gerr); err != nil {
			return err
		}
		second := func(_ any, err error) error { return err }
		calls := map[string]func() error{
			"matrix get":         func() error { return m.Get(pgas.Area{}, nil) },
			"matrix put":         func() error { return m.Put(pgas.Area{Rows: 2}, nil) },
			"matrix get nb":      func() error { return second(m.GetNB(pgas.Area{}, nil)) },
			"matrix put nb":      func() error { return second(m.PutNB(pgas.Area{}, nil)) },
			"matrix gather":      func() error { return m.Gather(nil, nil) },
			"matrix scatter":     func() error { return m.Scatter(nil, nil) },
			"matrix accumulate":  func() error { return pgas.AccumulateArea(m, pgas.Area{}, nil, pgsync.Sum) },
			"matrix around":      func() error { return m.GetPeriodic(pgas.Area{}, nil) },
			"matrix put around":  func() error { return m.PutPeriodic(pgas.Area{}, nil) },
			"matrix add around":  func() error { return pgas.AccumulatePeriodic(m, pgas.Area{}, nil, pgsync.Sum) },
			"window sections":    func() error { return a.Window().PutSections(nil, nil) },
			"window get":         func() error { return a.Window().GetSections(nil, nil) },
			"window sections nb": func() error { return second(a.Window().PutSectionsNB(nil, nil)) },
			"window get nb":      func() error { return second(a.Window().GetSectionsNB(nil, nil)) },
			"window gather":      func() error { return a.Window().Gather(nil, nil) },
			"window scatter":     func() error { return a.Window().Scatter(nil, nil) },
			"window accumulate":  func() error { return window.ScatterAccumulate(a.Window(), nil, nil, pgsync.Sum) },
			"window both":        func() error { return window.GatherAccumulate(a.Window(), nil, nil, nil, pgsync.Max) },
			"grid get":           func() error { return g.Get(grid.Box{Lo: []int{0, 0}, Hi: []int{0, 3}}, nil) },
			"grid put":           func() error { return g.Put(grid.Box{Lo: []int{0, 0}, Hi: []int{0, 3}}, nil) },
			"grid get nb":        func() error { return second(g.GetNB(grid.Box{Lo: []int{0, 0}, Hi: []int{0, 3}}, nil)) },
			"grid accumulate":    func() error { return grid.Accumulate(g, grid.Box{Lo: []int{0, 0}, Hi: []int{0, 3}}, nil, pgsync.Sum) },
			"grid gather":        func() error { return g.Gather(nil, nil) },
		}
		for layout, a := range map[string]*pgas.Array[int64]{"block ": a, "cyclic ": c} {
			calls[layout+"get"] = func() error { return a.Get(40, nil) }
			calls[layout+"put"] = func() error { return a.Put(0, nil) }
			calls[layout+"get nb"] = func() error { return second(a.GetNB(0, nil)) }
			calls[layout+"put nb"] = func() error { return second(a.PutNB(0, nil)) }
			calls[layout+"gather"] = func() error { return a.Gather(nil, nil) }
			calls[layout+"scatter"] = func() error { return a.Scatter(nil, nil) }
			calls[layout+"get strided"] = func() error { return a.GetStrided(3, 2, nil) }
			calls[layout+"put strided"] = func() error { return a.PutStrided(3, 0, nil) }
			calls[layout+"accumulate"] = func() error { return pgas.Accumulate(a, 7, nil, pgsync.Sum) }
			calls[layout+"scatter accumulate"] = func() error { return pgas.ScatterAccumulate(a, nil, nil, pgsync.Sum) }
			calls[layout+"gather accumulate"] = func() error { return pgas.GatherAccumulate(a, nil, nil, nil, pgsync.Sum) }
			calls[layout+"all"] = func() (err error) {
				for _, err = range a.All(ctx, 5, 5) { // there is none, but perhaps an error
				}
				return err
			}
		}
		for name, call := range calls {
			require.NoError(t, call(), name)
		}
		if err := errors.Join(a.Free(ctx), c.Free(ctx), m.Free(ctx), g.Free(ctx)); err != nil {
			return err
		}
		for name, call := range calls {
			require.ErrorIs(t, call(), pgas.ErrClosed, name)
		}
		return nil
	})
}
