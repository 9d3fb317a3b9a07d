package atom

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFetchNames: an atomic that returns the old value goes by the name of the function that does it.
func TestFetchNames(t *testing.T) {
	for op, name := range map[Op]string{
		Sum: "fetch-add", And: "fetch-and", Or: "fetch-or", Xor: "fetch-xor", Replace: "swap", CompareSwap: "compare-swap", Load: "load",
	} {
		require.Equal(t, name, op.Fetch())
	}
	for op := Sum; op <= Load; op++ {
		require.NotEmpty(t, op.Fetch())
		require.NotEmpty(t, op.String())
	}
}
