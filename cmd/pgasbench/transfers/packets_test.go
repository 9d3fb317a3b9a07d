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

// TestUsual: what comes up thrice is it, and what never does keeps nobody for long.
func TestUsual(t *testing.T) {
	values := []int{7, 9, 7, 0, 8, 7, 9, 9}
	require.Equal(t, 7, usual(3, func() int { v := values[0]; values = values[1:]; return v }))
	require.Equal(t, []int{9, 9}, values)
	n := 0
	require.Equal(t, 1, usual(2, func() int { n++; return n }))
	require.Equal(t, 20, n)
	require.Equal(t, 5, usual(1, func() int { return 5 }))
}

// TestPerUse: the turns of buffers that are used once, twice and three times.
func TestPerUse(t *testing.T) {
	require.InDelta(t, 2, perUse([]float64{6, 6}, 3), 1e-12)
}
