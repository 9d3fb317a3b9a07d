package pgastest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHowOften: who asks for no calls over a NIC is told so, and not that nothing was allocated.
func TestHowOften(t *testing.T) {
	nic := Named{Config: Config{NIC: true}}
	t.Setenv(callsVariable, "77")
	n, err := nic.often()
	require.NoError(t, err)
	require.Equal(t, 77, n)
	n, err = Named{}.often()
	require.NoError(t, err)
	require.Equal(t, 1_000_000, n, "mapped memory is not bounded by it")
	for _, bad := range []string{"0", "-1", "many"} {
		t.Setenv(callsVariable, bad)
		_, err = nic.often()
		require.Error(t, err, bad)
	}
}
