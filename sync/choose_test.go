package pgsync

import (
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/agree"
)

// TestChoices is a golden table of methods.
func TestChoices(t *testing.T) {
	const floats, ints = false, true
	for _, c := range []struct {
		op              string
		n, nodes, bytes int
		exact           bool
		want            method
	}{
		{"broadcast", 1, 1, 8, floats, direct},
		{"broadcast", 8, 1, 1 << 20, floats, direct},
		{"broadcast", 9, 1, 8, floats, relayed},
		{"broadcast", 4, 2, 8, floats, relayed},
		{"allgather", 8, 1, 8, floats, direct},
		{"allgather", 9, 1, 8, floats, gathered},
		{"allgather", 9, 3, 512, floats, gathered},
		{"allgather", 9, 1, 513, floats, direct},
		{"allgather", 64, 8, 500, floats, nodal},
		{"allgather", 64, 8, 1 << 20, floats, nodal},
		{"allgather", 16, 4, 1 << 10, floats, direct},
		{"allgather", 16, 4, 8 << 10, floats, nodal},
		{"allgather", 16, 8, 1 << 20, floats, direct},
		{"allgather", 8, 2, 1 << 10, floats, direct},
		{"allgather", 8, 2, 8 << 10, floats, nodal},
		{"allreduce", 2, 1, 1 << 20, floats, direct},
		{"allreduce", 3, 1, 8<<10 - 1, floats, direct},
		{"allreduce", 3, 1, 8 << 10, floats, segmented},
		{"allreduce", 9, 1, 8, floats, gathered},
		{"allreduce", 9, 1, 513, floats, segmented},
		{"allreduce", 1000, 250, 24, floats, gathered},
		{"allreduce", 1000, 250, 40, floats, nodal},
		{"allreduce", 16, 8, 4096, ints, nodal},
		{"allreduce", 16, 8, 4096, floats, segmented},
		{"allreduce", 8, 4, 1 << 10, ints, direct},
		{"allreduce", 4, 2, 1 << 10, ints, doubled},
		{"allreduce", 4, 2, 1 << 10, floats, direct},
		{"allreduce", 1000, 250, 8 << 10, floats, nodal},
		{"allreduce", 1000, 251, 8 << 10, floats, segmented},
		{"allreduce", 8, 1, 8, ints, direct},
		{"allreduce", 8, 2, 8, ints, doubled},
		{"allreduce", 9, 1, 8, ints, doubled},
		{"allreduce", 9, 1, 1632, ints, doubled},
		{"allreduce", 9, 1, 1633, ints, segmented},
		{"allreduce", 8, 2, 4080, ints, doubled},
		{"allreduce", 8, 2, 4081, ints, direct},
		{"allreduce", 8, 2, 8 << 10, ints, nodal},
		{"allreduce", 1000, 250, 1776, ints, doubled},
		{"allreduce", 1000, 1, 1448, ints, doubled},
		{"allreduce", 1000, 1, 1449, ints, segmented},
		{"reduce", 1000, 1, 8, floats, direct},
		{"reduce", 1000, 1, 8, ints, direct},
		{"reduce", 1000, 250, 8, ints, doubled},
		{"reduce", 1000, 250, 8, floats, direct},
		{"reduce", 1000, 1, 40, floats, segmented},
		{"reduce", 9, 1, 8 << 10, floats, segmented},
		{"reduce", 9, 2, 8 << 10, ints, segmented},
		{"reduce", 9, 2, 4080, ints, doubled},
		{"reduce", 4, 2, 8, ints, direct},
		{"reduce", 8, 2, 100, floats, direct},
		{"barrier", 100, 1, 0, floats, direct},
	} {
		require.Equal(t, c.want, choose(query{c.op, c.n, c.nodes, c.bytes, c.exact, c.n / c.nodes, false}), "%+v", c)
		if pushed := choose(query{c.op, c.n, c.nodes, c.bytes, c.exact, c.n / c.nodes, true}); c.want == direct && c.bytes > 0 {
			require.Equal(t, handed, pushed, "%+v", c)
		} else {
			require.Equal(t, c.want, pushed, "%+v", c)
		}
	}
}

// TestShuffleHasRoom: withBit counts, and what goes on in all rounds and arrives in one fits into an outbox.
func TestShuffleHasRoom(t *testing.T) {
	for n := 1; n <= 70; n++ {
		sum, largest := 0, 0
		for bit := 1; bit < n; bit *= 2 {
			many := 0
			for i := range n {
				if i&bit != 0 {
					many++
				}
			}
			require.Equal(t, many, withBit(n, bit), "bit %d of %d", bit, n)
			sum, largest = sum+many, max(largest, many)
		}
		require.LessOrEqual(t, (sum+largest)*shuffleBytes(boxPayload(n), n), boxPayload(n))
	}
}

// TestSharesOfUnevenNodes: a node with few members has each of them show much, which takes many turns.
func TestSharesOfUnevenNodes(t *testing.T) {
	require.True(t, sharesPay(64, 8, 8, 1<<20, 16320))
	require.False(t, sharesPay(40, 8, 1, 1<<20, 16320))
	require.False(t, sharesPay(64, 1, 64, 1<<20, 16320))     // all alike
	require.False(t, sharesPay(100_000, 2, 1, 1<<20, 16320)) // no room
	require.Equal(t, []int{7, 63, 16320 / 7}, []int{sharePieces(64, 8), sharePieces(64, 1), gatherPiece(64, 8, 16320)})
}

// TestControlBlock: what lies in it does not overlap, and outboxes have room for a gather.
func TestControlBlock(t *testing.T) {
	for _, n := range []int{1, 2, 3, 63, 64, 65, 511, 512, 1000, 1 << 16} {
		require.LessOrEqual(t, bits.Len(uint(n-1)), maxRounds)
		require.GreaterOrEqual(t, slotBytes(n), leastSlot)
		require.LessOrEqual(t, slotBytes(n)*n, boxPayload(n))
		k := doublingRounds(n)
		require.LessOrEqual(t, 2*(k+1)*combineBytes(boxPayload(n), n), boxPayload(n))
		require.LessOrEqual(t, (k+3)*prefixBytes(boxPayload(n), n), boxPayload(n))
		require.Zero(t, boxBytes(n)%64)
		require.Equal(t, newsOff(n), boxOff(n, laneCount-1, 1)+boxBytes(n))
		require.Equal(t, controlBytes(n), newsOff(n)+8*n+agree.SetBytes(n))
	}
	require.LessOrEqual(t, agreeWords+agree.WordsBytes, closingWord)
	require.LessOrEqual(t, closingWord+8, headBytes)
}

// TestPartsByNodes is a golden table of when parts go by nodes.
func TestPartsByNodes(t *testing.T) {
	const payload = 16320
	for _, c := range []struct {
		n, nodes, smallest, largest, part int
		want                              bool
	}{
		{8, 1, 8, 8, 8, false},
		{64, 1, 64, 64, 8, false}, // all alike
		{16, 4, 4, 4, 8, false},
		{16, 2, 8, 8, 8, false},
		{18, 2, 9, 9, 8, true},
		{32, 4, 8, 8, 8, true},
		{32, 4, 8, 8, 510, true},
		{32, 4, 8, 8, 511, false}, // more than an outbox-full
		{32, 4, 8, 8, 0, false},
		{32, 4, 1, 20, 8, true},
		{32, 4, 1, 20, 30, false}, // too much for a node of one
		{64, 8, 8, 8, 255, true},
		{64, 32, 2, 2, 8, false},
		{66, 17, 2, 4, 8, true},
	} {
		require.Equal(t, c.want, c.part > 0 && partsInSlices(c.n, c.nodes, c.smallest, c.largest, c.part, payload, 1) == c.part, "%+v", c)
	}
	for _, c := range []struct{ n, nodes, k, part, turns, want int }{ // nodes of k each
		{64, 8, 8, 255, 1, 255},
		{64, 8, 8, 256, 1, 128}, // two slices of the same length
		{64, 8, 8, 512, 3, 171},
		{64, 8, 8, 1000, 4, 0},
		{32, 4, 8, 512, 1, 0},
		{32, 4, 8, 1000, 2, 500},
		{64, 4, 16, 1000, 4, 250},
		{64, 4, 16, 2000, 8, 0},
		{64, 64, 1, 1000, 4, 0},
		{64, 1, 64, 1000, 4, 0},
	} {
		require.Equal(t, c.want, partsInSlices(c.n, c.nodes, c.k, c.k, c.part, payload, c.turns), "%+v", c)
	}
	require.False(t, throughLeaders(1, 0, payload))
	require.True(t, throughLeaders(2, payload, payload))
	require.False(t, throughLeaders(2, payload+1, payload))
	l := partsOf([][]int{{0, 2}, {1, 3, 4}}, 5, func(m int) int { return []int{0, 5, 5, 8, 10, 17}[m] })
	require.Equal(t, []int{0, 0, 5, 0, 2}, l.off)
	require.Equal(t, []int{8, 9}, l.node)
	require.Equal(t, 9, l.widest())
}

// TestWorthOffering: where outboxes take a call in two turns of pushing, or in one of reading, nothing is won.
func TestWorthOffering(t *testing.T) {
	const part = 256 << 10
	for _, c := range []struct {
		bytes, part int
		pushes      bool
		want        bool
	}{
		{2 * part, part, true, false},
		{2*part + 8, part, true, true},
		{part, part, false, false},
		{part + 8, part, false, true},
		{100 << 10, 16 << 10, true, false}, // many turns, but short ones
		{leastOffered, 16 << 10, true, true},
	} {
		require.Equal(t, c.want, worthOffering(c.bytes, c.part, c.pushes), "%+v", c)
	}
}
