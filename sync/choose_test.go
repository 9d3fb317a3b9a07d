package pgsync

import (
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/agree"
)

// TestChoices is a golden table of methods.
func TestChoices(t *testing.T) {
	for _, c := range []struct {
		op       string
		n, bytes int
		levels   bool
		want     method
	}{
		{"broadcast", 1, 8, false, direct},
		{"broadcast", 8, 1 << 20, false, direct},
		{"broadcast", 9, 8, false, relayed},
		{"broadcast", 4, 8, true, relayed},
		{"allgather", 8, 8, false, direct},
		{"allgather", 9, 8, false, gathered},
		{"allgather", 9, 512, true, gathered},
		{"allgather", 9, 513, false, direct},
		{"allreduce", 2, 1 << 20, false, direct},
		{"allreduce", 3, 8<<10 - 1, false, direct},
		{"allreduce", 3, 8 << 10, false, segmented},
		{"allreduce", 9, 8, false, gathered},
		{"allreduce", 9, 513, false, segmented},
		{"allreduce", 1000, 24, true, gathered},
		{"allreduce", 1000, 40, true, segmented},
		{"reduce", 1000, 8, false, direct},
		{"reduce", 1000, 40, false, segmented},
		{"reduce", 9, 8 << 10, false, segmented},
		{"reduce", 8, 100, true, direct},
		{"barrier", 100, 0, false, direct},
	} {
		require.Equal(t, c.want, choose(c.op, c.n, c.bytes, slotBytes(c.n), c.levels), "%+v", c)
	}
}

// TestControlBlock: what lies in it does not overlap, and outboxes have room for a gather.
func TestControlBlock(t *testing.T) {
	for _, n := range []int{1, 2, 3, 63, 64, 65, 511, 512, 1000, 1 << 16} {
		require.LessOrEqual(t, bits.Len(uint(n-1)), maxRounds)
		require.GreaterOrEqual(t, slotBytes(n), leastSlot)
		require.LessOrEqual(t, slotBytes(n)*n, boxPayload(n))
		require.Zero(t, boxBytes(n)%64)
		require.Equal(t, newsOff(n), boxOff(n, laneCount-1, 1)+boxBytes(n))
		require.Equal(t, controlBytes(n), newsOff(n)+8*n+agree.SetBytes(n))
	}
	require.LessOrEqual(t, agreeWords+agree.WordsBytes, headBytes)
}
