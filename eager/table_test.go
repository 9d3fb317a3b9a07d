package eager

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
)

// TestFullTable: a table with more buffers than words counts each of them, in its bucket's word, in its line or behind that; the first word
// that is looked at is that of a buffer of the bucket wherever there is one.
func TestFullTable(t *testing.T) {
	const bits, buffers = 8, 3 << 8
	table, model, rng := newTable(bits), map[uint64]int{}, rand.New(rand.NewPCG(11, 12))
	addrs, held := make([]uint64, buffers), map[uint64]int{}
	for i := range addrs {
		addrs[i] = rng.Uint64()>>17 | 1
	}
	for range 20 * buffers {
		a := addrs[rng.IntN(buffers)]
		if model[a]++; model[a] == 1 {
			held[bucket(a, bits)]++
		}
		threshold := uint32(1 + rng.IntN(8)) // many are frequent, so that it goes on growing
		require.Equal(t, model[a] >= int(threshold), table.Use(a, threshold))
		if model[a] == 1 && threshold > 1 {
			require.True(t, table.Use(a, 2))
			model[a]++
		}
	}
	chained := 0
	for b, n := range held {
		chained += n - 1
		require.Equal(t, b, bucket(table.words[b]>>countBits, bits), "the first of a bucket lies there")
	}
	u := table.Usage()
	require.Equal(t, len(model), u.Buffers)
	require.Equal(t, chained, u.Chained)
	require.Greater(t, len(table.links), buffers/2, "there are lines that are full")
	require.Less(t, len(table.links), chained)
}

// TestTableBegins: lines are the processor's, and a table that is as long as a large page begins where one does.
func TestTableBegins(t *testing.T) {
	for _, c := range []struct{ bits, at uint64 }{{8, 64}, {bucketBits, mem.LargePage}} {
		table := newTable(uint(c.bits))
		require.Zero(t, mem.Of(table.words).Addr()%c.at)
		require.Len(t, table.words, 1<<c.bits)
	}
}
