package eager

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSitesThatShareAPlace: two call sites that share a place are told apart, and of three the one that was not used for longest is forgotten.
func TestSitesThatShareAPlace(t *testing.T) {
	var same []uint64
	want, _ := sitePlace(1)
	for at := uint64(1); len(same) < 3; at++ {
		if place, _ := sitePlace(at); place == want {
			same = append(same, at)
		}
	}
	flushed, alone, other := same[0], same[1], same[2]
	var s sites
	for i := range 20 {
		require.Equal(t, i >= siteSure-siteMargin, s.put(flushed), "put %d", i)
		s.flush()
		require.False(t, s.put(alone))
		require.False(t, s.put(alone))
		s.other()
	}
	require.False(t, s.put(other))
	s.flush()
	require.False(t, s.put(alone), "it was used last before")
	s.other()
	require.True(t, s.put(other))
	s.flush()
	require.False(t, s.put(flushed), "it is forgotten")
	s.flush()
	require.True(t, s.put(flushed))
	require.Zero(t, testing.AllocsPerRun(10, func() { s.put(alone); s.flush() }))
}
