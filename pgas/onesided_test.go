package pgas_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// oneSided are objects whose calls reach one other rank, and the calls, with that rank as their target.
type oneSided struct {
	w     *pgas.World
	calls []namedCall
	alive []namedCall // the same calls with a rank that lives
}

type namedCall struct {
	name string
	call func() error
}

// Each rank has an area of its own in each part, since what several put without order between them would be a race: the first part of it for
// puts, the other for atomics.
const (
	areaLen   = 256
	atomicsAt = 128
)

// newOneSided makes them. Counters and locks that live on the target are of teams whose first member it is. Collective.
func newOneSided(ctx context.Context, w *pgas.World) (*oneSided, error) {
	x := &oneSided{w: w}
	at := func(err error, what string) error {
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}
	win, err := window.Allocate[int64](ctx, w.Team(), areaLen*w.Size())
	if err != nil {
		return nil, at(err, "window")
	}
	locked, err := window.AllocateConfig[int64](ctx, w.Team(), 8, window.Config{Epochs: true})
	if err != nil {
		return nil, at(err, "window with epochs")
	}
	array, err := pgas.NewArray[int64](ctx, w.Team(), 64*w.Size(), pgas.Block())
	if err != nil {
		return nil, at(err, "array")
	}
	cyclic, err := pgas.NewArray[int64](ctx, w.Team(), 64*w.Size(), pgas.Cyclic())
	if err != nil {
		return nil, at(err, "cyclic array")
	}
	matrix, err := pgas.NewMatrix[int64](ctx, w.Team(), 8, 8*w.Size(), pgas.Grid{})
	if err != nil {
		return nil, at(err, "matrix")
	}
	sigs, err := pgsync.NewSignals(ctx, w.Team(), 1)
	if err != nil {
		return nil, at(err, "signals")
	}
	event, err := pgsync.NewEvent(ctx, w.Team())
	if err != nil {
		return nil, at(err, "event")
	}
	for _, target := range []int{dead, 0} {
		key := 0
		if w.Rank() == target {
			key = -1
		}
		team, err := w.Team().Split(ctx, 0, key)
		if err != nil {
			return nil, at(err, "split")
		}
		counter, err := pgsync.NewCounter(ctx, team)
		if err != nil {
			return nil, at(err, "counter")
		}
		lock, err := pgsync.NewLock(ctx, team)
		if err != nil {
			return nil, at(err, "lock")
		}
		rw, err := pgsync.NewRWLock(ctx, team)
		if err != nil {
			return nil, at(err, "rwlock")
		}
		calls := append(onWindow(ctx, win, sigs, w.Rank(), target), onArrays(ctx, array, cyclic, matrix, w.Rank(), target)...)
		calls = append(calls, onHome(ctx, counter, lock, rw, locked, event, sigs, target)...)
		if target == dead {
			x.calls = calls
		} else {
			x.alive = calls
		}
	}
	return x, w.Barrier(ctx)
}

func onWindow(ctx context.Context, win *window.Window[int64], sigs *pgsync.Signals, me, target int) []namedCall {
	area := areaLen * me
	cell := area + atomicsAt
	one, many := make([]int64, 1), make([]int64, 100)
	old := new(int64)
	wait := func(h window.Handle, err error) error { return errors.Join(err, h.Wait(ctx)) }
	waits := func(hs window.Handles, err error) error { return errors.Join(err, hs.Wait(ctx)) }
	value := func(_ int64, err error) error { return err }
	at := func(i int) (int, int) { return target, area + i }
	cells := func(i int) (int, int) { return target, cell + i }
	strip := []window.Piece{{Target: target, Disp: area, Section: window.Packed(4, 5, 10)}}
	flushed := func(err error) error { return errors.Join(err, win.Flush(target)) } // what completes by a flush may be reported there
	return []namedCall{
		{"put of one", func() error { return flushed(win.Put(target, area+3, one)) }},
		{"put", func() error { return flushed(win.Put(target, area+3, many)) }},
		{"get of one", func() error { return win.Get(target, area+3, one) }},
		{"get", func() error { return win.Get(target, area+3, many) }},
		{"put-nb of one", func() error { return flushed(wait(win.PutNB(target, area+3, one))) }},
		{"put-nb", func() error { return flushed(wait(win.PutNB(target, area+3, many))) }},
		{"get-nb of one", func() error { return wait(win.GetNB(target, area+3, one)) }},
		{"get-nb", func() error { return wait(win.GetNB(target, area+3, many)) }},
		{"flush", func() error { return win.Flush(target) }},
		{"flush with a context", func() error { return win.FlushContext(ctx, target) }},
		{"flush-local", func() error { return win.FlushLocal(target) }},
		{"put-section", func() error { return flushed(win.PutSection(target, area, many, window.Packed(4, 5, 10))) }},
		{"get-section", func() error { return win.GetSection(target, area, many, window.Packed(4, 5, 10)) }},
		{"put-sections", func() error { return flushed(win.PutSections(many, strip)) }},
		{"get-sections", func() error { return win.GetSections(many, strip) }},
		{"put-sections-nb", func() error { return flushed(waits(win.PutSectionsNB(many, strip))) }},
		{"get-sections-nb", func() error { return waits(win.GetSectionsNB(many, strip)) }},
		{"put-indexed", func() error { return flushed(win.PutIndexed(target, []int{area + 7, area + 50}, many[:20])) }},
		{"get-indexed", func() error { return win.GetIndexed(target, []int{area + 7, area + 50}, many[:20]) }},
		{"scatter", func() error { return flushed(win.Scatter(many, at)) }},
		{"gather", func() error { return win.Gather(many, at) }},
		{"accumulate", func() error { return flushed(window.Accumulate(win, target, cell, many, pgsync.Sum)) }},
		{"get-accumulate", func() error { return window.GetAccumulate(win, target, cell, many, many, pgsync.Sum) }},
		{"scatter-accumulate", func() error { return flushed(window.ScatterAccumulate(win, cells, many, pgsync.Xor)) }},
		{"gather-accumulate", func() error { return window.GatherAccumulate(win, cells, many, many, pgsync.Sum) }},
		{"load", func() error { return value(window.Load(win, target, cell)) }},
		{"store", func() error { return flushed(window.Store(win, target, cell, 1)) }},
		{"load-nb", func() error { return wait(window.LoadNB(win, target, cell, old)) }},
		{"fetch-add", func() error { return value(window.FetchAdd(win, target, cell, 1)) }},
		{"swap", func() error { return value(window.Swap(win, target, cell, 1)) }},
		{"compare-swap", func() error { return value(window.CompareSwap(win, target, cell, 1, 2)) }},
		{"fetch-and", func() error { return value(window.FetchAnd(win, target, cell, 1)) }},
		{"fetch-or", func() error { return value(window.FetchOr(win, target, cell, 1)) }},
		{"fetch-xor", func() error { return value(window.FetchXor(win, target, cell, 1)) }},
		{"fetch-add-nb", func() error { return wait(window.FetchAddNB(win, target, cell, 1, old)) }},
		{"swap-nb", func() error { return wait(window.SwapNB(win, target, cell, 1, old)) }},
		{"put-signal", func() error { return flushed(win.PutSignal(target, area, many, sigs.Signal(0), 1)) }},
		{"put-signal-add", func() error { return flushed(win.PutSignalAdd(target, area, many, sigs.Signal(0), 1)) }},
	}
}

func onArrays(ctx context.Context, array, cyclic *pgas.Array[int64], matrix *pgas.Matrix[int64], me, target int) []namedCall {
	lo, _ := array.Range(target)
	lo += 16 * me // an area as in the window
	many := make([]int64, 8)
	value := func(_ int64, err error) error { return err }
	return []namedCall{
		{"array at", func() error { return value(array.At(lo)) }},
		{"array set", func() error { return errors.Join(array.Set(lo, 1), array.Window().Flush(target)) }},
		{"array put", func() error { return errors.Join(array.Put(lo, many), array.Window().Flush(target)) }},
		{"array get", func() error { return array.Get(lo, many) }},
		{"cyclic array at", func() error { return value(cyclic.At(target)) }},
		{"array fetch-add", func() error { return value(pgas.FetchAdd(array, lo+8, 1)) }},
		{"array load", func() error { return value(pgas.Load(array, lo+8)) }},
		{"array store", func() error { return errors.Join(pgas.Store(array, lo+8, 1), array.Window().Flush(target)) }},
		{"array compare-swap", func() error { return value(pgas.CompareSwap(array, lo+8, 1, 2)) }},
		{"array get-nb", func() error {
			hs, err := array.GetNB(lo, many)
			return errors.Join(err, hs.Wait(ctx))
		}},
		{"matrix at", func() error { b := matrix.Block(target); return value(matrix.At(b.Row, b.Col)) }},
	}
}

func onHome(ctx context.Context, c *pgsync.Counter, l *pgsync.Lock, rw *pgsync.RWLock, win *window.Window[int64], e *pgsync.Event, s *pgsync.Signals, target int) []namedCall {
	return []namedCall{
		{"signal set", func() error { return errors.Join(s.Signal(0).Set(target, 1), win.Flush(target)) }},
		{"signal add", func() error { return s.Signal(0).Add(target, 1) }},
		{"event post", func() error { return e.Post(target, 1) }},
		{"counter", func() error { _, err := c.Next(1); return err }},
		{"try-lock", func() error {
			ok, err := l.TryLock()
			if ok {
				err = errors.Join(err, l.Unlock())
			}
			return err
		}},
		{"lock", func() error {
			err := l.Lock(ctx)
			if err == nil {
				err = l.Unlock()
			}
			return err
		}},
		{"rw try-lock", func() error {
			ok, err := rw.TryRLock()
			if ok {
				err = errors.Join(err, rw.RUnlock())
			}
			return err
		}},
		{"window lock", func() error {
			err := win.Lock(ctx, target, window.LockShared)
			if err == nil {
				err = win.Unlock(target)
			}
			return err
		}},
	}
}

// untilGone repeats a call until it fails, which is to be with the error of the dead rank.
func untilGone(c namedCall) error {
	err := c.call()
	for err == nil {
		time.Sleep(100 * time.Microsecond)
		err = c.call()
	}
	var oe *pgas.OpError
	if !errors.Is(err, pgas.ErrPeerGone) || !errors.As(err, &oe) || oe.Rank != dead {
		return fmt.Errorf("%s of a dead rank: %w", c.name, err)
	}
	return nil
}

// afterDeath makes all calls again and again until they report the death, then once more, and looks that others go on.
func (x *oneSided) afterDeath(died func() time.Time, limit time.Duration) error {
	for _, c := range x.calls {
		if err := untilGone(c); err != nil {
			return err
		}
	}
	if took := time.Since(died()); took > limit {
		return fmt.Errorf("the last call reported the death after %v", took)
	}
	for _, c := range x.calls {
		if c.call() == nil {
			return fmt.Errorf("%s: it has reported the death, and goes well now", c.name)
		}
	}
	for _, c := range x.alive {
		if err := c.call(); err != nil {
			return fmt.Errorf("%s of a rank that lives: %w", c.name, err)
		}
	}
	return nil
}

// TestDeathEndsEveryOneSidedCall: calls that need one rank report its death within a second, also where they reach its memory without
// anybody's help, and go on to report it. The same calls to other ranks go on to work.
func TestDeathEndsEveryOneSidedCall(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		t.Run(p.Name, func(t *testing.T) {
			p.TimeLimit = 20 * time.Second
			const n = 4
			var ready, told sync.WaitGroup
			ready.Add(n)
			told.Add(n - 1)
			var died atomic.Pointer[time.Time]
			errs := pgastest.Errors(t, n, p.Config, func(ctx context.Context, w *pgas.World) error {
				x, err := newOneSided(ctx, w)
				if err == nil {
					for _, c := range slices.Concat(x.calls, x.alive) {
						if e := c.call(); e != nil {
							err = errors.Join(err, fmt.Errorf("%s while all live: %w", c.name, e))
						}
					}
				}
				ready.Done()
				ready.Wait()
				if err == nil && w.Rank() == dead {
					now := time.Now()
					died.Store(&now)
					err = errors.New("made up")
				} else if err == nil {
					for died.Load() == nil {
						time.Sleep(time.Millisecond)
					}
					err = x.afterDeath(func() time.Time { return *died.Load() }, soon(p.Name))
				}
				if w.Rank() != dead {
					told.Done()
					told.Wait()
				}
				return errors.Join(err, errGood)
			})
			for r, err := range errs {
				if r == dead {
					require.ErrorContains(t, err, "made up")
					continue
				}
				require.Equal(t, errGood.Error(), err.Error(), "rank %d", r)
			}
		})
	}
}
