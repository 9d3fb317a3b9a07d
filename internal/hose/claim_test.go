package hose

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestClaimsFollowEachOther: a long transfer never waits for its own buckets. While one claim is in use and the one before has not
// landed yet the next one is asked for, whatever the size of buckets and wherever the transfer begins; no two have a bucket in common.
func TestClaimsFollowEachOther(t *testing.T) {
	for _, size := range []int64{0, 32 << 10, 64 << 10, 256 << 10, 512 << 10} {
		for _, begin := range []uint64{0, 5000, 300_000} {
			t.Run(fmt.Sprintf("%d at %d", size, begin), func(t *testing.T) {
				p := newPair(t)
				h := p.set[0]
				require.NoError(t, h.Fix(size))
				var flying []*Claim
				claims, end := 0, firstBucket
				for at := begin; at < exposed; claims++ {
					c, err := h.Claim("put", p.far, p.far.start+at, int(exposed-at))
					require.NoError(t, err)
					require.Positive(t, c.Bytes())
					c.Ask()
					origin, _ := h.Stats()
					require.Zero(t, origin.Blocked, "claim %d of %d bytes waits for the transfer's own buckets", claims, c.Bytes())
					ok, err := c.Wait()
					require.NoError(t, err)
					require.True(t, ok)
					run := c.q.Run()
					require.Greater(t, int64(run.First.Index()), end, "it shares a bucket with the claim before")
					end = int64(run.At(run.Count - 1).Index())
					if flying = append(flying, c); len(flying) > 2 {
						flying[0].Release()
						flying = flying[1:]
					}
					at += uint64(c.Bytes())
				}
				require.Greater(t, claims, 8, "of more than is held at once")
				for _, c := range flying {
					c.Release()
				}
				p.end(t)
			})
		}
	}
}

const firstBucket = int64(-1) // before all others
