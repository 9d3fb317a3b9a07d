package nic

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSlotsFor: all slots together are an eighth of what may be pinned, or the fewest that transfers can do with.
func TestSlotsFor(t *testing.T) {
	for _, c := range []struct {
		most int64
		want int
	}{
		{0, 32},
		{1 << 30, 32},
		{16 << 20, 32},
		{16<<20 - 1, 31},
		{4 << 20, 8},
		{2 << 20, 4},
		{1, 4},
	} {
		require.Equal(t, c.want, slotsFor(c.most, SlotBytes), "%d bytes", c.most)
	}
}
