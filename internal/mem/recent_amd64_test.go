//go:build !purego && !race && !msan && !asan

package mem

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRecent: a copy goes through the caches when all of both its ends was copied before, and not too many bytes since.
func TestRecent(t *testing.T) {
	const mib, within = 1 << 20, 8 << 20
	var r recent
	again := func(dst, src, n int) bool { return r.again(uintptr(dst), uintptr(src), n, within) }
	require.False(t, again(100*mib, 200*mib, mib), "never seen")
	require.True(t, again(100*mib, 200*mib, mib))
	require.True(t, again(200*mib, 100*mib, mib), "and back")
	require.False(t, again(100*mib, 300*mib, mib), "another source")
	require.False(t, again(400*mib, 200*mib, mib), "another destination")
	require.False(t, again(100*mib, 200*mib, 2*mib), "longer at both ends")
	require.True(t, again(100*mib, 200*mib, 2*mib))
	require.True(t, again(100*mib+5, 200*mib+77, mib), "within")
	for i := range 7 {
		again((500+i)*mib, (600+i)*mib, mib)
	}
	require.True(t, again(100*mib, 200*mib, mib))
	for i := range 8 {
		again((500+i)*mib, (600+i)*mib, mib)
	}
	require.False(t, again(100*mib, 200*mib, mib), "too many others since")
	for range 3 {
		require.False(t, again(700*mib, (700+recentPlaces)*mib, mib), "two that share their place")
	}
}
