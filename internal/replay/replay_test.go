package replay

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/predict"
	"gopgas/internal/seats"
	"gopgas/internal/trace"
)

func costs(t *testing.T, text string) Costs {
	c, err := ParseCosts(text)
	require.NoError(t, err)
	return c
}

func synth(t *testing.T, shape string, c ShapeConfig) []*trace.File {
	files, err := Synthesize(shape, c)
	require.NoError(t, err)
	return files
}

func run(t *testing.T, files []*trace.File, c Config) *Result {
	if c.Costs.Net == 0 {
		c.Costs = costs(t, "superpipeline")
	}
	res, err := Run(files, c)
	require.NoError(t, err)
	n := res.Counts
	require.Equal(t, n.Calls, n.Hits+n.Late+n.First+n.Again+n.Copies, "Y3: %+v", n)
	if c.Limit > 0 && len(res.Nodes) == len(files) {
		require.LessOrEqual(t, res.Peak, c.Limit, "Y2")
	}
	return res
}

// TestMicrobenchmark: ten iterations, three buffers of 4 MiB, a second between calls.
func TestMicrobenchmark(t *testing.T) {
	const size = 4 << 20
	files := synth(t, "reuse", ShapeConfig{Ranks: 1})
	left := run(t, files, Config{Policy: LeavePinned})
	require.EqualValues(t, 3*size, left.Peak)
	require.Equal(t, [3]uint64{3, 0, 27}, [3]uint64{left.First, left.Again, left.Hits})

	ours := run(t, files, Config{Policy: Predictive})
	require.LessOrEqual(t, float64(ours.Peak), 1.1*float64(left.Peak)/3, "one buffer at a time")
	require.Less(t, ours.Average, float64(size)/50, "and that for moments")
	// The very first two calls have shorter windows: they are signatures of their own that never come back. Then two
	// misses for each of the three, and no more, though a period that was observed while the calls in it registered on
	// demand is longer, by those registrations, than the next one.
	require.Equal(t, [3]uint64{3, 5, 22}, [3]uint64{ours.First, ours.Again, ours.Hits})
	free := run(t, files, Config{Policy: Predictive, Costs: costs(t, "free")})
	require.Equal(t, [3]uint64{3, 5, 22}, [3]uint64{free.First, free.Again, free.Hits})

	demand := run(t, files, Config{Policy: OnDemand})
	require.EqualValues(t, size, demand.Peak)
	require.EqualValues(t, 30, demand.First+demand.Again)
	per := left.Critical / 3
	require.Greater(t, demand.Critical, 30*per, "registration and deregistration, each time")
	require.Less(t, ours.Critical, 9*per)

	bounce := run(t, files, Config{Policy: Bounce})
	require.Zero(t, bounce.Peak)
	require.EqualValues(t, 30, bounce.Copies)
}

func TestMicrobenchmarkWithoutReuse(t *testing.T) {
	const size = 4 << 20
	files := synth(t, "noreuse", ShapeConfig{Ranks: 1})
	require.EqualValues(t, 30*size, run(t, files, Config{Policy: LeavePinned}).Peak)
	ours := run(t, files, Config{Policy: Predictive})
	require.LessOrEqual(t, ours.Peak, int64(2*size))
	require.EqualValues(t, 30, ours.First, "all on demand")
	require.Zero(t, ours.Prediction.Registered)
	pipe := run(t, files, Config{Policy: Pipelined})
	require.EqualValues(t, 3*fragmentBytes, pipe.Peak)
	require.Less(t, pipe.Critical, run(t, files, Config{Policy: OnDemand}).Critical, "it hides most of the cost")
	require.EqualValues(t, 30*size, run(t, files, Config{Policy: PipelinedLeavePinned}).Peak)
}

// TestNestedLoopsNeedTheWindow is the paper's figure 4.
func TestNestedLoopsNeedTheWindow(t *testing.T) {
	files := synth(t, "nest", ShapeConfig{Ranks: 1})
	with := run(t, files, Config{Policy: Predictive})
	without := run(t, files, Config{Policy: Predictive, Predictor: predict.Config{Window: predict.NoWindow}})
	// Each loop's first call comes after the other loop, its second one after 20 or 35 ms.
	require.Less(t, with.Again+with.Late, uint64(25), "%+v", with.Counts)
	require.Greater(t, without.Again+without.Late, uint64(2*17), "the first call of each loop, each time")
	require.Less(t, with.Prediction.Mispredicted, uint64(5))
	require.Greater(t, without.Prediction.Mispredicted, uint64(2*17))
	require.Greater(t, with.Prediction.WithinHalf, without.Prediction.WithinHalf+30)
}

// TestImpossibleProblem: the buffers of an iteration do not fit under the limit together.
func TestImpossibleProblem(t *testing.T) {
	files := synth(t, "ft", ShapeConfig{Ranks: 4})
	c := Config{Limit: 64 << 20, Policy: LeavePinnedNoEvict, Costs: costs(t, "superpipeline")}
	_, err := Run(files, c)
	var limit *LimitError
	require.ErrorAs(t, err, &limit)
	require.Equal(t, c.Limit, limit.Limit)
	require.ErrorContains(t, err, "rank 0 at")
	c.Policy = Predictive
	ours := run(t, files, c)
	require.Zero(t, ours.Fallback, "no copy instead")
	require.LessOrEqual(t, ours.Peak, c.Limit)
	require.Greater(t, ours.Hits, ours.First+ours.Again)
	c.Limit = 1 << 20 // not even one block
	require.Equal(t, uint64(4*25*6), run(t, files, c).Fallback)
}

func TestShapesSaveAsTheirPhasesAllow(t *testing.T) {
	for shape, saves := range map[string]bool{"bt": true, "sp": true, "lu": true, "ft": true, "cg": false} {
		files := synth(t, shape, ShapeConfig{Noise: 0.001})
		left := run(t, files, Config{Policy: LeavePinned})
		ours := run(t, files, Config{Policy: Predictive})
		require.LessOrEqual(t, ours.Peak, left.Peak, shape)
		require.Less(t, ours.Average, 0.9*left.Average, shape)
		require.Less(t, ours.Seconds, left.Seconds*1.01, "%s: time lost", shape)
		if saves {
			require.Less(t, float64(ours.Peak), 0.9*float64(left.Peak), shape)
		}
	}
}

func TestGrouping(t *testing.T) {
	files := synth(t, "ft", ShapeConfig{Ranks: 8, Iterations: 4})
	one := run(t, files, Config{Policy: LeavePinned, Nodes: 1})
	require.Zero(t, one.Calls, "all peers are local")
	require.EqualValues(t, 8*4*2*7, one.Local)
	two := run(t, files, Config{Policy: LeavePinned, RanksPerNode: 4})
	require.Len(t, two.Nodes, 2)
	require.Equal(t, []int{0, 1, 2, 3}, two.Nodes[0].Ranks)
	require.EqualValues(t, 8*4*2*4, two.Calls)
	a := run(t, files, Config{Policy: LeavePinned, RanksPerNode: 4, Shuffle: true, Seed: 1})
	b := run(t, files, Config{Policy: LeavePinned, RanksPerNode: 4, Shuffle: true, Seed: 2})
	require.NotEqual(t, a.Nodes[0].Ranks, b.Nodes[0].Ranks)
	require.Len(t, run(t, files, Config{Policy: LeavePinned}).Nodes, 8, "as recorded")
	_, err := Run(files, Config{Nodes: 2, RanksPerNode: 3})
	require.ErrorContains(t, err, "too few")
	_, err = Run(nil, Config{})
	require.ErrorContains(t, err, "no ranks")
}

func TestIdleCorePolicies(t *testing.T) {
	helpers := func(shape string, idle seats.Policy, ranks, cores int) *Result {
		files := synth(t, shape, ShapeConfig{Ranks: 2 * ranks, Noise: 0.001})
		return run(t, files, Config{Policy: Predictive, RanksPerNode: ranks, Cores: cores, Idle: idle})
	}
	require.Equal(t, 0, helpers("sp", seats.None, 6, 8).Helpers)
	require.Equal(t, 4, helpers("sp", seats.Conservative, 6, 8).Helpers)
	require.Equal(t, 12, helpers("sp", seats.Aggressive, 6, 8).Helpers)
	require.Equal(t, 0, helpers("sp", seats.Auto, 4, 2).Helpers, "no idle core")
	require.Equal(t, 2, helpers("sp", seats.Auto, 1, 2).Helpers)
	// SP has time between its calls: helpers that share save more than few that do not.
	aggressive, conservative := helpers("sp", seats.Aggressive, 6, 8), helpers("sp", seats.Conservative, 6, 8)
	require.Less(t, aggressive.Average, conservative.Average)
	require.Less(t, conservative.Average, helpers("sp", seats.None, 6, 8).Average)
}

func TestSameInputSameBytes(t *testing.T) {
	c := ShapeConfig{Ranks: 6, Noise: 0.01, Spikes: 0.05, Seed: 9}
	out := map[string]bool{}
	for range 3 {
		res := run(t, synth(t, "bt", c), Config{
			Policy: Predictive, RanksPerNode: 3, Cores: 4, Idle: seats.Auto, Shuffle: true, Limit: 20 << 20, Seed: 5, Series: 50,
		})
		b, err := json.Marshal(res)
		require.NoError(t, err)
		out[string(b)] = true
	}
	require.Len(t, out, 1, "Y1")
}

// TestLimitsHoldUnderAllPolicies replays every shape under every policy and a tight limit, with firehose and without: run checks
// the peak against the limit, to the byte.
func TestLimitsHoldUnderAllPolicies(t *testing.T) {
	for _, shape := range Shapes() {
		files := synth(t, shape, ShapeConfig{Ranks: 3, Iterations: 3, Noise: 0.01, Spikes: 0.05})
		for _, p := range Policies() {
			if p == LeavePinnedNoEvict {
				continue // fails, by its nature
			}
			c := Config{Policy: p, Limit: 12 << 20, Costs: costs(t, "superpipeline poll=50us")}
			res := run(t, files, c)
			require.GreaterOrEqual(t, res.Registrations, res.Deregistrations)
			if p != LeavePinned && p != OnDemand && p != Predictive {
				continue // the others share their budget with firehose as one of these does
			}
			c.Hose = &Hose{Pinned: 3 << 20}
			res = run(t, files, c)
			lent := (res.Hose.Share*2 + res.Hose.Victims) * res.Hose.Unit
			for _, n := range res.Nodes {
				require.LessOrEqual(t, n.LentPeak, lent, "%s under %s", shape, p)
			}
		}
	}
}

func TestOverlappingTransfers(t *testing.T) {
	f := &trace.File{Head: trace.Head{Ranks: 1}}
	add := func(at, took int64, addr, bytes uint64) {
		f.Events = append(f.Events, trace.Event{At: at, Took: took, Addr: addr, Bytes: bytes, Peer: -1, Kind: trace.Put})
	}
	add(0, 1000, 1<<30, 1<<20)
	add(100, 1000, 1<<30, 1<<20)     // the same memory, while the first goes on
	add(200, 1000, 1<<30+4096, 4096) // below the threshold
	add(300, 1000, 1<<30+8192, 64<<10)
	res := run(t, []*trace.File{f}, Config{Policy: OnDemand, Costs: costs(t, "free")})
	require.EqualValues(t, 1, res.First)
	require.EqualValues(t, 2, res.Hits, "the same, and a part of it")
	require.EqualValues(t, 1, res.Small)
	require.EqualValues(t, 1, res.Deregistrations, "after the last of them")
	require.EqualValues(t, 1<<20, res.Peak)
}

// TestTransfersOfNoProgram: a file may say anything; what it takes to replay it is bounded all the same.
func TestTransfersOfNoProgram(t *testing.T) {
	for _, bad := range []trace.Event{
		{Bytes: 1 << 62},
		{Bytes: mostBytes + 1, Addr: 1 << 30},
		{Bytes: 1 << 44}, // 2^32 pages
		{At: math.MaxInt64, Took: 1},
		{At: math.MinInt64},
		{Took: math.MaxInt64},
		{Took: -1},
	} {
		bad.Bytes, bad.Kind, bad.Peer = max(bad.Bytes, 1<<20), trace.Put, -1
		f := &trace.File{Head: trace.Head{Ranks: 1}, Events: []trace.Event{{At: 5, Bytes: 1 << 20, Kind: trace.Put, Peer: -1}, bad}}
		for _, p := range Policies() {
			_, err := Run([]*trace.File{f}, Config{Policy: p, Costs: costs(t, "helper-threads")})
			require.ErrorContains(t, err, "rank 0, call 1: ", p)
		}
	}
	large := trace.Event{Bytes: mostBytes, Kind: trace.Put, Peer: -1}
	for _, p := range []Policy{LeavePinned, OnDemand, Pipelined} {
		res := run(t, []*trace.File{{Head: trace.Head{Ranks: 1}, Events: []trace.Event{large}}}, Config{Policy: p})
		require.Positive(t, res.Peak, p)
	}
}

func TestMeter(t *testing.T) {
	var m meter
	m.add(10, 100)
	m.add(30, -100)
	m.add(20, 50)
	m.add(40, -50)
	r := m.read(50, 5)
	require.EqualValues(t, 150, r.peak)
	require.InDelta(t, (100*20+50*20)/50.0, r.average, 1e-9)
	require.Equal(t, []int64{0, 100, 150, 50, 0}, r.series)
	require.Zero(t, (&meter{}).read(0, 0).peak)
}

func TestCostModels(t *testing.T) {
	c := costs(t, "superpipeline register=10us+100ns+2us copy=2 poll=50us")
	require.Equal(t, predict.Line{Fixed: 10000, PerPage: 100, Residual: 2000}, c.Register)
	require.Equal(t, predict.Line{Fixed: 20000, PerPage: 50}, c.Deregister, "the rest is the model's")
	require.InDelta(t, 2, c.Net, 0.01)
	require.EqualValues(t, 50_000, c.Poll)
	require.EqualValues(t, 2048, c.copyTime(4096))
	for _, name := range CostNames() {
		costs(t, name)
	}
	wrong := "|cheap|register=1us|free register=1us+2+3+4|free register=-1us|free copy=0|free net=fast|free speed=3|free hash=1us+2us"
	for bad := range strings.SplitSeq(wrong, "|") {
		_, err := ParseCosts(bad)
		require.ErrorContains(t, err, "cost model", bad)
	}
	_, err := ParsePolicy("pinned")
	require.ErrorContains(t, err, "leavepinned")
	for _, p := range Policies() {
		got, err := ParsePolicy(p.String())
		require.NoError(t, err)
		require.Equal(t, p, got)
	}
	_, err = Synthesize("mg", ShapeConfig{})
	require.ErrorContains(t, err, "ft")
}

func TestPipelineExposes(t *testing.T) {
	require.EqualValues(t, 10, pipelineExposed([]predict.Nanos{10, 20, 20}, 20))
	require.EqualValues(t, 10+2*5, pipelineExposed([]predict.Nanos{10, 20, 20}, 15))
	require.Zero(t, pipelineExposed(nil, 5))
	f := fragments(1<<20, 1<<20+100)
	require.Equal(t, []span{{1 << 20, 3 << 19}, {3 << 19, 2 << 20}, {2 << 20, 2<<20 + 100}}, f)
	require.EqualValues(t, 1, f[2].pages())
	require.EqualValues(t, 2, spanOf(4095, 2).pages())
	require.EqualValues(t, 4096, spanOf(4096, 0).bytes())
}
