package window

import (
	"context"
	"errors"
	"fmt"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
	"gopgas/internal/proto"
	"gopgas/internal/racecheck"
	"gopgas/transport"
)

// openRaceCheck allocates what the race check needs on every member, whose longest part has n elements. Collective; a
// barrier follows before anybody reaches another.
func (w *core) openRaceCheck(ctx context.Context, n int, typ string) error {
	check := w.team.RaceCheck()
	if check == nil || n == 0 {
		return nil
	}
	bytes := check.WindowBytes(w.team.Size(), n)
	block, err := w.team.Heap().Alloc(ctx, bytes)
	if err != nil {
		return fmt.Errorf("%d bytes for the race check of %d elements: %w", bytes, n, err)
	}
	w.shadow = block
	w.race = check.Window(block.Remotes(), n, w.team.Rank(), w.elem.Bytes, w.local, typ)
	return nil
}

// near returns memory that a call was given as the library uses it.
func (w *core) near(r mem.Range) mem.Range { return w.team.RaceCheck().PlainRange(r) }

// longest returns the length of the longest part.
func (w *core) longest() int {
	n := 0
	for m := range w.remotes {
		n = max(n, w.remotes[m].Bytes/w.elem.Bytes)
	}
	return n
}

// closeRaceCheck gives it back.
func (w *core) closeRaceCheck() error {
	race := w.race
	w.race = nil
	switch {
	case race == nil || w.reached && w.way == nil: // what this rank has attached itself is checked on
		return nil
	case w.reached:
		race.Close()
		return w.way.Free()
	}
	race.Close()
	return errors.Join(race.Hide(), w.shadow.Free())
}

// checkedNB makes a transfer that is done at once, of which the check learns when the program waits for it.
func (w *core) checkedNB(put bool, target, disp int, near mem.Range) (Handle, error) {
	r, off, n := &w.remotes[target], disp*w.elem.Bytes, near.Bytes/w.elem.Bytes
	var t *racecheck.Transfer
	var err error
	if put {
		t = w.race.Put("put-nb", target, disp, n, near, true)
		err = w.e.Put(r, off, near)
	} else {
		t = w.race.Get("get-nb", target, disp, n, near, true)
		err = w.e.Get(r, off, near)
	}
	if err != nil {
		return Handle{}, err
	}
	t.Begun()
	return proto.Watched(t.Ended), nil
}

// checkedRunsNB is checkedNB for a transfer of many pieces.
func (w *core) checkedRunsNB(put bool, count int, run func(i int) proto.Run, near mem.Range) (Handles, error) {
	hs := make(Handles, 0, count)
	for i := range count {
		r := run(i)
		target, _ := w.team.Member(r.To.Rank)
		h, err := w.checkedNB(put, target, r.Far/w.elem.Bytes, near.Slice(r.Near, r.Bytes))
		if err != nil {
			return nil, errors.Join(err, hs.Wait(context.Background()))
		}
		hs = append(hs, h)
	}
	return hs, nil
}

// checkRuns checks a transfer of many pieces.
func (w *core) checkRuns(put bool, op string, count int, run func(i int) proto.Run, near mem.Range) {
	for i := range count {
		r := run(i)
		target, _ := w.team.Member(r.To.Rank)
		part := near.Slice(r.Near, r.Bytes)
		if put {
			w.race.Put(op, target, r.Far/w.elem.Bytes, r.Bytes/w.elem.Bytes, part, false)
		} else {
			w.race.Get(op, target, r.Far/w.elem.Bytes, r.Bytes/w.elem.Bytes, part, false)
		}
	}
}

// checkPacked checks a piece that is packed: what is used of near, and, in the target's part, what lies there without gaps.
func (w *core) checkPacked(put bool, op string, p *Piece, near mem.Range) {
	c, n := w.team.RaceCheck(), p.Rows*p.Cols
	here := racecheck.Access{Kind: racecheck.Write, Site: c.Site(op)}
	if put {
		here.Kind = racecheck.Read
		w.race.Put(op, p.Target, p.Disp, n, mem.Range{}, false)
	} else {
		w.race.Get(op, p.Target, p.Disp, n, mem.Range{}, false)
	}
	for i := range p.runs() {
		r := w.run(p.Target, p.Disp, p.Near, p.Section, i)
		c.Near(here, near.Addr()+uint64(r.Near), r.Bytes)
	}
}

// packedNB begins the transfer of a piece that was checked, to or from a buffer of the library's.
func (w *core) packedNB(put bool, op string, p *Piece, buf mem.Range) (Handle, error) {
	if err := w.gone(op, p.Target); err != nil {
		return Handle{}, err
	}
	r, off := &w.remotes[p.Target], p.Disp*w.elem.Bytes
	if put {
		return w.e.PutNB(r, off, buf)
	}
	return w.e.GetNB(r, off, buf)
}

// checkedAtomic is an atomic, and the order that it makes.
func (w *core) checkedAtomic(op atom.Op, target, disp int, x, y uint64) (old uint64, err error) {
	a := racecheck.Access{Kind: fetching(op), Site: w.team.RaceCheck().Site(op.Fetch())}
	err = w.race.Atomic(a, target, disp, 1, func() (changed bool, err error) {
		old, err = w.e.Atomic(op, w.elem, &w.remotes[target], disp*w.elem.Bytes, x, y)
		return atom.Combine(op, w.elem.Kind, old, x, y) != old, err
	})
	return old, err
}

// fetching is what a fetching atomic does to its element, for the check.
func fetching(op atom.Op) racecheck.Kind {
	if op == atom.Load {
		return racecheck.Look
	}
	return racecheck.Update
}

// checkedAtomicNB makes a non-blocking atomic at once; the check learns when the program waits for it.
func (w *core) checkedAtomicNB(op atom.Op, target, disp int, x, y uint64, old mem.Range) (Handle, error) {
	t, err := w.race.AtomicNB(fetching(op), w.team.RaceCheck().Site(op.Fetch()), target, disp, old, func() (changed bool, err error) {
		was, err := w.e.Atomic(op, w.elem, &w.remotes[target], disp*w.elem.Bytes, x, y)
		if err == nil {
			old.SetBits(was)
		}
		return atom.Combine(op, w.elem.Kind, was, x, y) != was, err
	})
	if err != nil {
		return Handle{}, err
	}
	t.Begun()
	return proto.Watched(t.Ended), nil
}

// checkedStore is a store, which orders as an accumulate does.
func (w *core) checkedStore(name string, target, disp int, src mem.Range) error {
	a := racecheck.Access{Kind: racecheck.Update, Done: racecheck.ByFlush, Site: w.team.RaceCheck().Site(name)}
	return w.race.Atomic(a, target, disp, 1, func() (changed bool, err error) {
		return true, w.e.Store(w.elem, &w.remotes[target], disp*w.elem.Bytes, src)
	})
}

// checkedUpdate is a bulk atomic with the operands src. old is where a fetching one, whose accesses are done AtReturn,
// stores what was there.
func (w *core) checkedUpdate(name string, op Op, target, disp int, src, old mem.Range, done racecheck.Done) error {
	c := w.team.RaceCheck()
	site, r, off := c.Site(name), &w.remotes[target], disp*w.elem.Bytes
	c.Near(racecheck.Access{Kind: racecheck.Read, Site: site}, src.Addr(), src.Bytes)
	c.Near(racecheck.Access{Kind: racecheck.Write, Site: site}, old.Addr(), old.Bytes)
	a := racecheck.Access{Kind: racecheck.Update, Done: done, Site: site}
	return w.race.Atomic(a, target, disp, src.Bytes/w.elem.Bytes, func() (changed bool, err error) {
		if done == racecheck.ByFlush {
			return true, w.e.Accumulate(op, w.elem, r, off, src)
		}
		return true, w.e.GetAccumulate(op, w.elem, r, off, src, old)
	})
}

// CheckRead tells the race check (PGAS_CHECK=races) that the program reads elements [lo, hi) of this rank's own part now,
// as ordinary memory, of whose use the library sees the beginning at best. Where nothing is checked it does nothing, at the price of a
// comparison.
func (w *Window[T]) CheckRead(lo, hi int) error {
	if w.c.race == nil {
		return nil
	}
	return w.c.declare("read", racecheck.Read, lo, hi)
}

// CheckWrite is CheckRead for elements that the program writes.
func (w *Window[T]) CheckWrite(lo, hi int) error {
	if w.c.race == nil {
		return nil
	}
	return w.c.declare("write", racecheck.Write, lo, hi)
}

// Reading returns elements [lo, hi) of Local, to be read until this rank's next synchronisation, and tells the race check so, as
// CheckRead does. It is the way to use Local in a program that is to be checked.
func (w *Window[T]) Reading(lo, hi int) ([]T, error) { return w.using("read", racecheck.Read, lo, hi) }

// Writing is Reading for elements that the program writes, or reads and writes.
func (w *Window[T]) Writing(lo, hi int) ([]T, error) {
	return w.using("write", racecheck.Write, lo, hi)
}

func (w *Window[T]) using(op string, kind racecheck.Kind, lo, hi int) ([]T, error) {
	if err := w.c.declare(op, kind, lo, hi); err != nil {
		return nil, err
	}
	return mem.Slice[T](w.c.local)[lo:hi:hi], nil // not shown: this use is known
}

// declare checks an access to this rank's own part that the program has told of.
func (w *core) declare(op string, kind racecheck.Kind, lo, hi int) error {
	me := w.team.Rank()
	if hi < lo {
		return transport.NewOpError(op, w.remotes[me].Rank, fmt.Errorf("%w: elements [%d, %d)", ErrRange, lo, hi))
	}
	if err := w.check(op, me, lo, hi-lo); err != nil {
		return err
	}
	w.race.Touch(racecheck.Access{Kind: kind, Site: w.team.RaceCheck().Site(op)}, me, lo, hi-lo)
	return nil
}
