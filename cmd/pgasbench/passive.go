package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	pgsync "gopgas/sync"
	"gopgas/window"
)

// passiveRows are operations on a rank whose program computes all the while and makes no call: what there is to be served is
// served by what the library has running beside it. They are no means: each repeat gives one quantile of its operations.
func passiveRows() []row {
	ops := []struct {
		name, api string
		do        func(ctx context.Context, win *window.Window[int64], target int) error
	}{
		{"accumulate", "window.Accumulate(Sum) + Flush", func(_ context.Context, win *window.Window[int64], target int) error {
			return errors.Join(window.Accumulate(win, target, passiveCount, []int64{1}, pgsync.Sum), win.Flush(target))
		}},
		{"fetch_add", "window.FetchAdd", func(_ context.Context, win *window.Window[int64], target int) error {
			_, err := window.FetchAdd(win, target, passiveCount, 1)
			return err
		}},
		{"lock", "Window.Lock + Unlock", func(ctx context.Context, win *window.Window[int64], target int) error {
			return errors.Join(win.Lock(ctx, target, window.LockExclusive), win.Unlock(target))
		}},
		{"locked", "Window.Lock + Accumulate + Unlock", func(ctx context.Context, win *window.Window[int64], target int) error {
			if err := win.Lock(ctx, target, window.LockExclusive); err != nil {
				return err
			}
			return errors.Join(window.Accumulate(win, target, passiveCount, []int64{1}, pgsync.Sum), win.Unlock(target))
		}},
	}
	var rows []row
	for _, op := range ops {
		for _, q := range []struct {
			name string
			of   float64
		}{{"median", 0.5}, {"p99", 0.99}} {
			rows = append(rows, row{
				name: "passive_" + op.name + "_" + q.name, title: op.name + " on a rank that computes, " + q.name + " of each repeat",
				api: op.api, unit: unitNanos, two: true, measure: measurePassive(op.name != "lock", op.do, q.of),
			})
		}
	}
	return rows
}

// The words of the target's part, on lines of their own.
const (
	passiveCount = 0
	passiveStop  = 16
	passiveWords = 32
)

// passiveOps is how many operations a repeat has, but in tests.
const passiveOps = 1000

// measurePassive times operations, of which each adds one to the target's count if adds is set.
func measurePassive(adds bool, do func(context.Context, *window.Window[int64], int) error, quantile float64) func(context.Context, *bench, *row) (int, []float64, error) {
	return func(ctx context.Context, b *bench, _ *row) (int, []float64, error) {
		win, err := window.AllocateConfig[int64](ctx, b.w.Team(), passiveWords, window.Config{Epochs: true})
		if err != nil {
			return 0, nil, err
		}
		if err := b.w.Barrier(ctx); err != nil {
			return 0, nil, err
		}
		var values []float64
		switch b.w.Rank() {
		case 0:
			values, err = timePassive(ctx, b, win, do, quantile)
			// The target computes until it is told, whatever has happened.
			_, stopErr := window.Swap(win, b.peer, passiveStop, 1)
			err = errors.Join(err, stopErr)
		case b.peer:
			compute(&win.Local()[passiveStop], func() bool { return ctx.Err() != nil || len(b.w.Failed()) > 0 })
		}
		if err := b.agree(ctx, err); err != nil {
			return 0, nil, err
		}
		var wrong error
		want := int64(0)
		if adds {
			want = int64(b.set.passive * (b.set.reps + 1))
		}
		if n := win.Local()[passiveCount]; b.w.Rank() == b.peer && n != want {
			wrong = fmt.Errorf("wrong result: %d operations arrived, want %d", n, want)
		}
		if err := b.agree(ctx, wrong); err != nil {
			return 0, nil, err
		}
		return b.set.passive, values, win.Free(ctx)
	}
}

// timePassive times each operation by itself; the first repeat only warms up.
func timePassive(ctx context.Context, b *bench, win *window.Window[int64], do func(context.Context, *window.Window[int64], int) error, quantile float64) ([]float64, error) {
	var values []float64
	times := make([]time.Duration, b.set.passive)
	for rep := range b.set.reps + 1 {
		for i := range times {
			began := time.Now()
			if err := do(ctx, win, b.peer); err != nil {
				return nil, err
			}
			times[i] = time.Since(began)
		}
		slices.Sort(times)
		if rep > 0 {
			values = append(values, float64(times[int(quantile*float64(len(times)))]))
		}
	}
	return values, nil
}

// compute does arithmetic in registers until stop is set, or nobody will set it.
func compute(stop *int64, vain func() bool) uint64 {
	x := uint64(1)
	for atomic.LoadInt64(stop) == 0 && !vain() {
		for range 10_000 {
			x = x*6364136223846793005 + 1442695040888963407
			x ^= x >> 29
		}
	}
	return x
}
