package pgas_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/algo"
	"gopgas/pgas/grid"
	"gopgas/pgas/hashmap"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// mortal is a context that ends when it has been asked so often whether it has.
type mortal struct {
	context.Context
	left atomic.Int64
}

func endsAfter(asks int) *mortal {
	m := &mortal{Context: context.Background()}
	m.left.Store(int64(asks))
	return m
}

// Err implements context.Context.
func (m *mortal) Err() error {
	if m.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// spread are the objects that calls made of several parts are tried on.
type spread struct {
	a, x *pgas.Array[int64]
	m, y *pgas.Matrix[int64]
	g, h *grid.Array[int64]
	keys *hashmap.Map[int64]
}

const (
	leftElems = 300
	leftRows  = 20
	leftCols  = 30
)

func newSpread(ctx context.Context, t *pgas.Team) (s spread, err error) {
	var errs [7]error
	s.a, errs[0] = pgas.NewArray[int64](ctx, t, leftElems, pgas.Block())
	s.x, errs[1] = pgas.NewArray[int64](ctx, t, leftElems, pgas.Cyclic())
	s.m, errs[2] = pgas.NewMatrix[int64](ctx, t, leftRows, leftCols, pgas.Grid{Rows: t.Size(), Ghost: 1})
	s.y, errs[3] = pgas.NewMatrix[int64](ctx, t, leftCols, leftRows, pgas.Grid{Cols: t.Size()})
	s.g, errs[4] = grid.New[int64](ctx, t, []int{leftRows, leftCols}, grid.Config{Ghost: []int{1, 1}})
	s.h, errs[5] = grid.New[int64](ctx, t, []int{leftRows, leftCols}, grid.Config{})
	s.keys, errs[6] = hashmap.New[int64](ctx, t, 1)
	if err = errors.Join(errs[:]...); err != nil {
		return s, err
	}
	return s, errors.Join(s.x.Fill(ctx, 7), s.y.Fill(ctx, 7), s.h.Fill(ctx, 7), s.a.Apply(ctx, func(i int, _ int64) int64 { return int64(-i) }))
}

// inParts are such calls; whole, where there is one, looks whether a call has done all of it, by what this rank sees of everybody's elements.
var inParts = map[string]struct {
	call  func(ctx context.Context, s spread) error
	whole func(s spread) (bool, error)
}{
	"fill": {func(ctx context.Context, s spread) error { return s.a.Fill(ctx, 7) }, sevens},
	"combine": {func(ctx context.Context, s spread) error {
		return s.a.Combine(ctx, s.x, s.x, func(x, _ int64) int64 { return x })
	}, sevens},
	"copy": {func(ctx context.Context, s spread) error { return s.a.CopyFrom(ctx, s.x) }, sevens},
	"matrix fill": {func(ctx context.Context, s spread) error { return s.m.Fill(ctx, 7) }, func(s spread) (bool, error) {
		return only7(s.m.Rows()*s.m.Cols(), func(dst []int64) error { return s.m.Get(pgas.Area{Rows: leftRows, Cols: leftCols}, dst) })
	}},
	"transpose": {func(ctx context.Context, s spread) error { return s.m.Transpose(ctx, s.y) }, func(s spread) (bool, error) {
		return only7(s.m.Rows()*s.m.Cols(), func(dst []int64) error { return s.m.Get(pgas.Area{Rows: leftRows, Cols: leftCols}, dst) })
	}},
	"sort": {func(ctx context.Context, s spread) error { return algo.Sort(ctx, s.a) }, func(s spread) (bool, error) {
		for i := range s.a.Len() {
			if v, err := s.a.At(i); err != nil || v != int64(i+1-leftElems) {
				return false, err
			}
		}
		return true, nil
	}},
	"grid fill":   {func(ctx context.Context, s spread) error { return s.g.Fill(ctx, 7) }, gridSevens},
	"grid copy":   {func(ctx context.Context, s spread) error { return s.g.CopyFrom(ctx, s.h) }, gridSevens},
	"grid ghosts": {func(ctx context.Context, s spread) error { return s.g.UpdateGhosts(ctx) }, nil},
	"map merge": {func(ctx context.Context, s spread) error {
		keys, values := make([]uint64, 40), make([]int64, 40)
		for i := range keys {
			keys[i], values[i] = uint64(i), 1
		}
		return s.keys.Merge(ctx, keys, values)
	}, func(s spread) (bool, error) {
		v, ok, err := s.keys.Load(39)
		return ok && v == int64(s.keys.Team().Size()), err
	}},
	"map grow": {func(ctx context.Context, s spread) error { return s.keys.Grow(ctx, 1000) }, nil},
	"map len":  {func(ctx context.Context, s spread) error { _, err := s.keys.Len(ctx); return err }, nil},
	"map new": {func(ctx context.Context, s spread) error {
		_, err := hashmap.New[int64](ctx, s.a.Team(), 7)
		return err
	}, nil},
	"window": {func(ctx context.Context, s spread) error {
		_, err := window.Allocate[int64](ctx, s.a.Team(), 7)
		return err
	}, nil},
	"ghosts": {func(ctx context.Context, s spread) error { return s.m.UpdateGhosts(ctx) }, nil},
	"reduce": {func(ctx context.Context, s spread) error {
		sum, err := pgas.Reduce(ctx, s.x, pgsync.Sum)
		if err == nil && sum != 7*leftElems {
			err = fmt.Errorf("a sum of %d", sum)
		}
		return err
	}, nil},
	"resize": {func(ctx context.Context, s spread) error { return s.x.Resize(ctx, leftElems/2, pgas.Block()) }, func(s spread) (bool, error) {
		return s.x.Len() == leftElems/2, nil
	}},
	"matrix resize": {func(ctx context.Context, s spread) error { return s.y.Resize(ctx, leftRows, leftCols, pgas.Grid{}) }, func(s spread) (bool, error) {
		return s.y.Rows() == leftRows, nil
	}},
}

func gridSevens(s spread) (bool, error) {
	return only7(leftRows*leftCols, func(dst []int64) error { return s.g.Get(s.g.Whole(), dst) })
}

func sevens(s spread) (bool, error) {
	return only7(leftElems, func(dst []int64) error { return s.a.Get(0, dst) })
}

func only7(n int, get func(dst []int64) error) (bool, error) {
	got := make([]int64, n)
	if err := get(got); err != nil {
		return false, err
	}
	for _, v := range got {
		if v != 7 {
			return false, nil
		}
	}
	return true, nil
}

// TestCallOfPartsThatIsLeft: the context of a call that is made of several collective parts ends on one member, wherever that may be. Either the others get an error,
// too, whatever this member does next, or what is left is the end of the call: then this member's next collective call brings it to that, and all of it is done.
func TestCallOfPartsThatIsLeft(t *testing.T) {
	for _, c := range []pgastest.Config{{TimeLimit: 20 * time.Second}, {NIC: true, TimeLimit: 20 * time.Second}} {
		for name, in := range inParts {
			t.Run(fmt.Sprintf("%s/%v", name, c.NIC), func(t *testing.T) {
				left := 0
				step, most := 3, 200
				if c.NIC || testing.Short() {
					step = 1 // it takes longer to make such worlds
				}
				if testing.Short() {
					most = 20
				}
				for asks := 0; asks < most; asks += 1 + asks/step {
					pgastest.RunConfig(t, 3, c, func(ctx context.Context, w *pgas.World) error {
						team, err := w.Team().Split(ctx, 0, 0)
						if err != nil {
							return err
						}
						s, err := newSpread(ctx, team)
						if err != nil {
							return err
						}
						if err := w.Barrier(ctx); err != nil {
							return err
						}
						if w.Rank() == 1 {
							if err := in.call(endsAfter(asks), s); err != nil {
								require.ErrorIs(t, err, context.Canceled)
								left++
							}
						} else if err := in.call(ctx, s); err != nil && !strings.Contains(err.Error(), "could not move their keys") { // of that all are told within the call
							require.ErrorIs(t, err, pgsync.ErrAbandoned)
							require.ErrorContains(t, err, "rank 1 left")
							return w.Barrier(ctx)
						}
						// This member has been told that all is well, or leaves the others to find out.
						if err := team.Barrier(ctx); errors.Is(err, pgsync.ErrAbandoned) {
							return w.Barrier(ctx)
						} else if err != nil {
							return err
						}
						whole := true
						if in.whole != nil {
							whole, err = in.whole(s)
						}
						require.True(t, whole, "what was left after %d asks is half done", asks)
						return errors.Join(err, w.Barrier(ctx))
					})
				}
				require.Positive(t, left)
			})
		}
	}
}
