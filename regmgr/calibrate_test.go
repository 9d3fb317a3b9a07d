package regmgr

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/cost"
	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

func TestCalibrate(t *testing.T) {
	n := newNIC()
	m, err := Calibrate(t.Context(), n, sched.Goroutine(1), nil)
	require.NoError(t, err)
	require.Equal(t, 256, m.RegisterSamples[len(m.RegisterSamples)-1].N)
	require.Positive(t, m.Lookup)
	require.Positive(t, m.Compare)
	require.Positive(t, m.Hash)
	require.InDelta(t, m.Hash, float64(costsOf(m).Hash), 0.5)
	require.EqualValues(t, hashTime, costsOf(cost.Model{}).Hash, "a paper's model does not know it")
	if runtime.GOOS == "linux" {
		require.Positive(t, m.Swap)
	}
	regions, bytes := n.count()
	require.Zero(t, regions)
	require.Zero(t, bytes)

	n = newNIC()
	n.limit = 20 * page // of the 256 that it would like
	m, err = Calibrate(t.Context(), n, sched.Goroutine(1), nil)
	require.NoError(t, err)
	require.Equal(t, 16, m.RegisterSamples[len(m.RegisterSamples)-1].N)
	regions, _ = n.count()
	require.Zero(t, regions)
}

// TestCalibratePosts: what posts cost is measured by real ones, all of which are over, and nothing is left of them.
func TestCalibratePosts(t *testing.T) {
	for _, c := range []transporttest.FabricConfig{{}, {MaxPost: 4}} {
		s := sched.Goroutine(1)
		d, err := transporttest.NewFabric(1, c).Provider(0).Open(context.Background(), transport.Config{Size: 1, Sched: s})
		require.NoError(t, err)
		m, err := Calibrate(t.Context(), d, s, d)
		require.NoError(t, err)
		require.Positive(t, m.Post)
		require.NotNil(t, m.PostLine)
		require.InDelta(t, m.PostLine.A+m.PostLine.B, m.Post, 1e-9)
		last := m.PostSamples[len(m.PostSamples)-1]
		if c.MaxPost != 0 {
			require.Equal(t, c.MaxPost, last.N)
		} else {
			require.Equal(t, mostPosted, last.N)
		}
		require.Positive(t, m.Lookup)
		require.NoError(t, d.Close())
	}
}
