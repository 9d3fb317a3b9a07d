package superpipe

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// failing fails the post of an origin's operation behind some, once.
type failing struct {
	NIC
	after atomic.Int64
}

var errTest = errors.New("a test")

func (f *failing) Post(ops []transport.Op) (int, error) {
	if ops[0].Cookie-originCookies < CookieSpan && f.after.Add(-1) == 0 {
		return 0, errTest
	}
	return f.NIC.Post(ops)
}

// TestGatheredChunkFails: a chunk of several operations, one of which the NIC refuses, keeps its slot until the others are reported, and the
// transfer ends with the error.
func TestGatheredChunkFails(t *testing.T) {
	for after := range int64(8) {
		s := setup{config: smallSlots(), fabric: transporttest.FabricConfig{InOrder: true}}
		fail := &failing{}
		fail.after.Store(after + 1)
		s.nic = func(rank int, d transport.Domain) NIC {
			if rank == 0 {
				fail.NIC = d
				return fail
			}
			return d
		}
		r := newRig(t, 2, s)
		a, b := r.ranks[0], r.ranks[1]
		src, dst := guard(100_003, 3), guard(100_003, 5)
		copy(src.in.Data(), payload(1, src.in.Bytes, rand.New(rand.NewPCG(3, uint64(after)))))
		reg, err := a.d.Register(src.in, 0)
		require.NoError(t, err)
		p := a.begin(Transfer{Rank: 1, EP: a.eps[1], Local: src.in, Registered: true, LKey: reg.LKey, Lease: true})
		p.Step()
		g := a.rendezvous(p, b, dst.in)
		require.NoError(t, p.Granted(g))
		require.ErrorIs(t, finish(t, p), errTest)
		require.Zero(t, p.Copied())
		require.NoError(t, a.d.Deregister(reg), "the NIC has nothing of it any more")
		until(t, "the lease's return", func() bool { return b.t.Return(0, g.Generation, 0) })
		a.o.Lost(1, errTest) // else its place waits for a late acknowledgement
		r.idle()
	}
}
