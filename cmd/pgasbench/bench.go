package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"gopgas/pgas"
	pgsync "gopgas/sync"
)

// bench measures rows in one world. All ranks go through the rows in the same order.
type bench struct {
	w        *pgas.World
	set      settings
	peer     int       // the target of rank 0
	progress *progress // nil on all ranks but 0
	results  []result
	skipped  []string
}

func newBench(w *pgas.World, s settings, progress io.Writer) *bench {
	b := &bench{w: w, set: s, peer: min(1, w.Size()-1)}
	if began := w.Elapsed(); w.Rank() == 0 {
		b.progress = newProgress(progress, func() time.Duration { return w.Elapsed() - began })
	}
	return b
}

// run measures the rows and keeps their results on rank 0.
func (b *bench) run(ctx context.Context, rows []row) error {
	defer b.progress.end()
	mapped := b.w.Transport(b.peer) == "shm" && !b.counted()
	for i := range rows {
		r := &rows[i]
		switch {
		case r.mapped && !mapped:
			b.skip(r, "the target's memory is not mapped here, or operations are being counted")
			continue
		case r.two && b.w.Size() < 2:
			b.skip(r, "it needs two ranks; start it with -n 2")
			continue
		}
		b.progress.at(i+1, len(rows), r.title+" ("+r.api+")")
		n, values, err := r.measure(ctx, b, r)
		if errors.Is(err, errNotHere) {
			b.skip(r, err.Error())
			continue
		}
		if err != nil {
			return fmt.Errorf("%s (%s): %w", r.name, r.api, err)
		}
		if b.w.Rank() == 0 {
			b.results = append(b.results, result{r.name, r.title, r.api, b.w.Transport(b.peer), r.unit, n, values, r.bytes})
		}
	}
	return nil
}

// errNotHere: a row cannot be measured here, on any rank.
var errNotHere = errors.New("not here")

// counted reports whether operations on mapped memory are being counted, which takes the views away.
func (b *bench) counted() bool { return b.w.Team().Engine().CountsMapped() }

func (b *bench) skip(r *row, why string) {
	if b.w.Rank() == 0 {
		b.skipped = append(b.skipped, fmt.Sprintf("not measured: %s (%s): %s", r.name, r.api, why))
	}
}

// agree makes an error of any rank one of all ranks: a wrong result, or what else has failed, ends the benchmark everywhere.
func (b *bench) agree(ctx context.Context, mine error) error {
	bad := []int64{-1}
	if mine != nil {
		bad[0] = int64(b.w.Rank())
	}
	if err := pgsync.AllReduce(ctx, b.w.Team(), bad, bad, pgsync.Max); err != nil {
		return errors.Join(mine, err)
	}
	if mine == nil && bad[0] >= 0 {
		return fmt.Errorf("rank %d has failed, or found the result wrong; its own message says how", bad[0])
	}
	return mine
}

// alone has rank 0 calibrate and time loop while the others wait in a barrier. loop does n operations, a multiple of
// step, and flushes. It returns how many operations a repeat was.
func (b *bench) alone(ctx context.Context, r *row, step, bytes int, loop func(n int) error) (int, []float64, error) {
	if err := b.w.Barrier(ctx); err != nil {
		return 0, nil, err
	}
	n, values, err := 0, []float64(nil), error(nil)
	if b.w.Rank() == 0 {
		n, values, err = b.timed(ctx, r.unit, step, bytes, loop)
	}
	if err := b.agree(ctx, err); err != nil {
		return 0, nil, err
	}
	return n, values, nil
}

// timed runs the calibration and the repeats. It ends with ctx before the next of them.
func (b *bench) timed(ctx context.Context, unit string, step, bytes int, loop func(n int) error) (int, []float64, error) {
	run := func(n int) (time.Duration, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		began := time.Now()
		err := loop(n)
		return time.Since(began), err
	}
	if err := b.settle(step, bytes, func(n int) error { _, err := run(n); return err }); err != nil {
		return 0, nil, err
	}
	n, err := calibrate(b.set.target, step, run)
	if err != nil {
		return 0, nil, err
	}
	values := make([]float64, b.set.reps)
	for i := range values {
		t, err := run(n)
		if err != nil {
			return 0, nil, err
		}
		values[i] = value(unit, n, bytes, t)
		b.progress.part(i+1, len(values))
	}
	return n, values, nil
}

// together has all ranks run loop between barriers, once to warm up, then for each repeat; rank 0 times it. total is
// how many operations all ranks do in one repeat.
func (b *bench) together(ctx context.Context, unit string, total int, loop func() error) (int, []float64, error) {
	var values []float64
	for i := range b.set.reps + 1 {
		if err := b.w.Barrier(ctx); err != nil {
			return 0, nil, err
		}
		began := time.Now()
		if err := loop(); err != nil {
			return 0, nil, err
		}
		if err := b.w.Barrier(ctx); err != nil {
			return 0, nil, err
		}
		if i > 0 {
			values = append(values, value(unit, total, 8, time.Since(began)))
			b.progress.part(i, b.set.reps)
		}
	}
	return total, values, nil
}

// tell gives rank 0's words to all ranks.
func (b *bench) tell(ctx context.Context, words ...uint64) ([]uint64, error) {
	return words, pgsync.Broadcast(ctx, b.w.Team(), words, 0)
}
