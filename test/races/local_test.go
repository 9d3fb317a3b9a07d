package races_test

import (
	"errors"
	"slices"
	"sync/atomic"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// look reads an element as plain memory.
//
//go:noinline
func (r *rig) look(v int64) { r.sum += v }

// instruction is the name of a program.
const instruction = "an atomic instruction and a put"

// undeclared are programs that use their parts as plain memory, and do not say so.
var undeclared = []program{
	{"put and a load", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return r.win.Put(2, 3, one) }), // mark: load a
			r.is(2, func() error {
				r.look(r.win.Local()[3]) // mark: load b
				return nil
			}))
	}, pair("load a", "load b")},
	{"get and a store", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return r.win.Get(2, 3, make([]int64, 1)) }), // mark: store a
			r.is(2, func() error {
				r.win.Local()[3] = 7 // mark: store b
				return nil
			}))
	}, pair("store a", "store b")},
	{"put and a store", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return r.win.Put(2, 3, one) }), // mark: put-store a
			r.is(2, func() error {
				r.win.Local()[3] = 7 // mark: put-store b
				return nil
			}))
	}, pair("put-store a", "put-store b")},
	{"get and a load", func(r *rig) error {
		r.look(r.win.Local()[3])
		return r.win.Get(2, 3, make([]int64, 1))
	}, nil},
	{"a load and a store beside puts on the same page", func(r *rig) error {
		mine := r.win.Local()
		mine[8] = mine[9]
		return r.win.Put(2, r.Rank(), one)
	}, nil},
	{"a store after loads of the same page", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return r.win.Get(2, 3, make([]int64, 1)) }), // mark: upgrade a
			r.is(2, func() error {
				mine := r.win.Local()
				r.look(mine[9])
				r.look(mine[10])
				mine[3] = 5 // mark: upgrade b
				return nil
			}))
	}, pair("upgrade a", "upgrade b")},
	{"a copy", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return r.win.Put(2, 4, four) }), // mark: copy a
			r.is(2, func() error {
				copy(r.buf, r.win.Local()[4:8]) // mark: copy b
				return nil
			}))
	}, pair("copy a", "copy b")},
	{"a sort", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return r.win.Put(2, 0, make([]int64, 16)) }), // mark: sort a
			r.is(2, func() error {
				slices.Sort(r.win.Local()) // mark: sort b
				return nil
			}))
	}, pair("sort a", "sort b")},
	{"an atomic instruction and an atomic", func(r *rig) error {
		atomic.AddInt64(&r.win.Local()[3], 1)
		_, err := window.FetchAdd(r.win, 2, 3, 1)
		return err
	}, nil},
	{instruction, func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return r.win.Put(2, 3, one) }), // mark: instruction a
			r.is(2, func() error {
				atomic.AddInt64(&r.win.Local()[3], 1) // mark: instruction b
				return nil
			}))
	}, pair("instruction a", "instruction b")},
	{"an atomic and a store", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { _, err := window.FetchAdd(r.win, 2, 3, 1); return err }), // mark: fetch-store a
			r.is(2, func() error {
				r.win.Local()[3] = 7 // mark: fetch-store b
				return nil
			}))
	}, pair("fetch-store a", "fetch-store b")},
	{"a load behind a barrier that flushes nothing", func(r *rig) error {
		return seq(func() error { return r.is(0, func() error { return r.win.Put(1, 3, one) }) }, // mark: unflushed load a
			func() error { return r.Barrier(r.ctx) },
			func() error {
				return r.is(1, func() error {
					r.look(r.win.Local()[3]) // mark: unflushed load b
					return nil
				})
			})
	}, pair("unflushed load a", "unflushed load b")},
	{"the same page in the next epoch", func(r *rig) error {
		mine := r.win.Local()
		mine[5] = 1
		return seq(r.fence, func() error { return r.is(0, func() error { return r.win.Put(2, 3, one) }) }, // mark: again a
			func() error {
				return r.is(2, func() error {
					r.look(mine[3]) // mark: again b
					return nil
				})
			})
	}, pair("again a", "again b")},
	{"the destination of a get that was not waited for", func(r *rig) error {
		return r.is(0, func() error {
			h, err := r.win.GetNB(1, 3, r.win.Local()[3:4]) // mark: early a
			r.look(r.win.Local()[3])                        // mark: early b
			return errors.Join(err, h.Wait(r.ctx))
		})
	}, pair("early a", "early b")},
	{"an array's own elements", func(r *rig) error {
		a, err := pgas.NewArray[int64](r.ctx, r.Team(), 3*ranks, pgas.Cyclic())
		if err != nil {
			return err
		}
		err = errors.Join(
			r.is(2, func() error {
				for _, x := range a.Mine() {
					*x = 7 // mark: mine b
				}
				return nil
			}),
			r.is(0, func() error { _, err := a.At(2); return err })) // mark: mine a
		return errors.Join(err, a.Free(r.ctx))
	}, pair("mine a", "mine b")},
	{"an area of a matrix and an element of it", func(r *rig) error {
		m, err := pgas.NewMatrix[int64](r.ctx, r.Team(), 3, 4, pgas.Grid{Rows: ranks})
		if err != nil {
			return err
		}
		err = errors.Join(
			r.is(0, func() error { return pgas.AccumulateArea(m, pgas.Area{Row: 1, Rows: 2, Cols: 2}, four, pgsync.Sum) }), // mark: area a
			r.is(1, func() error { return m.Scatter(one, [][2]int{{2, 1}}) }))                                              // mark: area b
		return errors.Join(err, m.Free(r.ctx))
	}, pair("area a", "area b")},
	{"attached memory and a store", func(r *rig) error {
		return r.withLent(func(l *lent) error {
			return errors.Join(
				r.is(0, func() error { return l.win.Get(2, 3, make([]int64, 1)) }), // mark: lent store a
				r.is(2, func() error {
					l.d.Local(l.ref)[3] = 7 // mark: lent store b
					return nil
				}))
		})
	}, pair("lent store a", "lent store b")},
	{"stores, fences and gets", func(r *rig) error {
		for k := range 3 {
			for i := range r.win.Local() {
				r.win.Local()[i] += int64(k)
			}
			err := seq(r.fence, func() error { return r.win.Get((r.Rank()+1)%ranks, 0, r.buf) }, r.fence)
			if err != nil {
				return err
			}
		}
		return nil
	}, nil},
	{"a load behind a signal", func(r *rig) error {
		switch r.Rank() {
		case 0:
			return r.win.PutSignal(1, 3, one, r.sig.Signal(0), 1)
		case 1:
			if err := r.wait(0, 1); err != nil {
				return err
			}
			r.look(r.win.Local()[3])
			r.win.Local()[3] = 4
		}
		return nil
	}, nil},
	{"stores under a lock", func(r *rig) error {
		return errors.Join(r.lock.Lock(r.ctx), func() error {
			if r.Rank() == 1 {
				r.win.Local()[3]++
				return nil
			}
			return errors.Join(r.win.Get(1, 3, r.buf[:1]), r.win.Put(1, 3, r.buf[:1]), r.win.Flush(1))
		}(), r.lock.Unlock())
	}, nil},
	{"a flush, a barrier and a load", func(r *rig) error {
		return seq(func() error { return r.is(0, func() error { return r.win.Put(1, 3, one) }) },
			r.win.FlushAll, func() error { return r.Barrier(r.ctx) }, func() error { r.look(r.win.Local()[3]); return nil })
	}, nil},
	{"a part as a source that was written before", func(r *rig) error {
		mine := r.win.Local()
		mine[3] = 4
		err := errors.Join(r.win.Put((r.Rank()+1)%ranks, 8+r.Rank(), mine[3:4]), r.win.Put(r.Rank(), 3, one), r.win.Flush(r.Rank()))
		r.look(mine[3])
		return err
	}, nil},
	{"parts as buffers of collectives", func(r *rig) error {
		mine := r.win.Local()
		mine[0] = int64(r.Rank())
		err := seq(func() error { return pgsync.AllReduce(r.ctx, r.Team(), mine[:4], mine[:4], pgsync.Sum) },
			func() error { return pgsync.AllGather(r.ctx, r.Team(), mine[4:4+ranks], mine[1:2]) },
			func() error { return pgsync.Broadcast(r.ctx, r.Team(), mine[8:12], 1) })
		r.look(mine[0] + mine[5] + mine[9])
		return err
	}, nil},
	{"stores to what Writing has given", func(r *rig) error {
		part, err := r.win.Writing(4*r.Rank(), 4*r.Rank()+4)
		if err != nil {
			return err
		}
		part[1] = 5
		return seq(r.fence, func() error { return r.win.Get(2, 0, r.buf) })
	}, nil},
	{"whole arrays", func(r *rig) error {
		a, err := pgas.NewArray[int64](r.ctx, r.Team(), 50, pgas.Block())
		if err != nil {
			return err
		}
		b, err := pgas.NewArray[int64](r.ctx, r.Team(), 50, pgas.Cyclic())
		if err != nil {
			return err
		}
		return seq(func() error { return a.Fill(r.ctx, 3) }, func() error { return b.CopyFrom(r.ctx, a) },
			func() error { return a.Combine(r.ctx, a, b, func(x, y int64) int64 { return x + y }) },
			func() error { _, err := pgas.Reduce(r.ctx, a, pgsync.Sum); return err },
			func() error { return a.Free(r.ctx) }, func() error { return b.Free(r.ctx) })
	}, nil},
	{"whole matrices", func(r *rig) error {
		a, err := pgas.NewMatrix[int64](r.ctx, r.Team(), 5, 6, pgas.Grid{Rows: ranks, Ghost: 1})
		if err != nil {
			return err
		}
		b, err := pgas.NewMatrix[int64](r.ctx, r.Team(), 5, 6, pgas.Grid{Rows: 1})
		if err != nil {
			return err
		}
		area, at := pgas.Area{Row: 1, Rows: 2, Col: 2, Cols: 2}, [][2]int{{4, r.Rank()}}
		return seq(func() error { return a.Fill(r.ctx, 3) }, func() error { return b.CopyFrom(r.ctx, a) },
			func() error { return a.Combine(r.ctx, a, b, func(x, y int64) int64 { return x + y }) },
			func() error { return pgas.AccumulateArea(a, area, four, pgsync.Sum) },
			func() error { return a.Scatter(one, at) },
			func() error { return a.Resize(r.ctx, 7, 7, pgas.Grid{}) }, func() error { return a.Gather(r.buf[:1], at) },
			func() error { return a.Free(r.ctx) }, func() error { return b.Free(r.ctx) })
	}, nil},
}
