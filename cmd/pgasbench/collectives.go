package main

import (
	"context"
	"fmt"

	"gopgas/cmd/pgasbench/figures"
	pgsync "gopgas/sync"
	"gopgas/sync/coll"
)

// collectiveMost is the largest payload of the rows of collectives, as in the paper on frequent buffers.
const collectiveMost = 8 << 10

// collectiveRows are broadcast and scatter from buffers that are used again and again, each followed by a barrier. With
// PGAS_LOCAL=off and PGAS_EAGER one run stands for one way of small transfers; merge sets runs side by side.
func collectiveRows(fine bool) (rows []row) {
	for _, n := range figures.Sizes(128, collectiveMost, fine) {
		rows = append(rows, row{
			name: "broadcast_" + sizeName(n), title: "broadcast " + sizeName(n) + ", barrier", api: "pgsync.Broadcast", unit: unitNanos, bytes: n,
			measure: func(ctx context.Context, b *bench, r *row) (int, []float64, error) {
				return measureBroadcast(ctx, b, r, n)
			},
		})
	}
	for _, n := range figures.Sizes(128, collectiveMost, fine) {
		rows = append(rows, row{
			name: "scatter_" + sizeName(n), title: "scatter " + sizeName(n) + " to each, barrier", api: "coll.Scatter", unit: unitNanos, bytes: n,
			measure: func(ctx context.Context, b *bench, r *row) (int, []float64, error) {
				return measureScatter(ctx, b, r, n)
			},
		})
	}
	return rows
}

func measureBroadcast(ctx context.Context, b *bench, r *row, bytes int) (int, []float64, error) {
	buf := make([]byte, bytes)
	if b.w.Rank() == 0 {
		fillPattern(buf, 1)
	}
	call := func() error { return pgsync.Broadcast(ctx, b.w.Team(), buf, 0) }
	return b.collective(ctx, r, b.set.collectives, b.met(ctx, call), func() error { return checkPattern(buf, 1) })
}

func measureScatter(ctx context.Context, b *bench, r *row, bytes int) (int, []float64, error) {
	dst := make([]byte, bytes)
	var src []byte
	if b.w.Rank() == 0 {
		src = make([]byte, bytes*b.w.Size())
		fillPattern(src, 2)
	}
	call := func() error { return coll.Scatter(ctx, b.w.Team(), dst, src, 0) }
	return b.collective(ctx, r, b.set.collectives, b.met(ctx, call), func() error { return checkScattered(dst, b.w.Rank()*bytes) })
}

// met is call with a barrier behind it.
func (b *bench) met(ctx context.Context, call func() error) func(round int) error {
	return func(int) error {
		if err := call(); err != nil {
			return err
		}
		return b.w.Barrier(ctx)
	}
}

// collective times calls of all ranks, so many a repeat, and checks what they have brought.
func (b *bench) collective(ctx context.Context, r *row, rounds int, call func(round int) error, check func() error) (int, []float64, error) {
	if err := b.settleTogether(ctx, r.bytes, call); err != nil {
		return 0, nil, err
	}
	n, values, err := b.together(ctx, r.unit, rounds, func() error {
		for i := range rounds {
			if err := call(i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, nil, err
	}
	return n, values, b.agree(ctx, check())
}

// checkScattered checks a rank's part of what rank 0 scattered.
func checkScattered(dst []byte, from int) error {
	for i, v := range dst {
		if v != pattern(from+i, 2) {
			return fmt.Errorf("wrong result: byte %d of the scattered part is %d, want %d", i, v, pattern(from+i, 2))
		}
	}
	return nil
}
