package proto

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/internal/flight"
	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/regmgr"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// pattern is runs between memory of near bytes and parts of far bytes.
type pattern func(rng *rand.Rand, to []*Remote, near, far int) []Run

var patterns = map[string]pattern{
	"rows": func(rng *rand.Rand, to []*Remote, near, far int) (all []Run) {
		cols, rows := 1+rng.IntN(700), 20+rng.IntN(100)
		at, from := rng.IntN(far-rows*2*cols), rng.IntN(near-rows*cols)
		for i := range rows {
			all = append(all, Run{to[0], at + i*2*cols, from + i*cols, cols})
		}
		return all
	},
	"columns, downwards": func(rng *rand.Rand, to []*Remote, near, far int) (all []Run) {
		for i := range 3000 {
			all = append(all, Run{to[0], far - 16 - i*24, i * 16, 8})
		}
		return all
	},
	"anywhere, to all": func(rng *rand.Rand, to []*Remote, near, far int) (all []Run) {
		const room = 256 // of a run's own, so that none meets another
		places := rng.Perm(far / room)
		for i := range min(near/room, len(places)) / 2 {
			r := to[i*len(to)/(near/room/2)%len(to)]
			all = append(all, Run{r, places[i] * room, i*room + rng.IntN(9), rng.IntN(room - 9)})
		}
		return all
	},
}

// putRunsAndBack puts runs, looks at all of the targets' memory, and gets them again.
func (tm *team) putRunsAndBack(t *testing.T, runs []Run, near int, rng *rand.Rand) {
	t.Helper()
	e := tm.e[0]
	src, back := memoryOf(near, rng.IntN(16)), memoryOf(near, rng.IntN(16))
	fill(src, rng)
	want, untouched := map[int][]byte{}, make([]byte, near)
	for _, r := range runs {
		if want[r.To.Rank] == nil {
			want[r.To.Rank] = append([]byte(nil), tm.mem[r.To.Rank].Data()...)
		}
		copy(want[r.To.Rank][r.Far:], src.Slice(r.Near, r.Bytes).Data())
		copy(untouched[r.Near:], src.Slice(r.Near, r.Bytes).Data())
	}
	run := func(i int) Run { return runs[i] }
	require.NoError(t, e.PutRuns("put-section", len(runs), run, src))
	clear(src.Data()) // it is the caller's again
	for rank, there := range want {
		require.NoError(t, e.Flush(&tm.of[0][rank]))
		require.Equal(t, there, tm.mem[rank].Data(), "rank %d", rank)
	}
	require.NoError(t, e.GetRuns("get-section", len(runs), run, back))
	require.Equal(t, untouched, back.Data())
}

// TestLeasedRuns puts and gets sections and scattered pieces through leases, over every NIC on which leases are tried.
func TestLeasedRuns(t *testing.T) {
	const near, room = 1 << 17, 1 << 18
	rounds := 2
	if raceEnabled {
		rounds = 1
	}
	for name, c := range leased {
		t.Run(name, func(t *testing.T) {
			tm := newTeamWith(t, 3, room, c, nil, forcedBulk(t, "lease", 1000))
			rng := rand.New(rand.NewPCG(51, 52))
			for what, p := range patterns {
				tm.settled(t) // all leases are free, so the first transfer gets one; later ones may meet some that are not back yet
				before := tm.e[0].Stats()[PathLease].Ops
				for range rounds {
					tm.putRunsAndBack(t, p(rng, []*Remote{&tm.of[0][1], &tm.of[0][2]}, near, room), near, rng)
				}
				require.Greater(t, tm.e[0].Stats()[PathLease].Ops, before, what)
			}
			tm.settled(t)
		})
	}
}

// TestLeasedRunsForBuckets: sections of memory whose firehoses were given up take leases where they are long, and messages where they
// are short.
func TestLeasedRunsForBuckets(t *testing.T) {
	const near = 1 << 19
	tm := newTeamWith(t, 2, 16<<20, transporttest.FabricConfig{MaxPinned: 10 << 20}, nil, func(*Config) {})
	e, to := tm.e[0], &tm.of[0][1]
	require.NotNil(t, to.hosed)
	require.NoError(t, errors.Join(e.Put(to, 0, filled(8)), e.Flush(to))) // so that they have some
	e.nic().hoses.End(1, nil, nic.ErrConnectionLost)
	before := e.Stats()
	rng := rand.New(rand.NewPCG(61, 62))
	var short, long []Run
	for i := range 500 {
		long = append(long, Run{to, 1<<20 + i*4096, i * 1000, 1000})
	}
	for i := range 4 {
		short = append(short, Run{to, i * 128, i * 64, 64})
	}
	tm.putRunsAndBack(t, long, near, rng)
	s := e.Stats()
	require.EqualValues(t, 2, s[PathLease].Ops-before[PathLease].Ops)
	require.Equal(t, before[PathMessage].Ops, s[PathMessage].Ops)
	tm.putRunsAndBack(t, short, near, rng)
	s = e.Stats()
	require.EqualValues(t, 2, s[PathLease].Ops-before[PathLease].Ops)
	require.EqualValues(t, 8, s[PathMessage].Ops-before[PathMessage].Ops)
	tm.settled(t)
	tm.freeAll(t)
}

// TestLeasedRunsByAll has all ranks put sections to all at once, more than there are leases: what gets none goes run by run.
func TestLeasedRunsByAll(t *testing.T) {
	const rows, cols, each, ranks = 100, 300, 4, 3
	tm := newTeamWith(t, ranks, 2*rows*cols*each*ranks, leased["immediates"], nil, forcedBulk(t, "lease", 1000))
	tm.byAll(t, rows*cols, 2*rows*cols, each, func(e *Engine, far *Remote, at int, src, back mem.Range) error {
		run := func(k int) Run { return Run{far, at + k*2*cols, k * cols, cols} }
		return errors.Join(e.PutRuns("put-section", rows, run, src), e.Flush(far), e.GetRuns("get-section", rows, run, back))
	})
	tm.settled(t)
}

// TestLeasedRunsOfTheDead: a rank that dies under sections through leases is the error of whoever waits for it, and leaves nothing behind.
func TestLeasedRunsOfTheDead(t *testing.T) {
	const rows, cols = 400, 1000
	tm := newTeamWith(t, 3, 2*rows*cols, leased["late"], nil, forcedBulk(t, "lease", 1000))
	src, back := filled(rows*cols), mem.Of(make([]byte, rows*cols))
	section := func(to *Remote) func(int) Run {
		return func(k int) Run { return Run{to, k * 2 * cols, k * cols, cols} }
	}
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
	var wg sync.WaitGroup
	wg.Go(func() {
		to := &tm.of[0][1]
		put = loop(func() error {
			return errors.Join(tm.e[0].PutRuns("put-section", rows, section(to), src), tm.e[0].Flush(to))
		})
	})
	wg.Go(func() {
		got = loop(func() error { return tm.e[2].GetRuns("get-section", rows, section(&tm.of[2][1]), back) })
	})
	<-begun
	<-begun
	tm.fabric.Kill(1)
	wg.Wait()
	require.ErrorIs(t, put, transport.ErrPeerGone)
	require.ErrorIs(t, got, transport.ErrPeerGone)
	alive := &team{e: []*Engine{tm.e[0], tm.e[2]}}
	alive.settled(t)
	to := &tm.of[2][0]
	run := section(to)
	require.NoError(t, errors.Join(tm.e[2].PutRuns("put-section", rows, run, src), tm.e[2].Flush(to), tm.e[2].GetRuns("get-section", rows, run, back)))
	require.Equal(t, src.Data(), back.Data())
	alive.settled(t)
}

// TestLeasedRunsBesideReadOnly: what lies between the runs of a get through a lease may be read-only, the runs may not.
func TestLeasedRunsBesideReadOnly(t *testing.T) {
	const page, rows = 1 << 12, 8
	tm := newTeamWith(t, 2, 2*rows*page, transporttest.FabricConfig{}, nil, forcedBulk(t, "lease", 1000))
	e, to := tm.e[0], &tm.of[0][1]
	b, err := unix.Mmap(-1, 0, 2*rows*page, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Munmap(b)) }()
	for k := range rows { // every other page
		require.NoError(t, unix.Mprotect(b[2*k*page:(2*k+1)*page], unix.PROT_READ|unix.PROT_WRITE))
	}
	fill(tm.mem[1], rand.New(rand.NewPCG(71, 72)))
	run := func(k int) Run { return Run{to, k * page, 2 * k * page, page} }
	before := e.Stats()[PathLease].Ops
	require.NoError(t, e.GetRuns("get-section", rows, run, mem.Of(b)))
	require.Greater(t, e.Stats()[PathLease].Ops, before)
	for k := range rows {
		require.Equal(t, tm.mem[1].Data()[k*page:(k+1)*page], b[2*k*page:(2*k+1)*page])
	}
	wide := func(k int) Run { return Run{to, k * page, 2 * k * page, page + 1} }
	require.ErrorIs(t, e.GetRuns("get-section", rows, wide, mem.Of(b)), regmgr.ErrReadOnly)
	tm.settled(t)
}

// TestMalformedLayouts: a request whose layout leaves the memory that it is about is refused, and nothing is leased.
func TestMalformedLayouts(t *testing.T) {
	const room = 1 << 16
	tm := newTeamWith(t, 2, room, transporttest.FabricConfig{}, nil, forcedBulk(t, "lease", 1000))
	n, j := tm.e[0].nic(), journey{name: "put-section", kind: transport.OpWrite, r: &tm.of[0][1]}
	for _, kind := range []transport.Kind{transport.OpWrite, transport.OpRead} {
		j.kind = kind
		var far, near lot
		far.far.Reset(mem.Range{Bytes: room})
		far.far.Add(room-8, 8)
		near.near.Reset(mem.Of(make([]byte, 8)))
		near.near.Add(0, 8)
		_, granted, err := n.lease(j, 16, flight.Cargo{Near: mem.Of(make([]byte, 8)), Spread: &near.near, Span: room - 16, Layout: far.far.Append(nil, 0)})
		require.ErrorIs(t, err, nic.ErrRefused)
		require.False(t, granted)
	}
	tm.settled(t)
	require.Eventually(t, func() bool { return !n.Pending(1) }, time.Minute, time.Millisecond)
}

// BenchmarkUnregisteredSection puts 500 rows of 1000 bytes to memory that is not registered, through leases and by messages.
func BenchmarkUnregisteredSection(b *testing.B) {
	const rows, cols = 500, 1000
	for name, leases := range map[string]int{"leases": 0, "messages": -1} {
		b.Run(name, func(b *testing.B) {
			tm := newTeamWith(b, 2, 16<<20, transporttest.FabricConfig{MaxPinned: 10 << 20}, nil, func(c *Config) { c.Leases = leases })
			e, to := tm.e[0], &tm.of[0][1]
			require.NoError(b, errors.Join(e.Put(to, 0, filled(8)), e.Flush(to)))
			e.nic().hoses.End(1, nil, nic.ErrConnectionLost)
			src, run := filled(rows*cols), func(k int) Run { return Run{to, k * 2 * cols, k * cols, cols} }
			b.SetBytes(rows * cols)
			for b.Loop() {
				require.NoError(b, errors.Join(e.PutRuns("put-section", rows, run, src), e.Flush(to)))
			}
		})
	}
}
