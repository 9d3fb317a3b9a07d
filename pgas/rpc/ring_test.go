package rpc

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlaces: pieces lie behind each other, none goes around the end, none lies on what was not read, and a piece of any length finds room once the ring was read.
func TestPlaces(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const ring = ringLeast
	owner := make([]int, ring) // whose a word is; 0: read
	type piece struct{ at, words int }
	var unread []piece
	tail, head := uint64(0), uint64(0)
	skips := 0
	for n := 1; n < 5000; n++ {
		words := size(rng.IntN(pieceBytes(ring) + 1))
		at, skipped, ok := place(ring, tail, head, words)
		if !ok {
			require.NotEmpty(t, unread, "an empty ring has room for %d words", words)
			for _, p := range unread[:1+rng.IntN(len(unread))] {
				for i := range p.words {
					owner[p.at+i] = 0
				}
				head += uint64(p.words)
				unread = unread[1:]
			}
			continue
		}
		if skipped > 0 {
			skips++
			require.Zero(t, at)
			unread = append(unread, piece{int(tail) & (ring - 1), skipped})
		}
		require.LessOrEqual(t, at+words, ring)
		for i := range words {
			require.Zero(t, owner[at+i], "piece %d lies on piece %d", n, owner[at+i])
			owner[at+i] = n
		}
		unread = append(unread, piece{at, words})
		tail += uint64(skipped + words)
	}
	require.Greater(t, skips, 50)
}

// TestHeaders: headers come as they were.
func TestHeaders(t *testing.T) {
	for _, h := range []header{
		{},
		{kind: failure, last: true, fn: mostFuncs - 1, bytes: 1<<32 - 1, id: 1<<64 - 1},
		{kind: call, first: true, fn: 1, bytes: 8, id: 3},
	} {
		require.Equal(t, h, headerOf(h.words()))
	}
}

// TestRings: of however many members, a rank's rings take 4 MiB as long as none is shorter than 4 KiB, and no ring is longer than 256 KiB.
func TestRings(t *testing.T) {
	require.Equal(t, 32768, ringWords(1))
	require.Equal(t, 32768, ringWords(16))
	require.Equal(t, 16384, ringWords(17))
	require.Equal(t, 8192, ringWords(64))
	require.Equal(t, 4096, ringWords(65))
	require.Equal(t, 512, ringWords(1024))
	require.Equal(t, 512, ringWords(100_000))
}
