//go:build !invariants

package invariants

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNormalBuildIsFree pins V2: a check that holds, with arguments, costs no allocation in the normal build.
func TestNormalBuildIsFree(t *testing.T) {
	n := 1 << 20
	require.Zero(t, testing.AllocsPerRun(100, func() {
		n++
		Check(n > 0, "n is %d", n)
	}))
}
