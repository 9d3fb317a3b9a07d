package proto

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/eager"
	"gopgas/internal/atom"
	"gopgas/internal/mem"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// TestShownTogether: what a signal shows goes with it in one post, as far as it is copied, whether the signal is stored or added to. The source is free on return.
func TestShownTogether(t *testing.T) {
	var count *posts
	tm := newTeamOf(t, 2, 1<<20, transporttest.FabricConfig{}, func(d transport.Domain) transport.Domain { count = &posts{Domain: d}; return count })
	e, to := tm.e[0], &tm.of[0][1]
	inline, most := e.nic().Inline, leastLearned-8
	require.Equal(t, native, e.nic().wayTo(to, atom.Sum, atom.Word64()), "else adding is a message")
	for name, show := range map[string]func() error{
		"store": func() error { return e.Store64(to, 0, 1) },
		"add":   func() error { return e.SignalAdd(to, 0, 1) },
	} {
		for _, bytes := range []int{8, inline, inline + 8, most} {
			least := int64(1 << 20)
			for k := range 100 { // a poll in between, by whoever serves the NIC, may send some earlier
				src := mem.Of(make([]uint64, bytes/8)).Slice(0, bytes)
				for i := range src.Data() {
					src.Data()[i] = byte(i + k)
				}
				want := string(src.Data())
				clear(tm.mem[1].Slice(0, 8+bytes).Data())
				calls := count.calls.Load()
				require.NoError(t, e.PutShown("test", to, 8, src))
				clear(src.Data())
				require.NoError(t, show())
				require.NoError(t, e.Flush(to))
				require.EqualValues(t, 1, tm.mem[1].Word64(0).Load())
				require.Equal(t, want, string(tm.mem[1].Slice(8, bytes).Data()))
				least = min(least, count.calls.Load()-calls)
			}
			require.EqualValues(t, 1, least, "posts of %d bytes, %s", bytes, name)
		}
	}
}

// TestShownOtherwise: what is not copied through one slot, and where another way is forced, goes as a put does.
func TestShownOtherwise(t *testing.T) {
	for _, how := range []eager.Mode{eager.Auto, eager.OnlyBypass, eager.OnlyBounce} {
		tm := newTeamWith(t, 2, 1<<20, transporttest.FabricConfig{}, nil, func(c *Config) { c.Eager.Mode = how })
		e, to := tm.e[0], &tm.of[0][1]
		for k, bytes := range []int{64, leastLearned, e.nic().Slot + 8, 512 << 10} {
			src := filled(bytes)
			want := string(src.Data())
			require.NoError(t, e.PutShown("test", to, 8, src))
			clear(src.Data())
			require.NoError(t, e.Store64(to, 0, uint64(k+1)))
			require.NoError(t, e.Flush(to))
			require.EqualValues(t, k+1, tm.mem[1].Word64(0).Load())
			require.Equal(t, want, string(tm.mem[1].Slice(8, bytes).Data()))
		}
	}
}
