package superpipe

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

const us = 1e-6

// simple has round constants, so that its equations can be worked by hand.
func simple() *Model {
	copying := func(float64) float64 { return 5e9 }
	return &Model{Gap: 0.1 * us, Latency: 1 * us, Net: 2e9, Copy: copying, RegLatency: 68 * us, Reg: 20e9}
}

// paper has the constants that the paper gives or implies for its cluster graphene; the gap is assumed.
func paper() *Model {
	m := simple()
	m.Copy = func(float64) float64 { return 5.2e9 }
	return m
}

func TestEquationsByHand(t *testing.T) {
	m := simple()
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"wire: 1 us + 1 MB at 2 GB/s", m.Wire(1e6), 501 * us},
		{"register: 68 us + 4 MB at 20 GB/s", m.Register(4e6), 268 * us},
		{"copy: 1 MB at 5 GB/s", m.CopyTime(1e6), 200 * us},
		{"on the fly: 268 + 1 + 2000 us", m.OnTheFly(4e6), 2269 * us},
		{"naive copy: 2 * 200 + 1 + 500 us", m.NaiveCopy(1e6), 901 * us},
		{"eq. 1: 2 * 20 + 10 * 0.1 + 1 + 500 us", m.Pipeline(1e6, 1e5), 542 * us},
		{"eq. 2: 0.4e-9 - 1e6 / 1e8 * 0.1e-6", m.PipelineSlope(1e6, 1e4), -0.6e-9},
		{"eq. 2 at the optimum", m.PipelineSlope(1e6, m.BestChunk(1e6)), 0},
		{"eq. 3: root of 1e6 * 1e-7 * 5e9 / 2 = 2.5e8", m.BestChunk(1e6), 15811.388300841896},
		{"eq. 5: 1000 * 2^3", nth(1000, 2, 3), 8000},
		{"eq. 5: 5 / 2", m.Ratio(1e6), 2.5},
		{"q of copies that the NIC slows: (5 - 2) / 2", m.OverlappedRatio(1e6), 1.5},
		{"eq. 6: 1000 * (1 + 2 + 4 + 8 + 16)", sum(1000, 2, 5), 31000},
		{"eq. 6, flat", sum(1000, 1, 5), 5000},
		{"eq. 7: log2(32)", gaps(31000, 1000, 2), 5},
		{"eq. 8: 33000 / 5e9 + 5 * 0.1 us + 1 us + 15.5 us", m.Superpipeline(31000, 1000, 2), 23.6 * us},
		{"eq. 9: 4096 / 5e9 + 0.5 us + 1 us + 15.5 us", m.SubBlocked(31000, 1000, 2, 4096), 17.8192 * us},
		{"C_0: 5 GB/s * 2 us", m.FirstChunk(1e6), 10000},
	} {
		require.InDelta(t, c.want, c.got, 1e-9*math.Abs(c.want)+1e-21, c.name)
	}
	require.InDelta(t, 25250, m.NextChunk(1e6, 1e4, 0.05*us), 1e-6, "eq. 4")
}

// TestAsymptotes checks the two limits that the paper quotes in percent of the wire.
func TestAsymptotes(t *testing.T) {
	m := paper()
	require.InDelta(t, 0.91, m.OnTheFlyLimit()/m.Net, 0.005)
	require.InDelta(t, 0.57, m.NaiveCopyLimit(1e9)/m.Net, 0.005)
	const long = 1e12
	require.InEpsilon(t, m.OnTheFlyLimit(), long/m.OnTheFly(long), 1e-6)
	require.InEpsilon(t, m.NaiveCopyLimit(long), long/m.NaiveCopy(long), 1e-6)
	require.InDelta(t, 1.6, m.OverlappedRatio(1e6), 0.06, "near the hardwired 1.5")
}

// TestBestChunkIsBest compares equation 3 with the neighbourhood of the minimum.
func TestBestChunkIsBest(t *testing.T) {
	m := paper()
	for length := 1e4; length < 1e9; length *= 3 {
		c := m.BestChunk(length)
		require.Less(t, m.Pipeline(length, c), m.Pipeline(length, c*1.1))
		require.Less(t, m.Pipeline(length, c), m.Pipeline(length, c/1.1))
		require.Negative(t, m.PipelineSlope(length, c/2))
		require.Positive(t, m.PipelineSlope(length, c*2))
	}
	tiny := 2 * m.Gap
	require.Greater(t, m.BestChunk(tiny), tiny, "more than the message: one chunk")
}

// TestSuperpipelineBeatsPipeline: equation 9 lies between the raw wire and the best plain pipeline.
func TestSuperpipelineBeatsPipeline(t *testing.T) {
	m := paper()
	for length := 64e3; length < 1e9; length *= 2 {
		super := m.SubBlocked(length, defaultFirst, defaultRatio, 4096)
		require.Greater(t, super, m.Wire(length))
		require.Less(t, super, m.Pipeline(length, m.BestChunk(length)))
		require.InDelta(t, 1, super/m.Wire(length), 0.05, "within 5 %% of the wire at %g bytes", length)
		require.InEpsilon(t, length, sum(defaultFirst, defaultRatio, gaps(length, defaultFirst, defaultRatio)), 1e-9)
	}
}
