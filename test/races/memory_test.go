package races_test

import (
	"errors"
	"fmt"

	"gopgas/window"
)

// lent is memory that rank 2 has attached, as each rank sees it.
type lent struct {
	*rig
	d    *window.Dynamic[int64]
	refs *window.Window[window.Ref]
	ref  window.Ref
	win  *window.Window[int64] // 8 elements, on rank 2
}

// withLent runs f with memory that rank 2 attaches, and takes it away after the fence if f has not.
func (r *rig) withLent(f func(l *lent) error) error {
	d, err := window.NewDynamic[int64](r.ctx, r.Team())
	if err != nil {
		return err
	}
	refs, err := window.Allocate[window.Ref](r.ctx, r.Team(), 1)
	if err != nil {
		return err
	}
	l := &lent{rig: r, d: d, refs: refs}
	if err := l.lend(); err != nil {
		return err
	}
	return seq(func() error { return f(l) }, func() error { return l.win.Fence(r.ctx) }, func() error { return l.win.Free(r.ctx) },
		func() error { return r.Barrier(r.ctx) }, func() error { return d.Free(r.ctx) }, func() error { return refs.Free(r.ctx) })
}

// lend has rank 2 attach memory, and all reach it.
func (l *lent) lend() (err error) {
	err = l.is(2, func() error {
		if l.ref, err = l.d.Alloc(8); err != nil {
			return err
		}
		for k := range ranks {
			err = errors.Join(err, l.refs.Put(k, 0, []window.Ref{l.ref}))
		}
		return err
	})
	if err := errors.Join(err, l.refs.Fence(l.ctx)); err != nil {
		return err
	}
	l.win, err = l.d.Reach(l.refs.Local()[0])
	return err
}

// declared are programs that say what they do with memory of their own by the way they get at it.
var declared = []program{
	{"a get beside a part that is being written", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return r.win.Get(2, 3, make([]int64, 1)) }), // mark: writing a
			r.is(2, func() error {
				part, err := r.win.Writing(0, 8) // mark: writing b
				if err == nil {
					part[4] = 7
				}
				return err
			}))
	}, pair("writing a", "writing b")},
	{"a put beside a part that is being read", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return r.win.Put(2, 3, one) }),               // mark: reading a
			r.is(2, func() error { _, err := r.win.Reading(3, 4); return err })) // mark: reading b
	}, pair("reading a", "reading b")},
	{"gets beside a part that is being read", func(r *rig) error {
		_, err := r.win.Reading(0, 16)
		return errors.Join(err, r.win.Get(2, 0, make([]int64, 16)))
	}, nil},
	{"phases of puts and of work on the own part", func(r *rig) error {
		for range 3 {
			part, err := r.win.Writing(0, 16)
			if err != nil {
				return err
			}
			for i := range part {
				part[i]++
			}
			err = seq(r.fence, func() error { return r.win.Put((r.Rank()+1)%ranks, 2, one) }, r.fence)
			if err != nil {
				return err
			}
		}
		return nil
	}, nil},
	{"elements that are not there", func(r *rig) error {
		for _, at := range [][2]int{{-1, 2}, {0, 17}, {3, 2}} {
			if _, err := r.win.Reading(at[0], at[1]); !errors.Is(err, window.ErrRange) {
				return fmt.Errorf("elements %v: %v", at, err)
			}
		}
		return nil
	}, nil},
	{"sections without waiting", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error {
				hs, err := r.win.PutSectionNB(2, 0, four, window.Packed(2, 2, 8)) // mark: begun a
				return errors.Join(err, hs.Wait(r.ctx))
			}),
			r.is(1, func() error { return r.win.Put(2, 9, one) }), // mark: begun b
			r.fence(),
			r.is(0, func() error {
				hs, err := r.win.GetSectionNB(2, 0, r.buf[:4], window.Packed(2, 2, 8))
				return errors.Join(err, hs.Wait(r.ctx), r.win.Put(1, 0, r.buf[:4]))
			}))
	}, pair("begun a", "begun b")},
}

// attachments are programs with memory that a rank attaches and detaches.
var attachments = []program{
	{"put and put to attached memory", func(r *rig) error {
		return r.withLent(func(l *lent) error {
			return errors.Join(
				r.is(0, func() error { return l.win.Put(2, 3, one) }), // mark: lent put a
				r.is(1, func() error { return l.win.Put(2, 3, one) })) // mark: lent put b
		})
	}, pair("lent put a", "lent put b")},
	{"get from attached memory and its owner's write", func(r *rig) error {
		return r.withLent(func(l *lent) error {
			return errors.Join(
				r.is(0, func() error { return l.win.Get(2, 3, make([]int64, 1)) }), // mark: lent local a
				r.is(2, func() error { return l.win.CheckWrite(0, 8) }))            // mark: lent local b
		})
	}, pair("lent local a", "lent local b")},
	{"puts to attached memory beside each other", func(r *rig) error {
		return r.withLent(func(l *lent) error { return l.win.Put(2, r.Rank(), one) })
	}, nil},
	{"atomics on attached memory", func(r *rig) error {
		return r.withLent(func(l *lent) error {
			_, err := window.FetchAdd(l.win, 2, 3, 1)
			return err
		})
	}, nil},
	{"attached memory handed round with signals", func(r *rig) error {
		return r.withLent(func(l *lent) error {
			switch r.Rank() {
			case 0:
				return seq(func() error { return l.win.Put(2, 3, one) }, func() error { return l.win.Flush(2) },
					func() error { return r.sig.Signal(0).Set(1, 1) })
			case 1:
				return seq(func() error { return r.wait(0, 1) }, func() error { return l.win.Get(2, 3, make([]int64, 1)) },
					func() error { return l.win.Put(2, 3, one) })
			}
			return nil
		})
	}, nil},
	{"attached memory that is taken away too early", func(r *rig) error {
		return r.withLent(func(l *lent) error {
			err := r.is(0, func() error { return l.win.Put(2, 3, one) }) // mark: taken a
			err = errors.Join(err, r.Barrier(r.ctx))                     // it flushes nothing
			return errors.Join(err, r.is(2, func() error {
				return l.d.Detach(l.ref) // mark: taken b
			}))
		})
	}, pair("taken a", "taken b")},
	{"attached memory that is taken away in time", func(r *rig) error {
		return r.withLent(func(l *lent) error {
			err := r.is(0, func() error { return l.win.Put(2, 3, one) })
			err = errors.Join(err, l.win.Fence(r.ctx))
			return errors.Join(err, r.is(2, func() error { return l.d.Detach(l.ref) }))
		})
	}, nil},
	{"memory that is attached again and again", func(r *rig) error {
		for range 2 {
			err := r.withLent(func(l *lent) error { return r.is(0, func() error { return l.win.Put(2, 3, one) }) })
			if err != nil {
				return err
			}
		}
		return nil
	}, nil},
	{"attached memory beside an older piece, after many that are gone", func(r *rig) error {
		return r.withLent(func(l *lent) error {
			err := r.is(2, func() error {
				for range 255 {
					ref, err := l.d.Alloc(1)
					if err := errors.Join(err, l.d.Detach(ref)); err != nil {
						return err
					}
				}
				return nil
			})
			older := l.win
			err = errors.Join(err, r.Barrier(r.ctx), l.lend())
			return errors.Join(err,
				r.is(0, func() error { return l.win.Put(2, 3, one) }), // mark: lent late a
				r.is(1, func() error { return l.win.Put(2, 3, one) }), // mark: lent late b
				older.Free(r.ctx))
		})
	}, pair("lent late a", "lent late b")},
}
