package transfers

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPacketsSent: the devices' counters are added up, and none is no zero.
func TestPacketsSent(t *testing.T) {
	dir := t.TempDir()
	require.Equal(t, -1, packetsSent(dir))
	for device, count := range map[string]string{"rxe0": "41\n", "rxe1": "1\n"} {
		counters := filepath.Join(dir, device, "ports", "1", "hw_counters")
		require.NoError(t, os.MkdirAll(counters, 0o777))
		require.NoError(t, os.WriteFile(filepath.Join(counters, "sent_pkts"), []byte(count), 0o666))
	}
	require.Equal(t, 42, packetsSent(dir))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rxe1", "ports", "1", "hw_counters", "sent_pkts"), []byte("none"), 0o666))
	require.Equal(t, -1, packetsSent(dir))
}

// TestSettled: what is read twice in a row holds, and what never is does not keep anybody for long.
func TestSettled(t *testing.T) {
	values := []int{3, 5, 7, 7, 9}
	next := func() int { v := values[0]; values = values[1:]; return v }
	require.Equal(t, 7, settled(next))
	n := 0
	require.Equal(t, 6, settled(func() int { n++; return n }))
}

// TestPerUse: the turns of buffers that are used once, twice and three times.
func TestPerUse(t *testing.T) {
	require.InDelta(t, 2, perUse([]float64{6, 6}, 3), 1e-12)
}
