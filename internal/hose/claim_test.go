package hose

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/regmgr"
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

// TestSmallerMeanwhile: bytes that were cut for one large bucket, and lie in more small ones than may be asked for together when they are asked for, since others of
// this rank have had buckets made smaller, are refused like others for which there are none now: messages are left.
func TestSmallerMeanwhile(t *testing.T) {
	for name, ask := range map[string]func(p *pair, smaller func()) (bool, error){
		"claim": func(p *pair, smaller func()) (bool, error) {
			c, err := p.set[0].Claim("put", p.far, p.addr(0), exposed)
			require.NoError(t, err)
			require.Equal(t, exposed, c.Bytes())
			smaller()
			c.Ask()
			return c.Wait()
		},
		"part": func(p *pair, smaller func()) (bool, error) {
			n, err := p.set[0].Cut(p.far, p.addr(0), exposed, exposed)
			require.NoError(t, err)
			require.Equal(t, exposed, n)
			smaller()
			_, direct, _, err := p.set[0].Attach("put", 1, p.far, p.addr(0), n, nil, false)
			return direct, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPairOf(t, regmgr.Config{Policy: regmgr.LeavePinned, Bytes: 8 * exposed})
			h := p.set[0]
			require.NoError(t, h.Fix(exposed))
			ok, err := ask(p, func() {
				p.nic[0].lock.Lock()
				defer p.nic[0].lock.Unlock()
				require.NoError(t, h.holder.Fix(p.far.v, 0))
				require.Less(t, h.holder.MaxBuckets(0), uint32(exposed/h.Unit()))
			})
			require.NoError(t, err)
			require.False(t, ok)
			p.end(t)
		})
	}
}
