package races_test

import (
	"errors"

	pgsync "gopgas/sync"
	"gopgas/window"
)

// flag has rank 0 put an element and set element 8 of rank 1, which is 0, to 1, and rank 2 do f.
func (r *rig) flag(f func(v *int64) error) error {
	switch r.Rank() {
	case 0:
		err := errors.Join(r.win.Put(1, 3, one), r.win.Flush(1)) // mark: unwaited a
		_, e := window.Swap(r.win, 1, 8, 1)
		return errors.Join(err, e)
	case 2:
		return f(new(int64))
	}
	return nil
}

// flushed has rank 0 put an element, begin a flush, do f, and wait for the flush.
func (r *rig) flushed(f func() error) error {
	return r.is(0, func() error {
		err := r.win.Put(1, 3, one)
		h, e := r.win.FlushNB(1)
		return errors.Join(err, e, f(), h.Wait(r.ctx))
	})
}

// third are elements 0, 3, 6 and 9 of rank 2.
func (r *rig) third(i int) (target, disp int) { return 2, 3 * i }

// flights are programs with atomics in flight, and at many places.
var flights = []program{
	{"atomics that are waited for", func(r *rig) error {
		h, err := window.FetchAddNB(r.win, 2, 3, 1, new(int64))
		return errors.Join(err, h.Wait(r.ctx), window.ScatterAccumulate(r.win, r.third, four, pgsync.Xor),
			window.GatherAccumulate(r.win, r.third, four, make([]int64, 4), pgsync.Sum))
	}, nil},
	{"atomic to wait for and put", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { _, err := window.SwapNB(r.win, 2, 3, 1, new(int64)); return err }), // mark: atomicnb-put a
			r.is(1, func() error { return r.win.Put(2, 3, one) }))                                     // mark: atomicnb-put b
	}, pair("atomicnb-put a", "atomicnb-put b")},
	{"scattered accumulate and get", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return window.ScatterAccumulate(r.win, r.third, four, pgsync.Sum) }), // mark: scatter-get a
			r.is(1, func() error { return r.win.Get(2, 3, make([]int64, 1)) }))                          // mark: scatter-get b
	}, pair("scatter-get a", "scatter-get b")},
	{"an atomic to wait for as a flag", func(r *rig) error {
		return r.flag(func(v *int64) error {
			for {
				h, err := window.FetchAddNB(r.win, 1, 8, 0, v)
				if err = errors.Join(err, h.Wait(r.ctx)); err != nil || *v == 1 {
					return errors.Join(err, r.win.Get(1, 3, make([]int64, 1)))
				}
			}
		})
	}, nil},
	{"an atomic as a flag, before the wait", func(r *rig) error {
		return r.flag(func(v *int64) error {
			for {
				h, err := window.FetchAddNB(r.win, 1, 8, 0, v)
				if *v == 1 { // it was made at once, but that need not be
					err = errors.Join(err, r.win.Get(1, 3, make([]int64, 1))) // mark: unwaited b
					return errors.Join(err, h.Wait(r.ctx))
				}
				if err = errors.Join(err, h.Wait(r.ctx)); err != nil {
					return err
				}
			}
		})
	}, pair("unwaited a", "unwaited b")},
	{"a put before a flush that is waited for", func(r *rig) error {
		return seq(
			func() error { return r.flushed(func() error { return nil }) },
			func() error { return r.Barrier(r.ctx) },
			func() error { return r.is(2, func() error { return r.win.Get(1, 3, make([]int64, 1)) }) })
	}, nil},
	{"a put behind a flush that is waited for", func(r *rig) error {
		return seq(
			func() error {
				return r.flushed(func() error { return r.win.Put(1, 5, one) }) // mark: behind-flush a
			},
			func() error { return r.Barrier(r.ctx) },
			func() error { return r.is(2, func() error { return r.win.Get(1, 5, make([]int64, 1)) }) }) // mark: behind-flush b
	}, pair("behind-flush a", "behind-flush b")},
	{"a source behind a flush that is waited for", func(r *rig) error {
		var h window.Handle
		return seq(
			func() error {
				return r.flushed(func() (err error) {
					h, err = r.win.PutNB(1, 5, r.buf[:1]) // mark: source-behind-flush a
					return err
				})
			},
			func() error {
				return r.is(0, func() error {
					r.buf[0]++
					return h.Wait(r.ctx) // mark: source-behind-flush b
				})
			})
	}, pair("source-behind-flush a", "source-behind-flush b")},
	{"a source before a flush that is waited for", func(r *rig) error {
		return r.is(0, func() error {
			h, err := r.win.PutNB(1, 5, r.buf[:1])
			err = errors.Join(err, r.flushed(func() error { return nil }))
			r.buf[0]++
			return errors.Join(err, h.Wait(r.ctx))
		})
	}, nil},
	{"two puts of one line from the own part, of which one is waited for", func(r *rig) error {
		return seq(
			func() error {
				return r.is(2, func() error {
					var hs []window.Handle
					for target := range 2 {
						h, err := r.win.PutNB(target, 8, r.win.Local()[3:5]) // mark: twins-put a
						if err != nil {
							return err
						}
						hs = append(hs, h)
					}
					return hs[0].Wait(r.ctx)
				})
			},
			func() error { return r.Barrier(r.ctx) },
			func() error {
				return r.is(0, func() error { return r.win.Put(2, 3, []int64{0}) }) // mark: twins-put b
			})
	}, pair("twins-put a", "twins-put b")},
	{"two puts of one line from the own part, of which one is flushed", func(r *rig) error {
		return seq(
			func() error {
				return r.is(2, func() error {
					for target := range 2 {
						if _, err := r.win.PutNB(target, 8, r.win.Local()[3:5]); err != nil { // mark: twins-flush a
							return err
						}
					}
					return r.win.Flush(0)
				})
			},
			func() error { return r.Barrier(r.ctx) },
			func() error {
				return r.is(0, func() error { return r.win.Put(2, 3, []int64{0}) }) // mark: twins-flush b
			})
	}, pair("twins-flush a", "twins-flush b")},
	{"two gets of one line, of which one is waited for", func(r *rig) error {
		return seq(
			func() error {
				return r.is(1, func() error {
					var hs []window.Handle
					for i := range 2 {
						h, err := r.win.GetNB(2, 2+i, make([]int64, 2)) // mark: twins-get a
						if err != nil {
							return err
						}
						hs = append(hs, h)
					}
					return hs[0].Wait(r.ctx)
				})
			},
			func() error { return r.Barrier(r.ctx) },
			func() error {
				return r.is(0, func() error { return r.win.Put(2, 3, []int64{0}) }) // mark: twins-get b
			})
	}, pair("twins-get a", "twins-get b")},
	{"two puts of one line from the own part, both waited for", func(r *rig) error {
		return seq(
			func() error {
				return r.is(2, func() error {
					var hs window.Handles
					for target := range 2 {
						h, err := r.win.PutNB(target, 8, r.win.Local()[3:5])
						if err != nil {
							return err
						}
						hs = append(hs, h)
					}
					return hs.Wait(r.ctx)
				})
			},
			func() error { return r.Barrier(r.ctx) },
			func() error { return r.is(0, func() error { return r.win.Put(2, 3, []int64{0}) }) })
	}, nil},
}
