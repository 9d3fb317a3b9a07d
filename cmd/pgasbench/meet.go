package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	pgsync "gopgas/sync"
	"gopgas/window"
)

// errLost: a compare-swap that nobody contends for found another value than the one it stored.
var errLost = errors.New("wrong result: a compare-swap without contention was refused")

// meetRows are the rows in which ranks wait for each other.
func meetRows() []row {
	const (
		pong = "8 B put to seen, one way"
		both = "64-bit fetch-add, contended by all ranks, per operation"
	)
	return []row{
		{
			name: "put_to_seen", title: pong, api: "View.Store / Atomic.Load", unit: unitNanos, mapped: true, two: true,
			measure: pingPong(viewPing),
		},
		{
			name: "put_to_seen", title: pong, api: "Window.Put + Flush / load of Local", unit: unitNanos, mapped: true, two: true,
			measure: pingPong(putPing),
		},
		{
			name: "put_to_seen", title: pong, api: "Signal.Set / Signal.WaitUntil", unit: unitNanos, two: true,
			measure: signalPing(false),
		},
		{
			name: "put_to_seen", title: pong, api: "Window.PutSignal / Signal.WaitUntil", unit: unitNanos, two: true,
			measure: signalPing(true),
		},
		{name: "fetch_add_contended", title: both, api: "Atomic.FetchAdd", unit: unitNanos, mapped: true, two: true, measure: contended(true)},
		{name: "fetch_add_contended", title: both, api: "window.FetchAdd", unit: unitNanos, two: true, measure: contended(false)},
		{name: "barrier", title: "barrier of all ranks", api: "World.Barrier", unit: unitNanos, measure: barrier},
	}
}

// pong is one rank's side of a ping-pong of rounds; the first value sent is from+1.
type pong func(e *words, me int, from uint64, rounds int) error

// The words that the two ranks of a ping-pong wait on lie on lines of their own.
const (
	pongWord = 0
	pongLine = 16
)

// pingPong measures half a round trip between ranks 0 and 1.
func pingPong(play pong) func(context.Context, *bench, *row) (int, []float64, error) {
	return func(ctx context.Context, b *bench, r *row) (int, []float64, error) {
		e, err := b.newWords(ctx)
		if err != nil {
			return 0, nil, err
		}
		if e.peer = 1 - b.w.Rank(); e.peer >= 0 {
			e.view, _ = e.win.View(e.peer)
		}
		from := uint64(0)
		n, values, err := b.together(ctx, r.unit, 2*b.set.rounds, func() error {
			if b.w.Rank() > 1 {
				return nil
			}
			err := play(e, b.w.Rank(), from, b.set.rounds)
			from += uint64(b.set.rounds)
			return err
		})
		if err != nil {
			return 0, nil, err
		}
		var wrong error
		if mine := pongWord + b.w.Rank()*pongLine; b.w.Rank() < 2 && e.win.Local()[mine] != from {
			wrong = fmt.Errorf("wrong result: the last value seen is %d, want %d", e.win.Local()[mine], from)
		}
		if err := b.agree(ctx, wrong); err != nil {
			return 0, nil, err
		}
		return n, values, e.win.Free(ctx)
	}
}

func viewPing(e *words, me int, from uint64, rounds int) error {
	mine := window.Atomics(localView(e, me))
	for i := range rounds {
		v := from + uint64(i) + 1
		if me == 0 {
			e.view.Store(pongWord+pongLine, v)
		}
		for mine.Load(pongWord+me*pongLine) != v {
		}
		if me == 1 {
			e.view.Store(pongWord, v)
		}
	}
	return nil
}

func localView(e *words, me int) window.View[uint64] {
	v, _ := e.win.View(me)
	return v
}

func putPing(e *words, me int, from uint64, rounds int) error {
	mine := &e.win.Local()[pongWord+me*pongLine]
	one := make([]uint64, 1)
	send := func(v uint64) error {
		one[0] = v
		if err := e.win.Put(e.peer, pongWord+e.peer*pongLine, one); err != nil {
			return err
		}
		return e.win.Flush(e.peer)
	}
	for i := range rounds {
		v := from + uint64(i) + 1
		if me == 0 {
			if err := send(v); err != nil {
				return err
			}
		}
		for atomic.LoadUint64(mine) != v {
		}
		if me == 1 {
			if err := send(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// signalPing is the ping-pong with the library's own wait, which serves any transport: of a signal alone, or of a word that it shows.
func signalPing(shows bool) func(context.Context, *bench, *row) (int, []float64, error) {
	return func(ctx context.Context, b *bench, r *row) (int, []float64, error) {
		e, err := b.newWords(ctx)
		if err != nil {
			return 0, nil, err
		}
		signals, err := pgsync.NewSignals(ctx, b.w.Team(), 1)
		if err != nil {
			return 0, nil, err
		}
		sig, me, from := signals.Signal(0), b.w.Rank(), uint64(0)
		send := func(v uint64) error { return sig.Set(1-me, v) }
		if shows {
			one := make([]uint64, 1)
			send = func(v uint64) error {
				one[0] = v
				return e.win.PutSignal(1-me, pongWord, one, sig, v)
			}
		}
		n, values, err := b.together(ctx, r.unit, 2*b.set.rounds, func() error {
			if me > 1 {
				return nil
			}
			for range b.set.rounds {
				from++
				if me == 0 {
					if err := send(from); err != nil {
						return err
					}
				}
				if _, err := sig.WaitUntil(ctx, pgsync.Equal, from); err != nil {
					return err
				}
				if shows && e.win.Local()[pongWord] != from {
					return fmt.Errorf("wrong result: signal %d shows %d", from, e.win.Local()[pongWord])
				}
				if me == 1 {
					if err := send(from); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			return 0, nil, err
		}
		return n, values, errors.Join(signals.Free(ctx), e.win.Free(ctx))
	}
}

// contendedAdds is how many adds each rank does in a repeat of the contended row.
const contendedAdds = 100_000

func contended(view bool) func(context.Context, *bench, *row) (int, []float64, error) {
	return func(ctx context.Context, b *bench, r *row) (int, []float64, error) {
		e, err := b.newWords(ctx)
		if err != nil {
			return 0, nil, err
		}
		home, _ := e.win.View(0)
		e.atom, e.peer = window.Atomics(home), 0
		each := contendedAdds
		if b.w.Transport(b.peer) != "shm" {
			each /= 20 // a NIC's atomics take microseconds
		}
		loop := windowFetchAdd
		if view {
			loop = atomicFetchAdd
		}
		n, values, err := b.together(ctx, r.unit, each*b.w.Size(), func() error {
			_, err := loop(e, 0, each)
			return err
		})
		if err != nil {
			return 0, nil, err
		}
		var wrong error
		if have, want := e.win.Local()[hotWord], uint64(n*(b.set.reps+1)); b.w.Rank() == 0 && have != want {
			wrong = fmt.Errorf("wrong result at the target: the word is %d after %d adds of 1", have, want)
		}
		if err := b.agree(ctx, wrong); err != nil {
			return 0, nil, err
		}
		return n, values, e.win.Free(ctx)
	}
}

// barrier times the barrier itself, on rank 0.
func barrier(ctx context.Context, b *bench, r *row) (int, []float64, error) {
	rounds := b.set.rounds
	if b.w.Size() > 2 {
		rounds = max(rounds/8, 1)
	}
	run := func(n int) error {
		for range n {
			if err := b.w.Barrier(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	if err := run(rounds/10 + 1); err != nil {
		return 0, nil, err
	}
	values := make([]float64, b.set.reps)
	for i := range values {
		began := time.Now()
		if err := run(rounds); err != nil {
			return 0, nil, err
		}
		values[i] = value(r.unit, rounds, 0, time.Since(began))
	}
	return rounds, values, nil
}
