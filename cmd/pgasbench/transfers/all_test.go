package transfers

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPairedMore: what disturbs both of a pair does not count, and 95 of a hundred intervals hold the median: of 100 pairs the 41st and the 60th.
func TestPairedMore(t *testing.T) {
	var base, other []float64
	for i := range 100 {
		slow := 1 + 50*math.Mod(float64(i)*0.618, 1) // somebody else's doing
		base = append(base, slow)
		other = append(other, slow*(1+float64(i+1)/1000))
	}
	got := pairedMore(base, other)
	require.InDelta(t, 5.05, got.median, 1e-9)
	require.InDelta(t, 4.1, got.least, 1e-9)
	require.InDelta(t, 6.0, got.most, 1e-9)
	require.Equal(t, spread{}, pairedMore(base, base))
	require.Equal(t, spread{}, pairedMore(nil, nil))
	few := pairedMore([]float64{1, 1, 1}, []float64{1, 2, 3})
	require.InDelta(t, 0, few.least, 1e-9)
	require.InDelta(t, 200, few.most, 1e-9)
}
