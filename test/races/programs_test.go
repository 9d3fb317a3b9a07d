package races_test

import (
	"context"
	"errors"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// rig is what a program works with. All its objects belong to all three ranks.
type rig struct {
	*pgas.World
	ctx  context.Context
	win  *window.Window[int64] // 16 elements on each rank
	sig  *pgsync.Signals
	lock *pgsync.Lock
	buf  []int64 // 16 elements on the heap
	sum  int64   // of what the program has looked at
}

const ranks = 3

// program is a small program and its label: the pairs of its lines that race, by the marks at their ends. The categories
// are those of RMARaceBench (Schwitanski et al. 2022): conflicts of kinds of accesses, near and far, and every way to
// order them, and to fail to.
type program struct {
	name  string
	run   func(r *rig) error
	races [][2]string
}

// is runs f on one rank.
func (r *rig) is(rank int, f func() error) error {
	if r.Rank() != rank {
		return nil
	}
	return f()
}

func (r *rig) wait(sig int, v uint64) error {
	_, err := r.sig.Signal(sig).WaitUntil(r.ctx, pgsync.GreaterOrEqual, v)
	return err
}

func (r *rig) fence() error { return r.win.Fence(r.ctx) }

// seq makes steps until one fails.
func seq(steps ...func() error) error {
	for _, f := range steps {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

func pair(a, b string) [][2]string { return [][2]string{{a, b}} }

var (
	one  = []int64{1}
	four = []int64{1, 2, 3, 4}
)

// conflicts are programs in which ranks 0 and 1 access rank 2 and nothing orders them.
var conflicts = []program{
	{"put and put", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return r.win.Put(2, 3, one) }), // mark: put-put a
			r.is(1, func() error { return r.win.Put(2, 3, one) })) // mark: put-put b
	}, pair("put-put a", "put-put b")},
	{"put and get", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return r.win.Put(2, 3, one) }),              // mark: put-get a
			r.is(1, func() error { return r.win.Get(2, 3, make([]int64, 1)) })) // mark: put-get b
	}, pair("put-get a", "put-get b")},
	{"get and get", func(r *rig) error { return r.win.Get(2, 3, make([]int64, 1)) }, nil},
	{"puts beside each other", func(r *rig) error { return r.win.Put(2, 4*r.Rank(), four) }, nil},
	{"puts that overlap", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return r.win.Put(2, 0, four) }), // mark: overlap a
			r.is(1, func() error { return r.win.Put(2, 3, four) })) // mark: overlap b
	}, pair("overlap a", "overlap b")},
	{"the same place on two ranks", func(r *rig) error { return r.win.Put((r.Rank()+1)%ranks, 3, one) }, nil},
	{"atomics", func(r *rig) error {
		_, err := window.FetchAdd(r.win, 2, 3, 1)
		return err
	}, nil},
	{"accumulates", func(r *rig) error { return window.Accumulate(r.win, 2, 3, four, pgsync.Sum) }, nil},
	{"accumulate and atomic", func(r *rig) error {
		_, err := window.Swap(r.win, 2, 3, 7)
		return errors.Join(err, window.GetAccumulate(r.win, 2, 3, four, make([]int64, 4), pgsync.Max),
			window.Accumulate(r.win, 2, 3, four, pgsync.Sum))
	}, nil},
	{"atomic and put", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { _, err := window.FetchAdd(r.win, 2, 3, 1); return err }), // mark: atomic-put a
			r.is(1, func() error { return r.win.Put(2, 3, one) }))                           // mark: atomic-put b
	}, pair("atomic-put a", "atomic-put b")},
	{"atomic and get", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { _, err := window.CompareSwap(r.win, 2, 3, 0, 1); return err }), // mark: atomic-get a
			r.is(1, func() error { return r.win.Get(2, 3, make([]int64, 1)) }))                    // mark: atomic-get b
	}, pair("atomic-get a", "atomic-get b")},
	{"accumulate and get", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return window.Accumulate(r.win, 2, 3, one, pgsync.Sum) }), // mark: acc-get a
			r.is(1, func() error { return r.win.Get(2, 3, make([]int64, 1)) }))               // mark: acc-get b
	}, pair("acc-get a", "acc-get b")},
	{"accumulate and put", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return window.Accumulate(r.win, 2, 3, one, pgsync.Sum) }), // mark: acc-put a
			r.is(1, func() error { return r.win.Put(2, 3, one) }))                            // mark: acc-put b
	}, pair("acc-put a", "acc-put b")},
	{"get and local write", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return r.win.Get(2, 3, make([]int64, 1)) }), // mark: get-local a
			r.is(2, func() error { return r.win.CheckWrite(2, 5) }))            // mark: get-local b
	}, pair("get-local a", "get-local b")},
	{"get and local read", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return r.win.Get(2, 3, make([]int64, 1)) }),
			r.is(2, func() error { return r.win.CheckRead(2, 5) }))
	}, nil},
	{"put and local read", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return r.win.Put(2, 3, one) }),  // mark: put-local a
			r.is(2, func() error { return r.win.CheckRead(2, 5) })) // mark: put-local b
	}, pair("put-local a", "put-local b")},
	{"atomic and local write", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { _, err := window.FetchOr(r.win, 2, 3, 1); return err }), // mark: atomic-local a
			r.is(2, func() error { return r.win.CheckWrite(3, 4) }))                        // mark: atomic-local b
	}, pair("atomic-local a", "atomic-local b")},
	{"the part as a source", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return r.win.Put(2, 3, one) }),                // mark: source a
			r.is(2, func() error { return r.win.Put(1, 0, r.win.Local()[2:5]) })) // mark: source b
	}, pair("source a", "source b")},
	{"the part as a destination", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return r.win.Get(2, 3, make([]int64, 1)) }),   // mark: dest a
			r.is(2, func() error { return r.win.Get(1, 0, r.win.Local()[2:5]) })) // mark: dest b
	}, pair("dest a", "dest b")},
	{"strided, between each other", func(r *rig) error {
		return r.win.PutStrided(2, r.Rank(), ranks, four, 1, 4)
	}, nil},
	{"strided, on each other", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return r.win.PutStrided(2, 0, 3, four, 1, 4) }), // mark: strided a
			r.is(1, func() error { return r.win.PutStrided(2, 1, 2, four, 1, 4) })) // mark: strided b
	}, pair("strided a", "strided b")},
	{"sections", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return r.win.PutSection(2, 0, four, window.Packed(2, 2, 4)) }),             // mark: section a
			r.is(1, func() error { return r.win.GetSection(2, 5, make([]int64, 4), window.Packed(2, 2, 4)) })) // mark: section b
	}, pair("section a", "section b")},
	{"indexed and scattered", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return r.win.PutIndexed(2, []int{9, 1, 5, 7}, four) }),                               // mark: indexed a
			r.is(1, func() error { return r.win.Gather(make([]int64, 2), func(i int) (int, int) { return 2, 4 + i }) })) // mark: indexed b
	}, pair("indexed a", "indexed b")},
	{"scattered, apart", func(r *rig) error {
		return r.win.Scatter(four, func(i int) (int, int) { return i % ranks, r.Rank() + ranks*(i/ranks) })
	}, nil},
}

// orders are programs in which rank 0 puts into rank 1's part, and in which something orders that before what others do,
// or fails to.
var orders = []program{
	{"fence", func(r *rig) error {
		return seq(func() error { return r.is(0, func() error { return r.win.Put(1, 3, one) }) }, r.fence,
			func() error { return r.win.Get(1, 3, make([]int64, 1)) })
	}, nil},
	{"barrier without a flush", func(r *rig) error {
		return seq(func() error { return r.is(0, func() error { return r.win.Put(1, 3, one) }) }, // mark: unflushed a
			func() error { return r.Barrier(r.ctx) },
			func() error { return r.is(2, func() error { return r.win.Get(1, 3, make([]int64, 1)) }) }) // mark: unflushed b
	}, pair("unflushed a", "unflushed b")},
	{"flush and barrier", func(r *rig) error {
		return seq(func() error { return r.is(0, func() error { return r.win.Put(1, 3, one) }) },
			func() error { return r.win.Flush(1) }, func() error { return r.Barrier(r.ctx) },
			func() error { return r.is(2, func() error { return r.win.Put(1, 3, one) }) })
	}, nil},
	{"flush of another rank", func(r *rig) error {
		return seq(func() error { return r.is(0, func() error { return r.win.Put(1, 3, one) }) }, // mark: other flush a
			func() error { return r.win.Flush(2) }, func() error { return r.Barrier(r.ctx) },
			func() error { return r.is(1, func() error { return r.win.CheckRead(3, 4) }) }) // mark: other flush b
	}, pair("other flush a", "other flush b")},
	{"flush, and nobody is told", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return errors.Join(r.win.Put(1, 3, one), r.win.Flush(1)) }), // mark: untold a
			r.is(1, func() error { return r.win.CheckRead(3, 4) }))                             // mark: untold b
	}, pair("untold a", "untold b")},
	{"signal", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return r.win.PutSignal(1, 3, one, r.sig.Signal(0), 1) }),
			r.is(1, func() error {
				return seq(func() error { return r.wait(0, 1) }, func() error { return r.win.CheckWrite(3, 4) })
			}))
	}, nil},
	{"signal that is not waited for", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return r.win.PutSignal(1, 3, one, r.sig.Signal(0), 1) }), // mark: not awaited a
			r.is(1, func() error { return r.win.CheckRead(3, 4) }))                          // mark: not awaited b
	}, pair("not awaited a", "not awaited b")},
	{"signal to somebody else", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error {
				return errors.Join(r.win.Put(1, 3, one), r.sig.Signal(0).Set(2, 1)) // mark: elsewhere a
			}),
			r.is(2, func() error {
				return seq(func() error { return r.wait(0, 1) }, func() error {
					return r.win.Get(1, 3, make([]int64, 1)) // mark: elsewhere b
				})
			}))
	}, pair("elsewhere a", "elsewhere b")},
	{"signal before the put", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error {
				return errors.Join(r.sig.Signal(0).Set(1, 1), r.win.Put(1, 3, one)) // mark: too early a
			}),
			r.is(1, func() error {
				return seq(func() error { return r.wait(0, 1) }, func() error {
					return r.win.CheckRead(3, 4) // mark: too early b
				})
			}))
	}, pair("too early a", "too early b")},
	{"a chain of signals", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error { return r.win.PutSignal(1, 3, one, r.sig.Signal(0), 1) }),
			r.is(1, func() error {
				return seq(func() error { return r.wait(0, 1) }, func() error { return r.sig.Signal(1).Add(2, 1) })
			}),
			r.is(2, func() error {
				return seq(func() error { return r.wait(1, 1) }, func() error { return r.win.Put(1, 3, one) })
			}))
	}, nil},
	{"signals that are counted", func(r *rig) error {
		if r.Rank() != 1 {
			return r.win.PutSignalAdd(1, r.Rank(), one, r.sig.Signal(2), 1)
		}
		return seq(func() error { return r.wait(2, 2) }, func() error { return r.win.CheckRead(0, 4) })
	}, nil},
	{"lock", func(r *rig) error {
		v := make([]int64, 1)
		return seq(func() error { return r.lock.Lock(r.ctx) }, func() error { return r.win.Get(1, 3, v) },
			func() error { v[0]++; return r.win.Put(1, 3, v) }, r.lock.Unlock)
	}, nil},
	{"lock by one of two", func(r *rig) error {
		return errors.Join(
			r.is(0, func() error {
				return seq(func() error { return r.lock.Lock(r.ctx) }, func() error { return r.win.Put(1, 3, one) }, r.lock.Unlock) // mark: half a
			}),
			r.is(2, func() error { return r.win.Put(1, 3, one) })) // mark: half b
	}, pair("half a", "half b")},
	{"lock of a part", func(r *rig) error {
		return seq(func() error { return r.win.Lock(r.ctx, 1, window.LockExclusive) }, func() error { return r.win.Put(1, 3, one) },
			func() error { return r.win.Unlock(1) })
	}, nil},
	{"shared locks of readers", func(r *rig) error {
		if r.Rank() == 0 {
			return seq(func() error { return r.win.Lock(r.ctx, 1, window.LockExclusive) }, func() error { return r.win.Put(1, 3, one) },
				func() error { return r.win.Unlock(1) })
		}
		return seq(func() error { return r.win.Lock(r.ctx, 1, window.LockShared) }, func() error { return r.win.Get(1, 3, make([]int64, 1)) },
			func() error { return r.win.Unlock(1) })
	}, nil},
	{"shared locks of writers", func(r *rig) error {
		if r.Rank() == 2 {
			return nil
		}
		return seq(func() error { return r.win.LockAll(r.ctx) }, func() error {
			return r.win.Put(1, 3, one) // mark: shared
		}, r.win.UnlockAll)
	}, pair("shared", "shared")},
	{"post, start, complete, wait", func(r *rig) error {
		switch r.Rank() {
		case 0:
			return seq(func() error { return r.win.Start(r.ctx, []int{1}) }, func() error { return r.win.Put(1, 3, one) }, r.win.Complete)
		case 1:
			return seq(func() error { return r.win.CheckWrite(0, 16) }, func() error { return r.win.Post([]int{0}) },
				func() error { return r.win.Wait(r.ctx) }, func() error { return r.win.CheckRead(0, 16) })
		}
		return nil
	}, nil},
	{"read in an exposure epoch", func(r *rig) error {
		switch r.Rank() {
		case 0:
			return seq(func() error { return r.win.Start(r.ctx, []int{1}) }, func() error {
				return r.win.Put(1, 3, one) // mark: exposed a
			}, r.win.Complete)
		case 1:
			return seq(func() error { return r.win.Post([]int{0}) }, func() error {
				return r.win.CheckRead(3, 4) // mark: exposed b
			}, func() error { return r.win.Wait(r.ctx) })
		}
		return nil
	}, pair("exposed a", "exposed b")},
	{"an atomic as a flag", func(r *rig) error {
		switch r.Rank() {
		case 0:
			_, err := int64(0), r.win.Put(1, 3, one)
			err = errors.Join(err, r.win.Flush(1))
			_, e := window.Swap(r.win, 1, 8, 1)
			return errors.Join(err, e)
		case 2:
			for {
				if v, err := window.FetchAdd(r.win, 1, 8, 0); err != nil || v == 1 {
					return errors.Join(err, r.win.Get(1, 3, make([]int64, 1)))
				}
			}
		}
		return nil
	}, nil},
	{"an atomic as a flag, and no flush", func(r *rig) error {
		switch r.Rank() {
		case 0:
			err := r.win.Put(1, 3, one) // mark: flag a
			_, e := window.Swap(r.win, 1, 8, 1)
			return errors.Join(err, e)
		case 2:
			for {
				if v, err := window.FetchAdd(r.win, 1, 8, 0); err != nil || v == 1 {
					return errors.Join(err, r.win.Get(1, 3, make([]int64, 1))) // mark: flag b
				}
			}
		}
		return nil
	}, pair("flag a", "flag b")},
	{"order and an accumulate as a flag", func(r *rig) error {
		switch r.Rank() {
		case 0:
			return errors.Join(r.win.Put(1, 3, one), r.win.Order(1), window.Accumulate(r.win, 1, 8, one, pgsync.Sum), r.win.Flush(1))
		case 2:
			for {
				if v, err := window.FetchAdd(r.win, 1, 8, 0); err != nil || v == 1 {
					return errors.Join(err, r.win.Get(1, 3, make([]int64, 1)))
				}
			}
		}
		return nil
	}, nil},
	{"collectives", func(r *rig) error {
		v := []int64{1}
		return seq(func() error { return r.is(1, func() error { return r.win.CheckWrite(3, 4) }) },
			func() error { return pgsync.AllReduce(r.ctx, r.Team(), v, v, pgsync.Sum) },
			func() error { return r.win.Get(1, 3, make([]int64, 1)) })
	}, nil},
	{"a barrier of a smaller team", func(r *rig) error {
		color := 0
		if r.Rank() == 2 {
			color = 1
		}
		team, err := r.Team().Split(r.ctx, color, 0)
		if err != nil {
			return err
		}
		err = seq(func() error {
			return r.is(0, func() error {
				return errors.Join(r.win.Put(1, 3, one), r.win.Flush(1)) // mark: team a
			})
		},
			func() error { return team.Barrier(r.ctx) },
			func() error { return r.is(1, func() error { return r.win.CheckRead(3, 4) }) },
			func() error { return r.is(2, func() error { return r.win.Get(1, 3, make([]int64, 1)) }) }) // mark: team b
		return errors.Join(err, team.Free(r.ctx))
	}, pair("team a", "team b")},
}

// later are orders that take objects of their own.
var later = []program{
	{"read-write lock", func(r *rig) error {
		return r.withRW(func(l *pgsync.RWLock) error {
			if r.Rank() == 0 {
				return seq(func() error { return l.Lock(r.ctx) }, func() error { return r.win.Put(1, 3, one) }, l.Unlock)
			}
			return seq(func() error { return l.RLock(r.ctx) }, func() error { return r.win.Get(1, 3, make([]int64, 1)) }, l.RUnlock)
		})
	}, nil},
	{"a put by readers", func(r *rig) error {
		return r.withRW(func(l *pgsync.RWLock) error {
			return seq(func() error { return l.RLock(r.ctx) }, func() error {
				return r.win.Put(1, 3, one) // mark: readers
			}, l.RUnlock)
		})
	}, pair("readers", "readers")},
	{"event", func(r *rig) error {
		e, err := pgsync.NewEvent(r.ctx, r.Team())
		if err != nil {
			return err
		}
		if r.Rank() == 1 {
			err = seq(func() error { return e.Wait(r.ctx, 2) }, func() error { return r.win.CheckRead(0, 4) })
		} else {
			err = seq(func() error { return r.win.Put(1, r.Rank(), one) }, func() error { return e.Post(1, 1) })
		}
		return errors.Join(err, e.Free(r.ctx))
	}, nil},
	{"a barrier that is started", func(r *rig) error {
		return seq(func() error { return r.is(0, func() error { return r.win.Put(1, 3, one) }) },
			func() error { return r.win.FlushAll() },
			func() error { return r.Team().BarrierNB().Wait(r.ctx) },
			func() error { return r.is(2, func() error { return r.win.Get(1, 3, make([]int64, 1)) }) })
	}, nil},
}

// withRW runs f with a lock of its own.
func (r *rig) withRW(f func(l *pgsync.RWLock) error) error {
	l, err := pgsync.NewRWLock(r.ctx, r.Team())
	if err != nil {
		return err
	}
	return errors.Join(f(l), l.Free(r.ctx))
}

// own are programs of one rank alone.
var own = []program{
	{"put and get without a flush", func(r *rig) error {
		return r.is(0, func() error {
			return errors.Join(r.win.Put(1, 3, one), // mark: own get a
				r.win.Get(1, 3, make([]int64, 1))) // mark: own get b
		})
	}, pair("own get a", "own get b")},
	{"put, flush and get", func(r *rig) error {
		return r.is(0, func() error {
			return errors.Join(r.win.Put(1, 3, one), r.win.Flush(1), r.win.Get(1, 3, make([]int64, 1)))
		})
	}, nil},
	{"puts in no order", func(r *rig) error {
		return r.is(0, func() error {
			return errors.Join(r.win.Put(1, 3, one), // mark: own put a
				r.win.Put(1, 3, one)) // mark: own put b
		})
	}, pair("own put a", "own put b")},
	{"puts in order", func(r *rig) error {
		return r.is(0, func() error { return errors.Join(r.win.Put(1, 3, one), r.win.Order(1), r.win.Put(1, 3, one)) })
	}, nil},
	{"get and put", func(r *rig) error {
		return r.is(0, func() error { return errors.Join(r.win.Get(1, 3, make([]int64, 1)), r.win.Put(1, 3, one)) })
	}, nil},
	{"get that is not waited for", func(r *rig) error {
		return r.is(0, func() error {
			h, err := r.win.GetNB(1, 3, r.buf[:1])       // mark: get-nb a
			err = errors.Join(err, r.win.Put(1, 3, one)) // mark: get-nb b
			return errors.Join(err, h.Wait(r.ctx))
		})
	}, pair("get-nb a", "get-nb b")},
	{"get that is waited for", func(r *rig) error {
		return r.is(0, func() error {
			h, err := r.win.GetNB(1, 3, r.buf[:1])
			return errors.Join(err, h.Wait(r.ctx), r.win.Put(1, 3, r.buf[:1]))
		})
	}, nil},
	{"a buffer that is still being filled", func(r *rig) error {
		return r.is(0, func() error {
			h, err := r.win.GetNB(1, 3, r.buf[:4])              // mark: filled a
			err = errors.Join(err, r.win.Put(2, 0, r.buf[2:6])) // mark: filled b
			return errors.Join(err, h.Wait(r.ctx))
		})
	}, pair("filled a", "filled b")},
	{"a buffer that is read twice", func(r *rig) error {
		return r.is(0, func() error {
			h, err := r.win.PutNB(1, 3, r.buf[:4])
			err = errors.Join(err, r.win.Put(2, 0, r.buf[2:6]))
			return errors.Join(err, h.Wait(r.ctx))
		})
	}, nil},
	{"a source that is changed too early", func(r *rig) error {
		return r.is(0, func() error {
			h, err := r.win.PutNB(1, 3, r.buf[:4]) // mark: changed a
			r.buf[2] = 99
			return errors.Join(err, h.Wait(r.ctx)) // mark: changed b
		})
	}, pair("changed a", "changed b")},
	{"a source that is changed after the flush", func(r *rig) error {
		return r.is(0, func() error {
			h, err := r.win.PutNB(1, 3, r.buf[:4])
			err = errors.Join(err, r.win.Flush(1))
			r.buf[2] = 99
			return errors.Join(err, h.Wait(r.ctx))
		})
	}, nil},
	{"a destination that is changed too early", func(r *rig) error {
		return r.is(0, func() error {
			h, err := r.win.GetNB(1, 3, r.buf[:4]) // mark: spoilt a
			r.buf[2] = 99
			return errors.Join(err, h.Wait(r.ctx)) // mark: spoilt b
		})
	}, pair("spoilt a", "spoilt b")},
	{"a destination after flush-local", func(r *rig) error {
		return r.is(0, func() error {
			h, err := r.win.GetNB(1, 3, r.buf[:4])
			err = errors.Join(err, r.win.FlushLocal(1))
			r.buf[2] = 99
			return errors.Join(err, h.Wait(r.ctx))
		})
	}, nil},
}
