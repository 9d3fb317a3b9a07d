package superpipe

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport/soft"
)

// TestToward: writes and reads are a peer's, and those that are longer than there is memory differ as the longest.
func TestToward(t *testing.T) {
	ds, _ := openSoft(soft.Config{})(t, 2)
	closeAll(t, ds)
	b := bench(t, ds, 256<<10)
	m, err := Measure(t.Context(), b)
	require.NoError(t, err)
	for i := range m.Reads { // a home where all is near, and writes cost twice what reads do
		m.Reads[i].Nanos = float64(i + 1)
		m.Writes[i].Nanos = 2 * m.Reads[i].Nanos
	}
	home, sizes, gap := slices.Clone(m.Reads), len(m.Reads), m.Gap
	far := mem.At(uintptr(b.RAddr), 256<<10).Data()
	there := slices.Clone(far[20_000:])
	b.Longest = 20_000
	require.NoError(t, m.Toward(t.Context(), b))
	require.Equal(t, there, far[20_000:])
	require.Len(t, m.Reads, sizes)
	last := 0
	for i, r := range m.Reads {
		require.Equal(t, home[i].N, r.N)
		require.Equal(t, home[i].N, m.Writes[i].N)
		require.Greater(t, r.Nanos, home[i].Nanos)
		require.Greater(t, m.Writes[i].Nanos, 2*home[i].Nanos)
		if r.N <= b.Longest {
			last = i
		}
	}
	require.Less(t, last, sizes-1)
	require.InEpsilon(t, m.Reads[last].Nanos/home[last].Nanos, m.Reads[sizes-1].Nanos/home[sizes-1].Nanos, 1e-9)
	require.GreaterOrEqual(t, m.Gap, gap)
	require.InEpsilon(t, m.Writes[0].Nanos/2e9, m.Latency, 1e-9)
	require.Positive(t, m.Net)

	before := *m
	b.RKey++
	require.Error(t, m.Toward(t.Context(), b), "the peer refuses")
	require.Equal(t, before.Reads, m.Reads)
	require.Equal(t, before.Writes, m.Writes)
	require.InDelta(t, before.Net, m.Net, 0)
	b.Longest = 8
	require.ErrorContains(t, m.Toward(t.Context(), b), "too few")
}
