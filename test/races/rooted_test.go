package races_test

import (
	"context"
	"errors"
	"testing"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
)

// put is a put that is done at rank 2.
func (r *rig) put() error {
	return seq(func() error { return r.win.Put(2, 3, one) }, func() error { return r.win.Flush(2) })
}

func (r *rig) broadcast(root int) error { return pgsync.Broadcast(r.ctx, r.Team(), []int{0}, root) }

func (r *rig) reduce(root int) error {
	return pgsync.Reduce(r.ctx, r.Team(), []int{0}, []int{0}, pgsync.Sum, root)
}

// rooted are programs with short collectives to or from rank 0: it waits for nobody in the one, and nobody for it in the other.
var rooted = []program{
	{"a broadcast behind its root", func(r *rig) error {
		return seq(func() error { return r.is(0, r.put) }, func() error { return r.broadcast(0) }, func() error { return r.is(1, r.put) })
	}, nil},
	{"a broadcast behind another rank", func(r *rig) error {
		return seq(
			func() error {
				return r.is(1, func() error {
					return errors.Join(r.win.Put(2, 3, one), r.win.Flush(2)) // mark: cast a
				})
			},
			func() error { return r.broadcast(0) },
			func() error {
				return r.is(0, func() error {
					return errors.Join(r.win.Put(2, 3, one), r.win.Flush(2)) // mark: cast b
				})
			})
	}, pair("cast a", "cast b")},
	{"a reduction before its root", func(r *rig) error {
		return seq(func() error { return r.is(1, r.put) }, func() error { return r.reduce(0) }, func() error { return r.is(0, r.put) })
	}, nil},
	{"a reduction before another rank", func(r *rig) error {
		return seq(
			func() error {
				return r.is(0, func() error {
					return errors.Join(r.win.Put(2, 3, one), r.win.Flush(2)) // mark: reduce a
				})
			},
			func() error { return r.reduce(0) },
			func() error {
				return r.is(1, func() error {
					return errors.Join(r.win.Put(2, 3, one), r.win.Flush(2)) // mark: reduce b
				})
			})
	}, pair("reduce a", "reduce b")},
	{"a barrier behind them", func(r *rig) error {
		return seq(func() error { return r.is(1, r.put) }, func() error { return r.broadcast(0) }, func() error { return r.Barrier(r.ctx) },
			func() error { return r.is(0, r.put) }, func() error { return r.reduce(2) }, func() error { return r.Barrier(r.ctx) }, func() error { return r.is(1, r.put) })
	}, nil},
}

// TestRooted: they order what they wait for, and no more, where members are alike.
func TestRooted(t *testing.T) {
	for _, path := range pgastest.Paths() {
		if path.Name != "mapped" && path.Name != "nic-good" {
			continue
		}
		for _, p := range rooted {
			if detector && p.races != nil {
				continue // which Go's sees as well
			}
			t.Run(path.Name+"/"+p.name, func(t *testing.T) {
				judge(t, p.races, underCheck(t, path.Config, func(ctx context.Context, w *pgas.World) error { return play(ctx, w, p) }))
			})
		}
	}
}
