package proto

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/flight"
	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// leased are the NICs on which leases are tried: each way in which a target learns of chunks, good, late, and narrow.
var leased = map[string]transporttest.FabricConfig{
	"immediates":     {},
	"order":          {InOrder: true},
	"late":           {Jitter: 20 * time.Microsecond, Seed: 3},
	"late, order":    {Jitter: 20 * time.Microsecond, Seed: 4, InOrder: true},
	"narrow":         {MaxPost: 2, MaxMessage: 30_000},
	"limited, order": {InOrder: true, MaxPinned: 64 << 20},
}

// slotsBack requires that a rank has all the slots of its pipes when what it began is over. What is measured beside it has some too.
func slotsBack(t testing.TB, e *Engine) {
	t.Helper()
	g := &e.nic().gauge
	require.Eventually(t, func() bool { return g.begun.Load() == g.over.Load() && g.peer.Load() != peerMeasuring }, time.Minute, time.Millisecond, "rank %d", e.Rank)
	require.Equal(t, flight.Slots, e.nic().flights.Levels().FreeSlots, "rank %d", e.Rank)
}

// settled requires that nothing of leases is left, at any rank, when all is over.
func (tm *team) settled(t *testing.T) {
	t.Helper()
	for r, e := range tm.e {
		n := e.nic()
		require.Eventually(t, func() bool {
			v := n.flights.Levels()
			return v.Notes == 0 && v.Pulls == 0 && v.Flights == 0 && v.Leased == 0
		}, time.Minute, time.Millisecond, "rank %d", r)
		require.Zero(t, n.flights.Levels().Broken, "rank %d", r)
		slotsBack(t, e)
		if n.flights.Ready() {
			require.Eventually(t, func() bool { return n.flights.Levels().FreeLeases == flight.MostLeases }, time.Minute, time.Millisecond, "rank %d", r)
		}
	}
}

// TestLeased puts and gets odd lengths at odd places through leases, and looks at the bytes around them.
func TestLeased(t *testing.T) {
	const room = 1 << 20
	for name, c := range leased {
		t.Run(name, func(t *testing.T) {
			tm := newTeamWith(t, 2, room, c, nil, forcedBulk(t, "lease", 1000))
			e, to := tm.e[0], &tm.of[0][1]
			rng := rand.New(rand.NewPCG(21, 22))
			want := make([]byte, room)
			for i := range 12 {
				n := 1000 + rng.IntN(1<<(10+rng.IntN(10)))
				off := rng.IntN(room - n)
				src, back := memoryOf(n, rng.IntN(16)), memoryOf(n, rng.IntN(16))
				fill(src, rng)
				copy(want[off:], src.Data())
				if i%2 == 0 {
					require.NoError(t, e.Put(to, off, src))
				} else {
					h, err := e.PutNB(to, off, src)
					require.NoError(t, err)
					require.NoError(t, h.Wait(context.Background()))
				}
				clear(src.Data()) // it is the caller's again
				require.NoError(t, e.Flush(to))
				require.Equal(t, want, tm.mem[1].Data())
				if i%2 == 0 {
					require.NoError(t, e.Get(to, off, back))
				} else {
					h, err := e.GetNB(to, off, back)
					require.NoError(t, err)
					require.NoError(t, h.Wait(context.Background()))
				}
				require.Equal(t, want[off:off+n], back.Data())
			}
			require.Positive(t, e.Stats()[PathLease].Ops)
			tm.settled(t)
			require.Eventually(t, func() bool { return !e.nic().Pending(1) }, time.Minute, time.Millisecond)
			require.Eventually(t, e.nic().Idle, time.Minute, time.Microsecond)
		})
	}
}

// TestLeasedByAll has all ranks put to and get from all at once, more than there are leases: what gets none goes another way.
func TestLeasedByAll(t *testing.T) {
	const n, each, ranks = 50_000, 6, 3
	for _, name := range []string{"immediates", "order"} {
		t.Run(name, func(t *testing.T) {
			tm := newTeamWith(t, ranks, n*each*ranks, leased[name], nil, forcedBulk(t, "lease", 1000))
			tm.byAll(t, n, n, each, func(e *Engine, far *Remote, at int, src, back mem.Range) error {
				return errors.Join(e.Put(far, at, src), e.Flush(far), e.Get(far, at, back))
			})
			tm.settled(t)
		})
	}
}

// byAll has every rank, beside the others, put so many bytes to each rank and get them back, several times, each time at a place of its
// own, of span bytes.
func (tm *team) byAll(t *testing.T, bytes, span, each int, putGet func(e *Engine, far *Remote, at int, src, back mem.Range) error) {
	t.Helper()
	ranks := len(tm.e)
	var wg sync.WaitGroup
	errs := make([]error, ranks)
	for r := range ranks {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(5, uint64(r)))
			src, back := memoryOf(bytes, 3), memoryOf(bytes, 5)
			for i := range each {
				for to := range ranks {
					fill(src, rng)
					err := putGet(tm.e[r], &tm.of[r][to], (r*each+i)*span, src, back)
					if string(src.Data()) != string(back.Data()) {
						err = errors.Join(err, errors.New("wrong bytes came back"))
					}
					errs[r] = errors.Join(errs[r], err)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
}

// TestLeasesForBuckets: two ranks that have given up the firehoses between them move what is long through leases, and what is short by
// messages; and what the owner's workspace was registered with makes room for what is needed more.
func TestLeasesForBuckets(t *testing.T) {
	const bytes = 16 << 20
	tm := newTeamWith(t, 2, bytes, transporttest.FabricConfig{MaxPinned: 10 << 20}, nil, func(*Config) {})
	e, to := tm.e[0], &tm.of[0][1]
	require.NotNil(t, to.hosed)
	require.NoError(t, errors.Join(e.Put(to, 0, filled(8)), e.Flush(to))) // so that they have some
	e.nic().hoses.End(1, nil, nic.ErrConnectionLost)
	before := e.Stats()
	for i, size := range []int{3000, 300_000, 3 << 20} {
		src, back := filled(size/8*8), mem.Of(make([]byte, size/8*8))
		require.NoError(t, e.Put(to, i*4096, src))
		require.NoError(t, e.Flush(to))
		require.Equal(t, src.Data(), tm.mem[1].Slice(i*4096, src.Bytes).Data())
		require.NoError(t, e.Get(to, i*4096, back))
		require.Equal(t, src.Data(), back.Data())
	}
	s := e.Stats()
	require.EqualValues(t, 2, s[PathMessage].Ops-before[PathMessage].Ops, "the short ones")
	require.EqualValues(t, 4, s[PathLease].Ops)
	require.Zero(t, s[PathBounce].Ops+s[PathDirect].Ops-before[PathBounce].Ops)
	tm.settled(t)

	// The workspace is idle now: when room is needed it goes, perhaps after buckets that are idle for longer.
	own := tm.e[1].nic()
	require.True(t, own.flights.Levels().Idle)
	for own.flights.Levels().Idle {
		require.Positive(t, own.direct.reg.Trim(1))
	}
	src := filled(300_000)
	require.NoError(t, e.Put(to, 0, src))
	require.NoError(t, e.Flush(to))
	require.Equal(t, src.Data(), tm.mem[1].Slice(0, src.Bytes).Data())
	require.EqualValues(t, 5, e.Stats()[PathLease].Ops, "it was registered anew")
	tm.settled(t)
	tm.freeAll(t)
}

// TestLeasesOfTheDead kills a rank in the middle of transfers through leases, as origin, target and owner. Whoever waits for it learns that;
// the others' transfers arrive, through the same workspace.
func TestLeasesOfTheDead(t *testing.T) {
	const n = 1 << 20
	for _, name := range []string{"late", "late, order"} {
		for round := range 2 {
			t.Run(name, func(t *testing.T) {
				tm := newTeamWith(t, 3, n, leased[name], nil, forcedBulk(t, "lease", 1000))
				src := filled(n)
				require.NoError(t, tm.e[0].Put(&tm.of[0][1], 0, src), "so that all are connected")
				require.NoError(t, errors.Join(tm.e[1].Put(&tm.of[1][0], 0, src), tm.e[2].Put(&tm.of[2][0], 0, src)))
				var wg sync.WaitGroup
				begun := make(chan struct{}, 2)
				loop := func(move func() error) (last error) {
					for last == nil {
						last = move()
						select {
						case begun <- struct{}{}:
						default:
						}
					}
					return last
				}
				var put, got error
				half := src.Slice(0, n/2)
				wg.Go(func() { // rank 1 as target
					put = loop(func() error { return errors.Join(tm.e[0].Put(&tm.of[0][1], 0, half), tm.e[0].Flush(&tm.of[0][1])) })
				})
				wg.Go(func() { // as owner, of what nobody writes meanwhile
					back := mem.Of(make([]byte, n/2))
					got = loop(func() error { return tm.e[2].Get(&tm.of[2][1], n/2, back) })
				})
				wg.Go(func() { // as origin
					_ = loop(func() error { return errors.Join(tm.e[1].Put(&tm.of[1][0], 0, src), tm.e[1].Flush(&tm.of[1][0])) })
				})
				<-begun
				<-begun
				time.Sleep(time.Duration(round) * 100 * time.Microsecond) // any time will do
				tm.fabric.Kill(1)
				wg.Wait()
				require.ErrorIs(t, put, transport.ErrPeerGone)
				require.ErrorIs(t, got, transport.ErrPeerGone)
				alive := &team{e: []*Engine{tm.e[0], tm.e[2]}}
				alive.settled(t)
				back := mem.Of(make([]byte, n))
				for i := range 3 {
					src.Data()[i] ^= 0xff
					require.NoError(t, errors.Join(tm.e[2].Put(&tm.of[2][0], 0, src), tm.e[2].Flush(&tm.of[2][0]), tm.e[2].Get(&tm.of[2][0], 0, back)))
					require.Equal(t, src.Data(), tm.mem[0].Data())
					require.Equal(t, src.Data(), back.Data())
				}
				alive.settled(t)
			})
		}
	}
}

// TestMendLeases breaks connections under transfers through leases: what is posted again lands in no other's lease, and everything
// arrives.
func TestMendLeases(t *testing.T) {
	const n = 200_000
	for name, c := range map[string]transporttest.FabricConfig{
		"immediates": {Jitter: 20 * time.Microsecond, Seed: 5}, "order": {Jitter: 20 * time.Microsecond, Seed: 6, InOrder: true},
	} {
		t.Run(name, func(t *testing.T) {
			var cutter *cutting
			tm := newTeamWith(t, 3, n, c, func(d transport.Domain) transport.Domain { cutter = newCutting(d); return cutter }, forcedBulk(t, "lease", 1000))
			e := tm.e[0]
			for peer := 1; peer < 3; peer++ {
				require.NoError(t, e.Put(&tm.of[0][peer], 0, filled(8)))
			}
			rng := rand.New(rand.NewPCG(7, 8))
			src, back := memoryOf(n, 1), memoryOf(n, 2)
			for i := range 12 {
				fill(src, rng)
				to, cut := &tm.of[0][1+i%2], make(chan error, 1)
				pause := time.Duration(rng.IntN(300)) * time.Microsecond
				go func() {
					time.Sleep(pause) // any time will do
					cut <- cutter.cut(1 + i%2)
				}()
				err := errors.Join(e.Put(to, 0, src), e.Flush(to))
				if err == nil {
					err = e.Get(to, 0, back)
				}
				require.NoError(t, <-cut)
				require.NoError(t, err, "transfer %d", i)
				require.Equal(t, src.Data(), tm.mem[1+i%2].Data(), "transfer %d", i)
				require.Equal(t, src.Data(), back.Data(), "transfer %d", i)
			}
			require.Positive(t, e.Stats()[PathLease].Ops)
			tm.settled(t)
		})
	}
}

// TestFreeUnderLeases: memory that is freed while transfers into it have been put and not flushed holds all of them when it is free.
func TestFreeUnderLeases(t *testing.T) {
	const n = 1 << 20
	tm := newTeamWith(t, 2, n, transporttest.FabricConfig{Jitter: 50 * time.Microsecond}, nil, forcedBulk(t, "lease", 1000))
	src := filled(n)
	require.NoError(t, tm.e[0].Put(&tm.of[0][1], 0, src))
	tm.freeAll(t)
	require.Equal(t, src.Data(), tm.mem[1].Data())
}
