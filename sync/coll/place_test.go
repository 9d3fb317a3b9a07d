package coll_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/sync/coll"
	"gopgas/window"
)

// TestInPlace: a member's part may lie in what he gathers, or scatters, where it belongs.
func TestInPlace(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		if p.Nodes != nil {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			p.TimeLimit = 30 * time.Second
			pgastest.RunConfig(t, 3, p.Config, func(ctx context.Context, w *pgas.World) error {
				const n, most = 3, 140_000
				all := make([]int32, n*most)
				if !p.NIC {
					win, err := window.Allocate[int32](ctx, w.Team(), len(all))
					if err != nil {
						return err
					}
					all = win.Local()
				}
				for round, k := range []int{10, 3000, most, most, most} {
					if err := inPlace(ctx, w.Team(), all[:n*k], k, round); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

// inPlace has each member give, or get, his part of what he gets, or gives.
func inPlace(ctx context.Context, t *pgsync.Team, all []int32, k, round int) error {
	const root = 1
	me := t.Rank()
	mine := all[me*k:][:k]
	gathered := func(i int) int32 { return value(round, i/k, 0, i) }
	scattered := func(i int) int32 { return value(round, root, 0, me*k+i) }
	counts := []int{k, k, k}
	for _, c := range []struct {
		name string
		call func() error
		got  []int32
		want func(i int) int32
	}{
		{"allgather", func() error { return pgsync.AllGather(ctx, t, all, mine) }, all, gathered},
		{"allgatherv", func() error { return coll.AllGatherV(ctx, t, all, counts, mine) }, all, gathered},
		{"gather", func() error { return coll.Gather(ctx, t, all, mine, root) }, all, gathered},
		{"gatherv", func() error { return coll.GatherV(ctx, t, all, counts, mine, root) }, all, gathered},
		{"scatter", func() error { return coll.Scatter(ctx, t, mine, all, root) }, mine, scattered},
		{"scatterv", func() error { return coll.ScatterV(ctx, t, mine, all, counts, root) }, mine, scattered},
	} {
		for i := range all {
			all[i] = value(round, me, 0, i)
		}
		if err := c.call(); err != nil {
			return err
		}
		if strings.HasPrefix(c.name, "gather") && me != root {
			continue
		}
		for i, v := range c.got {
			if v != c.want(i) {
				return fmt.Errorf("%s, round %d: element %d is %#x, not %#x", c.name, round, i, v, c.want(i))
			}
		}
	}
	return nil
}
