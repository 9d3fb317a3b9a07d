package races_test

import (
	"errors"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// everySecond is a section of short rows that lie side by side at the target, as many as are packed elsewhere: every second element of the caller's slice.
var everySecond = window.Section{Rows: 8, Cols: 1, Stride: 1, Step: 1, NearStride: 2, NearStep: 1}

// packed are programs with sections that travel by way of a buffer where no races are looked for.
var packed = []program{
	{"a part that is the source of sections", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return r.win.Put(2, 14, one) }), // mark: source of sections a
			r.is(2, func() error {
				return r.win.PutSections(r.win.Local(), []window.Piece{{Target: 1, Section: everySecond}}) // mark: source of sections b
			}))
	}, pair("source of sections a", "source of sections b")},
	{"a part that sections come to", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return r.win.Put(2, 14, one) }), // mark: sections come a
			r.is(2, func() error {
				return r.win.GetSections(r.win.Local(), []window.Piece{{Target: 1, Section: everySecond}}) // mark: sections come b
			}))
	}, pair("sections come a", "sections come b")},
	{"a part between the elements of sections", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return r.win.Put(2, 13, one) }),
			r.is(2, func() error {
				return r.win.PutSections(r.win.Local(), []window.Piece{{Target: 1, Section: everySecond}})
			}))
	}, nil},
	{"a source of sections that is changed too early", func(r *rig) error {
		return r.is(0, func() error {
			hs, err := r.win.PutSectionNB(1, 0, r.buf, everySecond) // mark: sections changed a
			r.buf[2] = 99
			return errors.Join(err, hs.Wait(r.ctx)) // mark: sections changed b
		})
	}, pair("sections changed a", "sections changed b")},
	{"a part that is the source of a dealt accumulate", func(r *rig) error {
		a, err := pgas.NewArray[int64](r.ctx, r.Team(), 48, pgas.Cyclic())
		if err != nil {
			return err
		}
		err = errors.Join(
			r.is(0, func() error { return r.win.Put(2, 14, one) }),                            // mark: dealt source a
			r.is(2, func() error { return pgas.Accumulate(a, 0, r.win.Local(), pgsync.Sum) }), // mark: dealt source b
		)
		return errors.Join(err, a.Free(r.ctx))
	}, pair("dealt source a", "dealt source b")},
}
