package proto

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport/transporttest"
)

// TestRevokeUnderPuts is the litmus test of taking memory back: puts are in flight, many of them on buckets that others want,
// when all ranks free their memory without a flush. No put meets memory that is not registered any more, which the NIC would
// refuse; all have been stored when Free returns at their target; nothing stays registered.
func TestRevokeUnderPuts(t *testing.T) {
	for name, jitter := range map[string]time.Duration{"prompt": 0, "late": 300 * time.Microsecond} {
		t.Run(name, func(t *testing.T) {
			const ranks, puts, place = 3, 150, 64 << 10
			for round := range uint64(5) {
				c := transporttest.FabricConfig{MaxPinned: tightPins, Jitter: jitter, Seed: round}
				tm := newTeamOf(t, ranks, tightBytes, c, nil)
				var wg sync.WaitGroup
				want := make([][ranks]map[int]uint64, ranks) // by origin and target, by offset
				for r := range ranks {
					wg.Go(func() {
						rng := rand.New(rand.NewPCG(round, uint64(r)))
						for to := range want[r] {
							want[r][to] = make(map[int]uint64)
						}
						var word [8]byte
						for range puts {
							to := (r + 1 + rng.IntN(ranks-1)) % ranks
							// Words of different ranks lie beside each other, so they want the same buckets.
							off := rng.IntN(tightBytes/place)*place + 8*r
							v := rng.Uint64()
							binary.NativeEndian.PutUint64(word[:], v)
							if err := tm.e[r].Put(&tm.of[r][to], off, mem.Of(word[:])); err != nil {
								t.Error(err)
							}
							want[r][to][off] = v
						}
					})
				}
				wg.Wait()
				tm.freeAll(t)
				for r := range ranks {
					for to, words := range want[r] {
						require.NoError(t, tm.e[r].Flush(&tm.of[r][to]), "a put was refused")
						for off, v := range words {
							require.Equal(t, v, tm.mem[to].Word64(off).Load(), "rank %d at %d of %d", r, off, to)
						}
					}
					_, served := tm.e[r].Firehoses()
					require.Zero(t, served.Pinned)
					s, _, _ := tm.e[r].Registered()
					require.Zero(t, s.Lent)
					require.Zero(t, s.Promised)
				}
			}
		})
	}
}

// TestFreeAfterParting: memory in buckets that is freed when its world ends, without a word to those who hold buckets of
// it, is deregistered as it is when everybody works together.
func TestFreeAfterParting(t *testing.T) {
	const ranks = 3
	tm := newTeamOf(t, ranks, tightBytes, transporttest.FabricConfig{MaxPinned: tightPins}, nil)
	for r := range ranks {
		to := &tm.of[r][(r+1)%ranks]
		for off := 0; off < tightBytes; off += 1 << 20 {
			require.NoError(t, tm.e[r].Put(to, off, filled(8)))
		}
		require.NoError(t, tm.e[r].Flush(to))
	}
	for r, e := range tm.e {
		_, served := e.Firehoses()
		require.Positive(t, served.Pinned, "rank %d", r)
		e.Part()
	}
	for r, e := range tm.e {
		require.NoError(t, tm.xp[r].Free())
		_, served := e.Firehoses()
		require.Zero(t, served.Pinned)
		s, _, _ := e.Registered()
		require.Zero(t, s.Lent)
		require.NoError(t, e.Close())
	}
}
