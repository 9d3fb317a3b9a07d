package proto

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// laborious is a NIC that is a program.
type laborious struct{ *posts }

func (l laborious) Caps() transport.Caps {
	c := l.Domain.Caps()
	c.Busy = true
	return c
}

// TestAheadInSlots: where the NIC is a program a put of several slots goes with the word that is stored behind it, in one post; where it is not the first
// sets out before the second is copied.
func TestAheadInSlots(t *testing.T) {
	for _, busy := range []bool{true, false} {
		var count *posts
		tm := newTeamWith(t, 2, 1<<20, transporttest.FabricConfig{}, func(d transport.Domain) transport.Domain {
			if count = (&posts{Domain: d}); busy {
				return laborious{count}
			}
			return count
		}, func(*Config) {})
		e, to := tm.e[0], &tm.of[0][1]
		bytes := aheadSlots * e.nic().Slot
		src := filled(bytes)
		least := int64(1 << 20)
		for k := range uint64(20) { // a poll in between, by whoever serves the NIC, may send some earlier
			clear(tm.mem[1].Data())
			calls := count.calls.Load()
			h, err := e.PutAhead("test", to, 8, src)
			require.NoError(t, err)
			require.NoError(t, e.Store64(to, 0, k+1))
			require.NoError(t, e.Flush(to))
			require.NoError(t, h.Wait(t.Context()))
			require.Equal(t, k+1, tm.mem[1].Word64(0).Load())
			require.Equal(t, src.Data(), tm.mem[1].Slice(8, bytes).Data())
			least = min(least, count.calls.Load()-calls)
		}
		if busy {
			require.EqualValues(t, 1, least)
		} else {
			require.Greater(t, least, int64(1))
		}
	}
}
