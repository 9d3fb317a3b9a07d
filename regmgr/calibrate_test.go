package regmgr

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/sched"
)

func TestCalibrate(t *testing.T) {
	n := newNIC()
	m, err := Calibrate(n, sched.Goroutine(1))
	require.NoError(t, err)
	require.Equal(t, 256, m.RegisterSamples[len(m.RegisterSamples)-1].N)
	require.Positive(t, m.Lookup)
	require.Positive(t, m.Compare)
	regions, bytes := n.count()
	require.Zero(t, regions)
	require.Zero(t, bytes)

	n = newNIC()
	n.limit = 20 * page // of the 256 that it would like
	m, err = Calibrate(n, sched.Goroutine(1))
	require.NoError(t, err)
	require.Equal(t, 16, m.RegisterSamples[len(m.RegisterSamples)-1].N)
	regions, _ = n.count()
	require.Zero(t, regions)
}
