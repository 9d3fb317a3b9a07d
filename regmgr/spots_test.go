package regmgr

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSpotsAreBounded: a program that sends ever other parts of one buffer does not have ever more of them remembered.
func TestSpotsAreBounded(t *testing.T) {
	n := newNIC()
	m := managerOn(t, n, Config{Policy: Predictive, Bytes: 64 * page, HeapBytes: 64 * page})
	m.keeps.Store(true) // as with a helper
	buf := heap(17)
	held := acquire(t, m, buf.Slice(1, 15*page), 0)
	const parts = spotsMost + spotsMost/4
	most := 0
	for i := range parts {
		h := acquire(t, m, buf.Slice(i%page, 15*page+2+i/page), 0) // none within another
		most = max(most, len(m.spots.byID))
		if i == parts-1 {
			same, ok := m.spotByID(h.Region().spot.id)
			require.True(t, ok)
			require.Equal(t, *h.Region().spot, same)
		}
		m.Release(h)
	}
	require.LessOrEqual(t, most, spotsMost+spotsMost/8)
	require.Len(t, m.spots.at, len(m.spots.byID))
	same, ok := m.spotByID(held.Region().spot.id)
	require.True(t, ok, "the memory is registered")
	require.Equal(t, *held.Region().spot, same)
	m.Release(held)
	runtime.KeepAlive(buf)
}
