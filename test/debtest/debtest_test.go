package debtest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCannot: where nothing can be installed the test says what it needs and who can do that, instead of what apt-get says of its locks.
func TestCannot(t *testing.T) {
	gdb := []string{"gdb", "libc6-dev"}
	require.Empty(t, cannot(gdb, 0, true))
	require.Contains(t, cannot(gdb, 1000, true), "only root can install them: sudo apt-get install gdb libc6-dev (")
	for _, user := range []int{0, 1000} {
		require.Contains(t, cannot(gdb, user, false), "Debian packages gdb libc6-dev have, and does not find it here; there is no apt-get")
	}
}
