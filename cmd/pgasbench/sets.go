package main

import (
	"context"
	"fmt"

	"gopgas/cmd/pgasbench/figures"
	"gopgas/window"
)

// The working-set sweep: puts of setPut bytes, setStride apart, round and round in a part of a window.
const (
	setPut    = 4 << 10
	setStride = 64 << 10
)

// setRows are rows of working sets that double, up to a whole window of span bytes. Where PGAS_MAX_PINNED is less than the window,
// its memory is registered as it is needed.
func setRows(op string, span int, fine bool) ([]row, error) {
	if op != opPut && op != opGet {
		return nil, fmt.Errorf("--op %q: want put or get", op)
	}
	var rows []row
	for _, set := range figures.Sizes(1<<20, span, fine) {
		rows = append(rows, row{
			name: "set_" + op + "_" + sizeName(set), unit: unitNanos, bytes: set, two: true,
			title: fmt.Sprintf("%s %s, round a working set of %s", op, sizeName(setPut), sizeName(set)),
			api:   "Window." + blockOps[op] + ", Flush each",
			measure: func(ctx context.Context, b *bench, r *row) (int, []float64, error) {
				return measureSet(ctx, b, r, op, set)
			},
		})
	}
	return rows, nil
}

// measureSet measures operations on one working set.
func measureSet(ctx context.Context, b *bench, r *row, op string, set int) (int, []float64, error) {
	win, err := window.Allocate[byte](ctx, b.w.Team(), b.set.bytes)
	if err != nil {
		return 0, nil, err
	}
	fillPattern(win.Local(), 2) // touches every page
	if err := win.Fence(ctx); err != nil {
		return 0, nil, err
	}
	priv := make([]byte, setPut)
	fillPattern(priv, 1)
	do := win.Put
	if op == opGet {
		do = win.Get
	}
	step := set / setStride
	n, values, err := b.alone(ctx, r, step, setPut, func(n int) error {
		for i := range n {
			if err := do(b.peer, i%step*setStride, priv); err != nil {
				return err
			}
			if err := win.Flush(b.peer); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, nil, err
	}
	if err := b.agree(ctx, checkSet(b, win.Local(), priv, op, step, setStride)); err != nil {
		return 0, nil, err
	}
	return n, values, win.Free(ctx)
}

// checkSet checks what was put at the target, or what the last get brought.
func checkSet(b *bench, local, priv []byte, op string, step, stride int) error {
	switch {
	case op == opPut && b.w.Rank() == b.peer:
		for i := range step {
			if err := checkPattern(local[i*stride:][:setPut], 1); err != nil {
				return fmt.Errorf("block %d: %w", i, err)
			}
		}
	case op == opGet && b.w.Rank() == 0:
		from := (step - 1) * stride
		for i, v := range priv {
			if v != pattern(from+i, 2) {
				return fmt.Errorf("wrong result: byte %d of the last block is %d, want %d", i, v, pattern(from+i, 2))
			}
		}
	}
	return nil
}
