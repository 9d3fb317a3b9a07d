package sim

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/sched"
	"gopgas/transport"
)

// TestBlocksLandBeforeTheirFlags is the litmus of transporttest's grid, in the time that the promise InOrderData is about: writes of blocks
// that end in a flag land in pieces of other sizes than blocks; whenever the target may look, there is no flag before its payload, and some of
// a write is there while the rest is not.
func TestBlocksLandBeforeTheirFlags(t *testing.T) {
	const block, blocks = 4096, 6
	for _, fragment := range []int{1000, 4096, 0} {
		for _, f := range []Faults{{}, {Delay: 5 * time.Microsecond}} {
			m := round()
			m.Fragment = fragment
			partly := 0
			run(t, 2, Config{Model: m, Faults: f}, func(r *lone) {
				require.True(t, r.d.Caps().InOrderData)
				for gen := uint64(1); gen <= 3; gen++ {
					lead := int(gen-1) * 808 // of the first block, which is short
					if r.rank == 0 {
						for w := range blocks * block / 8 {
							r.mem.Word64(8 * w).Store(gen<<32 | uint64(w))
						}
						r.send(lead, blocks*block-lead)
						require.Equal(t, transport.StatusOK, r.wait().Status)
						continue
					}
					here := func(w int) bool { return r.mem.Word64(8*w).Load() == gen<<32|uint64(w) }
					sp := r.s.Begin(context.Background(), sched.What{Op: "blocks", Peer: -1}, nil)
					for landed := 0; landed < blocks; {
						seen := 0
						for b := landed; b < blocks && here((b+1)*block/8-1); b++ {
							for w := max(b*block, lead) / 8; w < (b+1)*block/8; w++ {
								require.True(t, here(w), "generation %d: word %d of the write is behind the flag of block %d", gen, w, b)
							}
							seen++
						}
						if landed += seen; landed < blocks {
							if landed > 0 {
								partly++
							}
							require.NoError(t, sp.Step())
						}
					}
					sp.End()
				}
			})
			if fragment > 0 {
				require.Positive(t, partly, "nothing was seen while it landed")
			}
		}
	}
}

// send posts a write of this rank's bytes from off on to the same place of the other's memory.
func (r *lone) send(off, bytes int) {
	p := r.all[1-r.rank]
	ep, err := r.d.Connect(r.t.Context(), p.rank, p.d.Address())
	require.NoError(r.t, err)
	n, err := r.d.Post([]transport.Op{{
		Kind: transport.OpWrite, Flags: transport.FlagSignaled, NSGE: 1, EP: ep,
		SGE: [4]transport.SGE{{Mem: r.mem.Slice(off, bytes), LKey: r.reg.LKey}}, RAddr: p.mem.Addr() + uint64(off), RKey: p.reg.RKey,
	}})
	require.NoError(r.t, err)
	require.Equal(r.t, 1, n)
}
