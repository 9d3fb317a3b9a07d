package replay

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/firehose"
	"gopgas/internal/trace"
)

// aimed is a trace of so many ranks, each on its own node, of which rank 0 does what add says to memory of rank 1.
func aimed(ranks int) (files []*trace.File, add func(kind trace.Kind, at, took int64, off, bytes uint64)) {
	for r := range ranks {
		files = append(files, &trace.File{Head: trace.Head{Rank: r, Ranks: ranks, Node: r}, Format: 2})
	}
	return files, func(kind trace.Kind, at, took int64, off, bytes uint64) {
		files[0].Events = append(files[0].Events, trace.Event{
			At: at, Took: took, Addr: 1 << 40, Bytes: bytes, Peer: 1, Kind: kind,
			To: trace.Range{ID: 3, Start: 1 << 30, Bytes: 1 << 24}, Off: off,
		})
	}
}

// TestHoseByHand: a message takes 10 us, a registration of a bucket of 8 pages 1 us and 100 ns a page, its end half as much.
func TestHoseByHand(t *testing.T) {
	files, add := aimed(2)
	add(trace.Get, 0, 4000, 0, 4096)                   // a miss: 20 us and 1.8 us
	add(trace.Get, 100_000, 4000, 8192, 8192)          // a hit on the same bucket
	add(trace.Put, 200_000, 4000, 1<<20, 64)           // a miss whose put travels in the move: 4 us need not pass any more
	add(trace.Atomic, 300_000, 4000, 1<<20, 8)         // a hit
	add(trace.Get, 400_000, 4000, 2<<20-4096, 8192)    // two buckets for two others: those go first, 0.9 us each
	add(trace.Get, 500_000, 4000, 2<<20-4096, 8192)    // both are held
	add(trace.Get, 600_000, 9000, 0, 64<<10)           // two of which none is held, one at a time since a half share is one
	add(trace.Accumulate, 700_000, 4000, 4<<20, 4<<10) // a miss
	c := Config{
		Policy: OnDemand, Threshold: 1 << 20, Hose: &Hose{Pinned: 64 << 10, Victims: 32 << 10, Bucket: 32 << 10},
		Costs: costs(t, "free latency=10us register=1us+100ns deregister=500ns+50ns"),
	}
	res := run(t, files, c)
	h := res.Hose
	require.EqualValues(t, 2, h.Share)
	require.EqualValues(t, 1, h.Victims)
	require.EqualValues(t, 32<<10, h.Unit)
	require.EqualValues(t, 96<<10, h.Limit)
	require.Equal(t, [4]uint64{3, 6, 0, 0}, [4]uint64{h.Hits, h.Misses, h.Joins, h.Refused})
	require.EqualValues(t, 1, h.Carried)
	require.EqualValues(t, 8, res.Small)
	const trip, reg, dereg = 20_000, 1800, 900
	waited := int64(trip+reg) + // the first
		trip + reg - 4000 + // carried
		trip + 2*reg + dereg + // one of the two given up is a victim now, the other one goes
		0
	// The long one: the second piece asks when the first travels, 4.5 us of its 20 and more have passed then.
	waited += 2*(trip+reg+dereg) - 4500
	waited += trip + reg + dereg
	require.EqualValues(t, waited, h.Waited)
	require.Equal(t, h.Waited, res.Slowest)
	require.Zero(t, h.SlowestWithout)
	require.EqualValues(t, 96<<10, res.Nodes[1].LentPeak)
	require.Zero(t, res.Nodes[0].LentPeak)
	require.EqualValues(t, 7, h.Registered)
}

// TestHoseInUse: the share is one bucket, and a transfer that nobody waits for uses it for 409.6 us.
func TestHoseInUse(t *testing.T) {
	files, add := aimed(2)
	add(trace.Get, -50_000, 0, 0, 4096) // 20 us until it has begun
	add(trace.Get, -49_900, 0, 1<<20, 4096)
	c := Config{Policy: OnDemand, Threshold: 1 << 20, Hose: &Hose{Pinned: 32 << 10}, Costs: costs(t, "free latency=10us net=0.01")}
	res := run(t, files, c)
	require.Equal(t, [3]uint64{2, 1, 2}, [3]uint64{res.Hose.Misses, res.Hose.Blocked, res.Hose.Registered})
	// The second is called when the first has begun, and waits for that to end and for a move.
	require.EqualValues(t, 20_000+(409_600-100)+20_000, res.Hose.Waited)
	require.Equal(t, res.Hose.Waited, res.Critical)
	require.InDelta(t, (-50_000+2*(20_000+409_600))/1e9, res.Seconds, 1e-12)
}

// TestHoseSweep: where the share holds what a rank uses there is one miss for each bucket, below that more and more.
func TestHoseSweep(t *testing.T) {
	files := synth(t, "scatter", ShapeConfig{Ranks: 3, Iterations: 10, Bytes: 2 << 20})
	last := ^uint64(0)
	for _, units := range []int64{4, 16, 32, 64, 128} {
		res := run(t, files, Config{Policy: LeavePinned, Costs: costs(t, "helper-threads"), Hose: &Hose{Pinned: 2 * units * 32 << 10, Bucket: 32 << 10}})
		require.EqualValues(t, units, res.Hose.Share)
		require.Less(t, res.Hose.Misses, last, "%d units", units)
		last = res.Hose.Misses
		if units >= 64 { // 2 MiB, or one more bucket since nothing lies on a border of it
			require.LessOrEqual(t, last, uint64(3*2*65))
			last++ // more does not help
		}
		require.Equal(t, uint64(3*10*64), res.Hose.Hits+res.Hose.Misses+res.Hose.Joins)
		require.Equal(t, res.Slowest > res.Hose.SlowestWithout, res.Hose.Waited > 0)
		require.Greater(t, res.Seconds, res.Hose.SecondsWithout)
	}
}

// TestOneBudget: what is registered for others leaves less for own transfers, and idle memory of either kind makes room.
func TestOneBudget(t *testing.T) {
	files := synth(t, "ft", ShapeConfig{Ranks: 4, Iterations: 4, Bytes: 8 << 20})
	c := Config{Policy: LeavePinned, Limit: 24 << 20, Costs: costs(t, "superpipeline")}
	alone := run(t, files, c)
	require.EqualValues(t, 4*6, alone.First)
	require.Zero(t, alone.Again)
	c.Hose = &Hose{Pinned: 18 << 20}
	both := run(t, files, c)
	require.EqualValues(t, 6<<20, both.Hose.Victims*both.Hose.Unit)
	require.Greater(t, both.Again, uint64(0), "12 MiB do not fit beside what is kept for peers")
	require.NotZero(t, both.Nodes[0].LentPeak)
	c.Hose.Pinned = 23<<20 + 1<<19
	require.EqualValues(t, 4*4*6, run(t, files, c).Fallback, "a block of 2 MiB never fits")
}

func TestHoseIsTheSameEachTime(t *testing.T) {
	out := map[string]bool{}
	for range 2 {
		for _, shape := range []string{"scatter", "bt"} {
			files := synth(t, shape, ShapeConfig{Ranks: 6, Iterations: 5, Noise: 0.01, Seed: 4})
			b, err := json.Marshal(run(t, files, Config{
				Policy: Predictive, RanksPerNode: 2, Shuffle: true, Limit: 20 << 20, Hose: &Hose{}, Series: 20, Seed: 3,
			}))
			require.NoError(t, err)
			out[string(b)] = true
		}
	}
	require.Len(t, out, 2, "Y1")
}

func TestHoseOfStrangeTraces(t *testing.T) {
	files, add := aimed(2)
	add(trace.Put, 0, 100, 0, 100)
	files[0].Events[0].To = trace.Range{}
	_, err := Run(files, Config{Limit: 1 << 20, Hose: &Hose{}})
	require.ErrorIs(t, err, ErrNoTargets)
	files, add = aimed(2)
	add(trace.Put, 0, 100, 0, 100)
	const sizes = "power of two from 32768 to 524288"
	for _, x := range []struct {
		want string
		c    Config
	}{
		{"need a limit", Config{Hose: &Hose{}}},
		{"power of two from 4096", Config{Limit: 1 << 20, Hose: &Hose{Bucket: 3 << 15}}},
		{"power of two from 4096", Config{Limit: 1 << 20, Hose: &Hose{Bucket: 2048}}},
		{sizes, Config{Limit: 1 << 20, Hose: &Hose{Bucket: 1 << 20}}},
		{"raise the limit", Config{Limit: 1 << 20, Hose: &Hose{Pinned: 1 << 30}}},
		{"negative", Config{Limit: -1, Hose: &Hose{}}},
	} {
		_, err = Run(files, x.c)
		require.ErrorContains(t, err, x.want)
	}
	res := run(t, files, Config{Limit: 4096, Hose: &Hose{}}) // no page for peers
	require.Zero(t, res.Hose.Share)
	require.EqualValues(t, 1, res.Hose.ByMessage)
}

// TestExposuresOfSeveralFiles: numbers are each file's own; place and order say what is the same.
func TestExposuresOfSeveralFiles(t *testing.T) {
	at := func(id uint32, start uint64) trace.Range { return trace.Range{ID: id, Start: start, Bytes: 100} }
	var files []*trace.File
	for rank, parts := range [][]trace.Range{{at(1, 8), at(2, 8), at(3, 500)}, {}, {at(7, 500), at(7, 500), at(9, 8)}} {
		f := &trace.File{Head: trace.Head{Rank: rank, Ranks: 3}}
		for _, to := range parts {
			f.Events = append(f.Events, trace.Event{Peer: 1, To: to})
		}
		files = append(files, f)
	}
	a, err := mapRanges(files)
	require.NoError(t, err)
	of := func(rank int, r trace.Range) firehose.Range { return a.of[rank][reach{1, r}] }
	require.Len(t, a.owned[1], 3)
	require.Empty(t, a.owned[0])
	require.NotEqual(t, of(0, at(1, 8)), of(0, at(2, 8)), "exposed anew")
	require.Equal(t, of(0, at(1, 8)), of(2, at(9, 8)))
	require.Equal(t, of(0, at(3, 500)), of(2, at(7, 500)))
}

func TestAccount(t *testing.T) {
	a := account{limit: 100, promised: 30, all: new(meter), lent: new(meter)}
	a.charge(10, 40, false)
	a.charge(20, 30, true)
	a.charge(30, -40, false)
	for _, c := range []struct {
		at    int64
		bytes int64
		lent  bool
		want  verdict
	}{
		{0, 30, false, granted},
		{0, 31, false, fullOwn}, // from 10 on it has 40
		{30, 70, false, granted},
		{30, 71, false, fullOwn},
		{29, 30, false, granted},
		{0, 30, true, granted},
		{0, 31, true, fullAll}, // at 20
		{30, 70, true, granted},
	} {
		require.Equal(t, c.want, a.asks(c.at, c.bytes, c.lent), "%+v", c)
	}
	a.pass(25)
	require.Equal(t, [2]int64{70, 30}, [2]int64{a.level, a.lentLevel})
	require.Len(t, a.coming, 1)
	require.Equal(t, fullOwn, a.asks(25, 31, false))
	require.True(t, a.holds(70))
	require.False(t, a.holds(71))
}
