package firehose

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// counts are what a scenario leaves behind.
type counts struct {
	hit, pend, miss, moves   uint64
	reg, dereg, resurrected  uint64
	peak                     int64 // units
	regCalls, deregCalls     uint64
	bucketHits, bucketMisses uint64
}

func (n *net) counts() counts {
	h, s := n.holders[0].Stats(), n.owners[1].s.Stats()
	return counts{
		h.Hits, h.Joins, h.Misses, h.Moves, s.Registered, s.Deregistered, s.Resurrected, s.Peak,
		s.RegisterCalls, s.DeregisterCalls, h.BucketHits, h.BucketMisses,
	}
}

func cyclic(n *net, buckets uint64) {
	for range 3 {
		for b := range buckets {
			n.use(10 * b)
		}
	}
}

// TestScenarios follows two ranks through the life of a few buckets, and counts. Buckets are named by their index.
func TestScenarios(t *testing.T) {
	for _, c := range []struct {
		name  string
		f, v  int64
		local uint64 // buckets that the owner's own use had registered
		run   func(t *testing.T, n *net)
		want  counts // calls and buckets are compared where they are given
		idle  []uint64
		table []uint64
	}{
		{
			name: "one bucket again and again", f: 4, v: 2,
			run: func(t *testing.T, n *net) {
				n.use(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
				require.Equal(t, []uint64{0}, n.holders[0].peers[1].idleOf())
			},
			want: counts{hit: 9, miss: 1, reg: 1, peak: 1}, table: []uint64{0},
		}, {
			name: "the share is filled", f: 4, v: 2,
			run: func(t *testing.T, n *net) {
				n.use(0, 10, 20, 30)
				require.Equal(t, n.budget.Share, n.holders[0].Used(1))
				require.Zero(t, n.owners[1].s.Stats().Own)
			},
			want: counts{miss: 4, reg: 4, peak: 4}, table: []uint64{0, 10, 20, 30},
		}, {
			name: "one beyond the share", f: 4, v: 2,
			run: func(t *testing.T, n *net) {
				n.use(0, 10, 20, 30, 40)
				require.Equal(t, int64(1), n.owners[1].s.Stats().Own)
			},
			want: counts{miss: 5, moves: 1, reg: 5, peak: 5}, idle: []uint64{0}, table: []uint64{10, 20, 30, 40},
		}, {
			name: "beyond share and victims", f: 4, v: 2,
			run:  func(_ *testing.T, n *net) { n.use(0, 10, 20, 30, 40, 50, 60) },
			want: counts{miss: 7, moves: 3, reg: 7, dereg: 1, peak: 6}, idle: []uint64{10, 20},
		}, {
			name: "a victim returns", f: 4, v: 2,
			run:  func(_ *testing.T, n *net) { n.use(0, 10, 20, 30, 40, 50, 60, 20) },
			want: counts{miss: 8, moves: 4, reg: 7, dereg: 1, resurrected: 1, peak: 6}, idle: []uint64{10, 30},
		}, {
			name: "cyclic over the share", f: 4, v: 2,
			run:  func(_ *testing.T, n *net) { cyclic(n, 4) },
			want: counts{hit: 8, miss: 4, reg: 4, peak: 4},
		}, {
			name: "cyclic over one more", f: 4, v: 2,
			run:  func(_ *testing.T, n *net) { cyclic(n, 5) },
			want: counts{miss: 15, moves: 11, reg: 5, resurrected: 10, peak: 5},
		}, {
			name: "cyclic over share and victims", f: 4, v: 2,
			run:  func(_ *testing.T, n *net) { cyclic(n, 6) },
			want: counts{miss: 18, moves: 14, reg: 6, resurrected: 12, peak: 6},
		}, {
			name: "cyclic over one more than these: the cliff", f: 4, v: 2,
			run:  func(_ *testing.T, n *net) { cyclic(n, 7) },
			want: counts{miss: 21, moves: 17, reg: 21, dereg: 15, peak: 6},
		}, {
			name: "neighbours travel together", f: 8, v: 2,
			run:  func(_ *testing.T, n *net) { n.useRun(0, 4) },
			want: counts{miss: 1, reg: 4, peak: 4, regCalls: 1},
		}, {
			name: "only what is missing travels", f: 8, v: 2,
			run: func(t *testing.T, n *net) {
				n.use(0, 2)
				q := n.pin(0, 4)
				var m Move
				require.NoError(t, m.Parse(n.way[0].bytes))
				one, three := MakeBucket(1, 0, 1), MakeBucket(1, 0, 3)
				require.Equal(t, []Run{{one, 1}, {three, 1}}, m.New)
				n.settle()
				n.release(q)
			},
			want: counts{miss: 3, reg: 4, peak: 4, regCalls: 4, bucketHits: 2, bucketMisses: 4},
		}, {
			name: "what is in use is no victim", f: 2, v: 2,
			run: func(t *testing.T, n *net) {
				first := n.pin(0, 1)
				n.settle()
				second := n.pin(10, 1)
				n.settle()
				require.False(t, n.holders[0].Try(n.view(0, 1), new(Request), 20*unit, unit))
				third := n.pin(20, 1)
				require.Empty(t, n.way)
				require.Equal(t, Waiting, third.State())
				require.Equal(t, uint64(2), n.holders[0].Stats().Misses)
				n.release(first)
				require.Len(t, n.way, 1)
				n.settle()
				n.release(third)
				n.release(second)
				require.ElementsMatch(t, []uint64{10, 20}, n.holders[0].peers[1].table(), "0 made way, never 10")
			},
			want: counts{miss: 3, moves: 1, reg: 3, peak: 3},
		}, {
			name: "two requests, one reply", f: 4, v: 2,
			run: func(t *testing.T, n *net) {
				a, b := n.pin(0, 1), n.pin(0, 1)
				require.Len(t, n.way, 1)
				n.settle()
				require.True(t, a.Moved())
				require.False(t, b.Moved())
				require.Equal(t, int32(2), n.holders[0].peers[1].slab[0].ref)
				n.release(a)
				require.Empty(t, n.holders[0].peers[1].idleOf())
				n.release(b)
				require.Equal(t, []uint64{0}, n.holders[0].peers[1].idleOf())
			},
			want: counts{pend: 1, miss: 1, reg: 1, peak: 1},
		}, {
			name: "a request over two moves", f: 4, v: 2,
			run: func(t *testing.T, n *net) {
				a, b := n.pin(0, 2), n.pin(1, 2)
				var m Move
				require.NoError(t, m.Parse(n.way[1].bytes))
				two := MakeBucket(1, 0, 2)
				require.Equal(t, []Run{{two, 1}}, m.New)
				n.deliver(1)
				n.deliver(1)
				n.check()
				require.Equal(t, Waiting, a.State())
				require.Equal(t, Waiting, b.State(), "bucket 1 is still missing")
				n.settle()
				n.release(a)
				n.release(b)
			},
			want: counts{miss: 2, reg: 3, peak: 3, regCalls: 2},
		}, {
			name: "local and remote use of one bucket", f: 4, v: 2, local: 1,
			run: func(t *testing.T, n *net) {
				s := n.owners[1].s
				zero := MakeBucket(1, 0, 0)
				run := Run{zero, 1}
				_, err := s.Pin(run, nil)
				require.NoError(t, err)
				require.Equal(t, int64(1), s.own)
				n.use(0)
				require.Equal(t, int64(1), s.own)
				s.Unpin(run)
				require.Zero(t, s.own)
			},
			want: counts{miss: 1, reg: 1, peak: 1},
		}, {
			name: "without victims, within the share", f: 4, v: 0,
			run:  func(_ *testing.T, n *net) { cyclic(n, 4) },
			want: counts{hit: 8, miss: 4, reg: 4, peak: 4},
		}, {
			name: "without victims, beyond it", f: 4, v: 0,
			run:  func(_ *testing.T, n *net) { cyclic(n, 5) },
			want: counts{miss: 15, moves: 11, reg: 15, dereg: 11, peak: 4},
		}, {
			name: "a swap with full victims", f: 2, v: 1,
			run:  func(_ *testing.T, n *net) { n.use(0, 10, 20, 0) },
			want: counts{miss: 4, moves: 2, reg: 3, resurrected: 1, peak: 3},
		}, {
			name: "memory registered for good", f: 3, v: 4, local: 2,
			run: func(t *testing.T, n *net) {
				o := n.owners[1]
				_, err := o.s.Pin(Run{MakeBucket(1, 0, 100), 2}, nil)
				require.NoError(t, err)
				n.use(100, 0, 10, 20) // the first is told where it lies, and nothing is registered for it
				require.NotContains(t, o.s.idleOf(), uint64(100))
			},
			want: counts{miss: 4, moves: 1, reg: 5, peak: 5},
		}, {
			name: "pieces of a long put", f: 4, v: 2,
			run: func(t *testing.T, n *net) {
				v := n.view(0, 1)
				var sizes []uint64
				for off, left := uint64(0), uint64(10*unit); left > 0; {
					k := n.holders[0].Piece(v, off, left)
					sizes = append(sizes, k/unit)
					n.useRun(off/unit, int(k/unit))
					off, left = off+k, left-k
				}
				require.Equal(t, []uint64{4, 4, 2}, sizes)
			},
			want: counts{miss: 3, moves: 6, reg: 10, dereg: 4, peak: 6, regCalls: 3, deregCalls: 2},
			idle: []uint64{4, 5}, table: []uint64{6, 7, 8, 9},
		}, {
			name: "moves in the wrong order", f: 2, v: 1,
			run: func(t *testing.T, n *net) {
				n.use(0, 10)
				a, b := n.pin(20, 1), n.pin(0, 1)
				n.deliver(1)
				n.check()
				n.settle()
				n.release(a)
				n.release(b)
				require.ElementsMatch(t, []uint64{0, 20}, n.holders[0].peers[1].table())
			},
			want: counts{miss: 4, moves: 2, reg: 3, peak: 3}, idle: []uint64{10},
		}, {
			name: "the same in order", f: 2, v: 1,
			run: func(_ *testing.T, n *net) {
				n.use(0, 10)
				a, b := n.pin(20, 1), n.pin(0, 1)
				n.settle()
				n.release(a)
				n.release(b)
			},
			want: counts{miss: 4, moves: 2, reg: 3, resurrected: 1, peak: 3}, idle: []uint64{10},
		}, {
			name: "two bytes in two buckets", f: 4, v: 2,
			run: func(t *testing.T, n *net) {
				h, v := n.holders[0], n.view(0, 1)
				var q Request
				require.False(t, h.Try(v, &q, unit-1, 2))
				require.Equal(t, Waiting, h.Acquire(v, &q, unit-1, 2))
				n.send(0)
				n.settle()
				require.Equal(t, uint32(2), q.Run().Count)
				require.NotEqual(t, q.Key(0), q.Key(1))
				n.release(&q)
				before := h.Stats()
				require.True(t, h.Try(v, &q, unit-1, 2))
				require.Equal(t, uint32(2), q.Run().Count)
				n.release(&q)
				off, k := h.Partial(v, &q, unit-1, 2)
				require.Equal(t, [2]uint64{unit - 1, 2}, [2]uint64{off, k})
				require.Equal(t, uint32(2), q.Run().Count)
				n.release(&q)
				h.stats = before // the scenario counts the miss alone
			},
			want: counts{miss: 1, reg: 2, peak: 2, regCalls: 1},
		}, {
			name: "the victim is the least recently used", f: 3, v: 2,
			run:  func(_ *testing.T, n *net) { n.use(0, 10, 20, 0, 30) },
			want: counts{hit: 1, miss: 4, moves: 1, reg: 4, peak: 4}, table: []uint64{0, 20, 30},
		}, {
			name: "neighbours leave together", f: 4, v: 4,
			run: func(_ *testing.T, n *net) {
				n.useRun(0, 4)
				n.useRun(10, 4)
				n.useRun(20, 4)
			},
			want: counts{miss: 3, moves: 8, reg: 12, dereg: 4, peak: 8, regCalls: 3, deregCalls: 1},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNet(t, config{ranks: 2, f: c.f, v: c.v})
			c.run(t, n)
			n.check()
			n.quiet()
			got := n.counts()
			n.identities(c.local)
			if c.want.regCalls == 0 {
				got.regCalls = 0
			}
			if c.want.deregCalls == 0 {
				got.deregCalls = 0
			}
			if c.want.bucketMisses == 0 {
				got.bucketHits, got.bucketMisses = 0, 0
			}
			require.Equal(t, c.want, got)
			if c.idle != nil {
				require.Equal(t, c.idle, n.owners[1].s.idleOf())
			}
			if c.table != nil {
				require.ElementsMatch(t, c.table, n.holders[0].peers[1].table())
			}
		})
	}
}

// identities checks what holds whatever happened, as long as nothing was refused and the owner itself had so many buckets registered.
func (n *net) identities(local uint64) {
	h, s := n.holders[0].Stats(), n.owners[1].s.Stats()
	require.Equal(n.t, uint64(n.holders[0].Used(1)), h.BucketMisses-h.Moves)
	require.Equal(n.t, s.Pinned, int64(s.Registered-s.Deregistered))
	require.Equal(n.t, h.BucketMisses+local, s.Registered+s.Resurrected+s.Shared)
	require.Equal(n.t, s.Moves, h.Misses+h.Ahead+h.Sheds)
}

func TestLocalPins(t *testing.T) {
	n := newNet(t, config{ranks: 2, f: 4, v: 2})
	s := n.owners[1].s
	run := func(i uint64) Run { return Run{MakeBucket(1, 0, i), 1} }
	_, err := s.Pin(run(0), nil)
	require.NoError(t, err)
	_, err = s.Pin(run(10), nil)
	require.NoError(t, err)
	_, err = s.Pin(run(20), nil)
	require.ErrorIs(t, err, ErrBusy)
	n.check()
	s.Unpin(run(0))
	pins, err := s.Pin(run(20), nil)
	require.NoError(t, err)
	require.Len(t, pins, 1)
	n.check()
	st := s.Stats()
	require.Equal(t, [3]uint64{3, 1, 2}, [3]uint64{st.Registered, st.Deregistered, uint64(st.Peak)})

	// A bucket that a peer holds is a hit, but needs room in the owner's part all the same.
	n.use(30)
	_, err = s.Pin(run(30), nil)
	require.ErrorIs(t, err, ErrBusy)
	s.Unpin(run(20))
	_, err = s.Pin(run(30), nil)
	require.NoError(t, err)
	n.check()
	require.Equal(t, uint64(4), s.Stats().Registered)

	_, err = s.Pin(Run{MakeBucket(1, 0, 40), 3}, nil)
	require.ErrorIs(t, err, ErrTooLarge)
	_, err = s.Pin(Run{MakeBucket(1, 0, bigRange/unit), 1}, nil)
	require.ErrorIs(t, err, ErrRange)
	_, err = s.Pin(Run{MakeBucket(2, 0, 0), 1}, nil)
	require.ErrorIs(t, err, ErrWithdrawn)
}

// TestAround: a rank's own use goes to the smallest bucket that is registered, or to one as its peers ask for.
func TestAround(t *testing.T) {
	n := newNet(t, config{ranks: 2, f: 64, v: 8})
	s := n.owners[1].s
	around := func(off, bytes uint64, want Bucket, registered, ok bool) {
		t.Helper()
		b, r, found := s.Around(1, off, bytes)
		require.Equal(t, [2]bool{registered, ok}, [2]bool{r, found})
		if ok {
			require.Equal(t, want, b)
		}
	}
	around(0, 8, MakeBucket(1, 0, 0), false, true) // nobody has asked for anything
	around(0, 2*unit, 0, false, false)
	require.NoError(t, n.holders[0].Fix(n.view(0, 1), 2))
	n.use(4) // four units
	around(4*unit, 2*unit, MakeBucket(1, 2, 1), true, true)
	around(0, 2*unit, MakeBucket(1, 2, 0), false, true)
	around(3*unit, 2*unit, 0, false, false)
	_, err := s.Pin(Run{MakeBucket(1, 0, 5), 1}, nil)
	require.NoError(t, err)
	around(5*unit, 8, MakeBucket(1, 0, 5), true, true)
	around(4*unit, 8, MakeBucket(1, 2, 1), true, true)
	around(bigRange-1, 2, 0, false, false)
	around(0, 0, 0, false, false)
	require.Equal(t, int64(unit), s.Unpin(Run{MakeBucket(1, 0, 5), 1}))
	around(5*unit, 8, MakeBucket(1, 2, 1), true, true)
	s.Withdraw(1)
	around(5*unit, 8, 0, false, false)
	n.check()
}

// TestUnpinned: a bucket that its owner lets go of is no victim: it goes, or stays with those who hold it.
func TestUnpinned(t *testing.T) {
	n := newNet(t, config{ranks: 2, f: 4, v: 2})
	s := n.owners[1].s
	mine, both := Run{MakeBucket(1, 0, 0), 1}, Run{MakeBucket(1, 0, 1), 1}
	n.use(1)
	for _, run := range []Run{mine, both, both} {
		_, err := s.Pin(run, nil)
		require.NoError(t, err)
	}
	require.Equal(t, uint64(2), s.Stats().Registered)
	require.Zero(t, s.Unpin(both), "it is used twice")
	require.Zero(t, s.Unpin(both), "a peer holds it")
	require.Equal(t, int64(unit), s.Unpin(mine))
	require.Empty(t, s.idleOf())
	require.Equal(t, int64(1), s.Stats().Pinned)
	n.check()
	n.quiet()
}
