package traces

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// fetching are the atomics that a word has.
type fetching[T any] struct {
	add  func(w *window.Window[T], target, disp int, v T) (T, error)
	swap func(w *window.Window[T], target, disp int, v T) (T, error)
	cas  func(w *window.Window[T], target, disp int, old, v T) (T, error)
	acc  func(w *window.Window[T], target, disp int, src []T, op pgsync.Op) error
}

// answers are what fetching atomics returned, by set of a phase.
type answers[T any] struct {
	mu sync.Mutex
	of map[[2]int][]T
}

func (a *answers[T]) put(phase, set int, v T) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.of[[2]int{phase, set}] = append(a.of[[2]int{phase, set}], v)
}

// player carries out one rank's part of a plan.
type player[T comparable] struct {
	k     kit[T]
	f     fetching[T]
	w     *pgas.World
	win   *window.Window[T]
	sigs  *pgsync.Signals
	lock  *pgsync.Lock
	got   *answers[T]
	moves []flight[T]
	one   T
}

// flight is a get under way.
type flight[T any] struct {
	h         window.Handle
	dst, want []T
	at        string
}

// play carries out a plan in one rank. rng is this rank's own: it chooses how things are done, never what comes out.
func play[T comparable](ctx context.Context, k kit[T], f fetching[T], w *pgas.World, phases []phase[T], got *answers[T], rng *rand.Rand) (err error) {
	p := &player[T]{k: k, f: f, w: w, got: got}
	if k.plus != nil {
		p.one = k.plus(p.one, 1)
	}
	if p.win, err = window.Allocate[T](ctx, w.Team(), len(phases[0].after[0])); err != nil {
		return err
	}
	if p.sigs, err = pgsync.NewSignals(ctx, w.Team(), 3*w.Size()); err != nil {
		return err
	}
	if p.lock, err = pgsync.NewLock(ctx, w.Team()); err != nil {
		return err
	}
	for no, ph := range phases {
		for i, o := range ph.ops[w.Rank()] {
			if err := p.step(ctx, no, &o); err != nil {
				return fmt.Errorf("phase %d, rank %d, step %d (%+v): %w", no, w.Rank(), i, o, err)
			}
		}
		if err := p.fence(ctx, no, rng); err != nil {
			return fmt.Errorf("phase %d, rank %d: %w", no, w.Rank(), err)
		}
		if err := p.verify(no, &ph, rng); err != nil {
			return fmt.Errorf("after phase %d, rank %d: %w", no, w.Rank(), err)
		}
		if err := w.Barrier(ctx); err != nil { // all have looked
			return err
		}
		if slices.ContainsFunc(ph.sets, func(s set[T]) bool { return s.free }) {
			for _, s := range ph.sets {
				if s.free && s.target == w.Rank() {
					p.win.Local()[s.disp] = ph.after[s.target][s.disp]
				}
			}
			if err := w.Barrier(ctx); err != nil {
				return err
			}
		}
	}
	return errors.Join(p.lock.Free(ctx), p.sigs.Free(ctx), p.win.Free(ctx))
}

// fence ends phase no: by a fence, in which all take part, or by a barrier behind whichever flushes a rank likes.
func (p *player[T]) fence(ctx context.Context, no int, rng *rand.Rand) error {
	switch {
	case no%3 == 0:
		return p.win.Fence(ctx)
	case rng.IntN(2) == 0:
		return errors.Join(p.win.FlushAll(), p.w.Barrier(ctx))
	}
	for _, m := range rng.Perm(p.w.Size()) {
		if err := p.win.Flush(m); err != nil {
			return err
		}
	}
	return p.w.Barrier(ctx)
}

func (p *player[T]) step(ctx context.Context, no int, o *op[T]) error {
	switch o.kind {
	case opPut:
		src := clone(o.src)
		err := p.win.Put(o.target, o.disp, src)
		clear(src) // may be reused
		return err
	case opPutNB:
		src := clone(o.src)
		h, err := p.win.PutNB(o.target, o.disp, src)
		if err == nil {
			err = h.Wait(ctx)
		}
		clear(src)
		return err
	case opGet:
		dst := make([]T, len(o.want))
		if err := p.win.Get(o.target, o.disp, dst); err != nil {
			return err
		}
		return same(o.want, dst)
	case opGetNB:
		dst := make([]T, len(o.want))
		h, err := p.win.GetNB(o.target, o.disp, dst)
		p.moves = append(p.moves, flight[T]{h, dst, o.want, fmt.Sprintf("get of %d at %d, %d", len(dst), o.target, o.disp)})
		return err
	case opWaitAll:
		for _, f := range slices.Backward(p.moves) {
			if err := f.h.Wait(ctx); err != nil {
				return err
			}
			if err := same(f.want, f.dst); err != nil {
				return fmt.Errorf("%s: %w", f.at, err)
			}
		}
		p.moves = p.moves[:0]
		return nil
	case opFlush:
		return p.win.Flush(o.target)
	case opFlushAll:
		return p.win.FlushAll()
	case opOrder:
		return p.win.Order(o.target)
	case opAccumulate:
		return p.f.acc(p.win, o.target, o.disp, o.src, o.how)
	case opSignal:
		return p.win.PutSignal(o.target, o.disp, o.src, p.sigs.Signal(o.sig), uint64(no+1))
	case opNotify:
		return p.sigs.Signal(o.sig).Set(o.target, uint64(no+1))
	case opAwait:
		_, err := p.sigs.Signal(o.sig).WaitUntil(ctx, pgsync.GreaterOrEqual, uint64(no+1))
		return err
	case opInspect:
		return same(o.want, p.win.Local()[o.disp:o.disp+len(o.want)])
	default:
		return p.change(ctx, no, o)
	}
}

// change is a step that reads and writes.
func (p *player[T]) change(ctx context.Context, no int, o *op[T]) error {
	switch o.kind {
	case opCount:
		was, err := p.f.add(p.win, o.target, o.disp, p.one)
		p.got.put(no, o.set, was)
		return err
	case opCountCAS:
		var zero T
		for {
			old, err := p.f.add(p.win, o.target, o.disp, zero)
			if err != nil {
				return err
			}
			was, err := p.f.cas(p.win, o.target, o.disp, old, p.k.plus(old, 1))
			if err != nil {
				return err
			}
			if was == old {
				p.got.put(no, o.set, was)
				return nil
			}
		}
	case opSwap:
		was, err := p.f.swap(p.win, o.target, o.disp, o.src[0])
		p.got.put(no, o.set, was)
		return err
	case opLocked:
		if err := p.lock.Lock(ctx); err != nil {
			return err
		}
		v := make([]T, 1)
		err := p.win.Get(o.target, o.disp, v)
		v[0] = p.k.plus(v[0], 1)
		return errors.Join(err, p.win.Put(o.target, o.disp, v), p.lock.Unlock())
	}
	return fmt.Errorf("no such step: %d", o.kind)
}

// verify compares this rank's memory, and another's as it is seen from here, with the plan.
func (p *player[T]) verify(no int, ph *phase[T], rng *rand.Rand) error {
	seen := make([]T, len(ph.after[0]))
	other := rng.IntN(p.w.Size())
	if err := p.win.Get(other, 0, seen); err != nil {
		return err
	}
	local := clone(p.win.Local())
	for i, s := range ph.sets {
		if !s.free {
			continue
		}
		// The last value of a swapped element is known only as one of a set; rank 0 puts it to the answers.
		if s.target == p.w.Rank() {
			p.got.put(no, i, local[s.disp])
			local[s.disp] = ph.after[s.target][s.disp]
		}
		if s.target == other {
			seen[s.disp] = ph.after[s.target][s.disp]
		}
	}
	if err := same(ph.after[p.w.Rank()], local); err != nil {
		return fmt.Errorf("own memory: %w", err)
	}
	if err := same(ph.after[other], seen); err != nil {
		return fmt.Errorf("memory of rank %d: %w", other, err)
	}
	return nil
}

func same[T comparable](want, got []T) error {
	for i := range want {
		if got[i] != want[i] {
			return fmt.Errorf("element %d of %d is %v, should be %v", i, len(want), got[i], want[i])
		}
	}
	return nil
}
