package races_test

import (
	"errors"

	pgsync "gopgas/sync"
	"gopgas/window"
)

// words are programs with loads and stores of single words: a load is in conflict with what changes its word plainly, and with nothing else.
var words = []program{
	{"stores, loads and atomics", func(r *rig) error {
		_, e1 := window.Load(r.win, 2, 3)
		_, e2 := window.FetchAdd(r.win, 2, 3, 1)
		return errors.Join(e1, e2, window.Store(r.win, 2, 3, 7), window.Accumulate(r.win, 2, 3, one, pgsync.Sum))
	}, nil},
	{"load and get", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { _, err := window.Load(r.win, 2, 3); return err }),
			r.is(1, func() error { return r.win.Get(2, 3, make([]int64, 1)) }),
			r.is(2, func() error { return r.win.CheckRead(2, 5) }))
	}, nil},
	{"load and put", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { _, err := window.Load(r.win, 2, 3); return err }), // mark: load-put a
			r.is(1, func() error { return r.win.Put(2, 3, one) }))                    // mark: load-put b
	}, pair("load-put a", "load-put b")},
	{"store and get", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return window.Store(r.win, 2, 3, 1) }),      // mark: store-get a
			r.is(1, func() error { return r.win.Get(2, 3, make([]int64, 1)) })) // mark: store-get b
	}, pair("store-get a", "store-get b")},
	{"store and put", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return window.Store(r.win, 2, 3, 1) }), // mark: store-put a
			r.is(1, func() error { return r.win.Put(2, 3, one) }))         // mark: store-put b
	}, pair("store-put a", "store-put b")},
	{"a store and a load as a flag", func(r *rig) error {
		switch r.Rank() {
		case 0:
			return errors.Join(r.win.Put(1, 3, one), r.win.Flush(1), window.Store(r.win, 1, 8, 1), r.win.Flush(1))
		case 2:
			for {
				if v, err := window.Load(r.win, 1, 8); err != nil || v == 1 {
					return errors.Join(err, r.win.Get(1, 3, make([]int64, 1)))
				}
			}
		}
		return nil
	}, nil},
	{"a store and a load as a flag, and no flush", func(r *rig) error {
		switch r.Rank() {
		case 0:
			return errors.Join(
				r.win.Put(1, 3, one), // mark: store-flag a
				window.Store(r.win, 1, 8, 1), r.win.Flush(1))
		case 2:
			for {
				if v, err := window.Load(r.win, 1, 8); err != nil || v == 1 {
					return errors.Join(err, r.win.Get(1, 3, make([]int64, 1))) // mark: store-flag b
				}
			}
		}
		return nil
	}, pair("store-flag a", "store-flag b")},
	{"a load that is waited for as a flag", func(r *rig) error {
		switch r.Rank() {
		case 0:
			return errors.Join(r.win.Put(1, 3, one), r.win.Flush(1), window.Store(r.win, 1, 8, 1), r.win.Flush(1))
		case 2:
			for r.buf[0] = 0; r.buf[0] != 1; {
				h, err := window.LoadNB(r.win, 1, 8, &r.buf[0])
				if err := errors.Join(err, h.Wait(r.ctx)); err != nil {
					return err
				}
			}
			return r.win.Get(1, 3, make([]int64, 1))
		}
		return nil
	}, nil},
}
