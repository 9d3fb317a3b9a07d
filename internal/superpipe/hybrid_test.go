package superpipe

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// TestTailIsPinned registers the tail of a transfer while its head travels by copies: at once, in the midst, at the
// end, and at any byte.
func TestTailIsPinned(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, name := range []string{"immediates", "small", "faults", "jitter"} {
		for _, get := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/get=%v", name, get), func(t *testing.T) {
				r := newRig(t, 2, flavours[name])
				a, b := r.ranks[0], r.ranks[1]
				for _, steps := range []int{0, 2, 7} {
					for _, at := range []int{0, 5001, 16 << 10, 77_777} {
						want := payload(steps, 120_000, rng)
						local, remote := guard(len(want), 3), guard(len(want), 1)
						src, dst := local, remote
						if get {
							src, dst = remote, local
						}
						copy(src.in.Data(), want)
						reg, err := b.d.Register(remote.in, transport.AllAccess)
						require.NoError(t, err)
						p := a.begin(Transfer{Get: get, Rank: 1, EP: a.eps[1], Local: local.in, RAddr: remote.in.Addr(), RKey: reg.RKey})
						for range steps {
							p.Step()
						}
						tail, err := a.d.Register(local.in.Slice(at, len(want)-at), transport.LocalWrite)
						require.NoError(t, err)
						p.Pinned(at, tail.LKey)
						require.NoError(t, finish(t, p))
						dst.check(t, want, "tail from byte %d on, after %d steps", at, steps)
						require.NoError(t, a.d.Deregister(tail))
						require.NoError(t, b.d.Deregister(reg))
					}
				}
				r.idle()
			})
		}
	}
}

// TestTailIsNotCopied: what is registered in time takes no slot, and one operation.
func TestTailIsNotCopied(t *testing.T) {
	nic, c := quietConfig(transport.Caps{})
	o, err := NewOrigin(c)
	require.NoError(t, err)
	local := mem.Of(make([]byte, 10*Block))
	p, _, err := o.Begin(Transfer{Local: local})
	require.NoError(t, err)
	p.Step() // copies a chunk
	p.Pinned(2*Block+100, 42)
	for posted := 0; !p.Done(); {
		for p.Step() {
		}
		for ; posted < len(nic.ops); posted++ {
			o.Completed(&transport.Completion{Kind: transport.OpWrite, Cookie: nic.ops[posted].Cookie})
		}
	}
	last := nic.ops[len(nic.ops)-1]
	require.Equal(t, local.Slice(2*Block+100, 8*Block-100), last.SGE[0].Mem)
	require.EqualValues(t, 42, last.SGE[0].LKey)
	require.EqualValues(t, 2*Block+100, last.RAddr)
	require.NoError(t, p.Err())
	require.Equal(t, c.Slots, o.FreeSlots())
	for _, op := range nic.ops[:len(nic.ops)-1] {
		require.False(t, local.Contains(op.SGE[0].Mem), "copied")
	}
}
