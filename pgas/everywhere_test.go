package pgas_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// surface uses every kind of operation once and checks what comes of it; it returns the first that is wrong.
func surface(ctx context.Context, w *pgas.World) error {
	for _, f := range []func(context.Context, *pgas.World) error{useSections, useEpochs, useDynamic, useArrays, useMatrices} {
		if err := f(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// same returns an error unless the elements are those wanted.
func same[T comparable](what string, have []T, want ...T) error {
	for i, v := range want {
		if i >= len(have) || have[i] != v {
			return fmt.Errorf("%s: found %v, wanted %v", what, have, want)
		}
	}
	return nil
}

func useSections(ctx context.Context, w *pgas.World) error {
	win, err := window.Allocate[int64](ctx, w.Team(), 40)
	if err != nil {
		return err
	}
	next, prev := (w.Rank()+1)%w.Size(), int64((w.Rank()+w.Size()-1)%w.Size())
	me := int64(w.Rank())
	old := make([]int64, 2)
	err = errors.Join(
		win.PutSection(next, 0, []int64{me, 1, 2, 3}, window.Packed(2, 2, 10)),
		win.PutIndexed(next, []int{25, 23}, []int64{me, 5}),
		win.PutStrided(next, 30, 3, []int64{me, 0, 7}, 2, 2), win.Fence(ctx),
		same("section", win.Local()[:12], prev, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 3),
		same("indexed", win.Local()[23:26], 5, 0, prev),
		same("strided", win.Local()[30:34], prev, 0, 0, 7), win.Fence(ctx),
		window.GetAccumulate(win, next, 0, []int64{10, 20}, old, pgsync.Sum),
		same("get-accumulate", old, me, 1), win.Fence(ctx),
		same("accumulated", win.Local()[:2], prev+10, 21))
	if err != nil {
		return err
	}
	got := make([]int64, w.Size())
	if err := win.Gather(got, func(i int) (int, int) { return i, 0 }); err != nil {
		return err
	}
	for m, v := range got {
		if v != int64((m+w.Size()-1)%w.Size()+10) {
			return fmt.Errorf("gather: %v", got)
		}
	}
	return win.Free(ctx)
}

func useEpochs(ctx context.Context, w *pgas.World) error {
	win, err := window.AllocateConfig[int32](ctx, w.Team(), 4, window.Config{StrictEpochs: true})
	if err != nil {
		return err
	}
	next, prev := (w.Rank()+1)%w.Size(), (w.Rank()+w.Size()-1)%w.Size()
	for round := range int32(3) {
		err := errors.Join(win.Post([]int{prev}), win.Start(ctx, []int{next}), win.Put(next, 0, []int32{round}), win.Complete(), win.Wait(ctx),
			same("post, start, complete, wait", win.Local(), round))
		if err != nil {
			return err
		}
		if err := win.Lock(ctx, 0, window.LockExclusive); err != nil {
			return err
		}
		v := make([]int32, 1)
		if err := win.Get(0, 3, v); err != nil {
			return err
		}
		v[0]++
		if err := errors.Join(win.Put(0, 3, v), win.Unlock(0), win.LockAll(ctx), win.UnlockAll()); err != nil {
			return err
		}
	}
	if err := win.FenceEnd(ctx); err != nil {
		return err
	}
	if w.Rank() == 0 {
		if err := same("lock", win.Local()[3:], int32(3*w.Size())); err != nil {
			return err
		}
	}
	return win.Free(ctx)
}

func useDynamic(ctx context.Context, w *pgas.World) error {
	d, err := window.NewDynamic[int64](ctx, w.Team())
	if err != nil {
		return err
	}
	refs, err := window.Allocate[window.Ref](ctx, w.Team(), 1)
	if err != nil {
		return err
	}
	ref, err := d.Alloc(5 + w.Rank())
	if err != nil {
		return err
	}
	next := (w.Rank() + 1) % w.Size()
	if err := errors.Join(refs.Put(next, 0, []window.Ref{ref}), refs.Fence(ctx)); err != nil {
		return err
	}
	theirs := refs.Local()[0]
	win, err := d.Reach(theirs)
	if err != nil {
		return err
	}
	_, err = window.FetchAdd(win, theirs.Member, theirs.Len-1, 9)
	err = errors.Join(err, win.Fence(ctx), win.Free(ctx), same("dynamic", d.Local(ref)[ref.Len-1:], 9))
	return errors.Join(err, refs.Free(ctx), d.Free(ctx))
}

func useArrays(ctx context.Context, w *pgas.World) error {
	const n = 50
	a, err := pgas.NewArray[int32](ctx, w.Team(), n, pgas.BlockCyclic(4))
	if err != nil {
		return err
	}
	b, err := pgas.NewArray[int32](ctx, w.Team(), n, pgas.Block())
	if err != nil {
		return err
	}
	got := make([]int32, 3)
	err = errors.Join(
		a.Apply(ctx, func(i int, _ int32) int32 { return int32(i) }), b.CopyFrom(ctx, a),
		b.Combine(ctx, b, a, func(x, y int32) int32 { return x + 10*y }), b.Gather(got, []int{49, 0, 17}),
		same("gathered", got, 539, 0, 187), b.Resize(ctx, 20, pgas.Cyclic()), b.GetStrided(19, -6, got), same("resized", got, 209, 143, 77))
	if err != nil {
		return err
	}
	sum, err := pgas.Reduce(ctx, a, pgsync.Sum)
	if err != nil || sum != n*(n-1)/2 {
		return fmt.Errorf("sum %d: %w", sum, err)
	}
	return errors.Join(a.Free(ctx), b.Free(ctx))
}

func useMatrices(ctx context.Context, w *pgas.World) error {
	const rows, cols = 6, 9
	m, err := pgas.NewMatrix[int32](ctx, w.Team(), rows, cols, pgas.Grid{Ghost: 2, PeriodicRows: true, PeriodicCols: true})
	if err != nil {
		return err
	}
	turned, err := pgas.NewMatrix[int32](ctx, w.Team(), cols, rows, pgas.Grid{})
	if err != nil {
		return err
	}
	err = errors.Join(m.Apply(ctx, func(i, j int, _ int32) int32 { return int32(100*i + j) }), m.UpdateGhosts(ctx), turned.Transpose(ctx, m))
	if err != nil {
		return err
	}
	b := m.Block(w.Rank())
	for i := -2; i < b.Rows+2 && b.Rows*b.Cols > 0; i++ {
		for j, v := range m.Row(i) {
			if want := int32(100*((b.Row+i+rows)%rows) + (b.Col+j-2+cols)%cols); v != want {
				return fmt.Errorf("row %d, column %d of a block with its frame: found %d, wanted %d", i, j, v, want)
			}
		}
	}
	got := make([]int32, 4)
	area := pgas.Area{Row: 1, Rows: 2, RowStep: 7, Col: 0, Cols: 2, ColStep: 4}
	if err := errors.Join(turned.Get(area, got), same("transposed", got, 1, 401, 8, 408)); err != nil {
		return err
	}
	at := [][2]int{{8, 5}, {0, 0}, {3, 2}}
	scattered := at
	if w.Rank() != 0 {
		scattered = nil // one rank writes
	}
	err = errors.Join(
		m.Fence(ctx), pgas.AccumulateArea(m, pgas.Area{Row: 1, Rows: 2, RowStep: 4, Cols: 2, ColStep: 8}, []int32{1, 2, 3, 4}, pgsync.Sum), m.Fence(ctx),
		m.Get(pgas.Area{Row: 1, Rows: 2, RowStep: 4, Cols: 2, ColStep: 8}, got), m.Fence(ctx),
		same("accumulated", got, int32(100+w.Size()), int32(108+2*w.Size()), int32(500+3*w.Size()), int32(508+4*w.Size())),
		turned.Combine(ctx, turned, turned, func(x, y int32) int32 { return x + y }), turned.Gather(got[:3], at), same("combined", got, 1016, 0, 406),
		turned.Fence(ctx), turned.Scatter([]int32{1, 2, 3}[:len(scattered)], scattered), turned.Resize(ctx, 4, 3, pgas.Grid{}), turned.Gather(got[:2], at[1:]),
		same("resized", got, 2, 3))
	if err != nil {
		return err
	}
	return errors.Join(m.Free(ctx), turned.Free(ctx))
}

// TestEverywhere runs the same on every transport that this machine has, and on the simulated ones.
func TestEverywhere(t *testing.T) {
	t.Run("paths", func(t *testing.T) {
		pgastest.Each(t, []int{1, 3}, func(ctx context.Context, w *pgas.World, _ *testing.T) error { return surface(ctx, w) })
	})
	for _, mapped := range []bool{false, true} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("sim,mapped=%v,seed=%d", mapped, seed), func(t *testing.T) {
				pgastest.RunSim(t, pgastest.SimConfig{Ranks: 6, RanksPerNode: 2, Mapped: mapped, Seed: seed}, surface)
			})
		}
	}
	t.Run("shm", func(t *testing.T) { pgastest.RunProcs(t, 4, surface) })
	t.Run("soft", func(t *testing.T) {
		pgastest.RunProcsConfig(t, 4, pgastest.Procs{Env: []string{"PGAS_LOCAL=off", "PGAS_TRANSPORT=soft"}}, surface)
	})
}
