//go:build !purego && !race && !msan && !asan

package mem

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRecent: a copy goes through the caches when all of its destination was copied to before, and not too many bytes since.
func TestRecent(t *testing.T) {
	const mib, within = 1 << 20, 8 << 20
	var r recent
	again := func(dst, n int) bool { return r.again(uintptr(dst), n, within) }
	require.False(t, again(100*mib, mib), "never seen")
	require.True(t, again(100*mib, mib))
	require.False(t, again(101*mib, mib), "beside it")
	require.False(t, again(100*mib, 3*mib), "longer")
	require.True(t, again(100*mib+5, mib), "within")
	for i := range 16 {
		require.False(t, again(200*mib+7+i<<stretchBits, 1<<stretchBits), "a walk")
	}
	require.True(t, again(100*mib, mib))
	for i := range 8 {
		again((300+i)*mib, mib)
	}
	require.False(t, again(100*mib, mib), "too many others since")
	for range 3 {
		require.False(t, again(700*mib, 2<<stretchBits+recentPlaces<<stretchBits), "so long that it shares places with itself")
	}
}
