package prices

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/internal/selector"
	"gopgas/regmgr"
)

// TestDiffering: toward a peer transfers cost what they cost at home times a factor, whatever the model has become; between the sizes that were tried
// the factor is between theirs, and beyond the last it is the last one's.
func TestDiffering(t *testing.T) {
	home := Published(testMachine()).Selector.Machine()
	home.Puts[selector.Pipe] = selector.More{{Bytes: 4 * kib, Seconds: 1e-6}, {Bytes: 1 << 20, Seconds: -3e-5}}
	home.Runs[selector.Bounce] = selector.More{{Bytes: 4 * kib, Seconds: 1e-6}, {Bytes: 256 * kib, Seconds: 2e-5}}
	at := home.Selector(0)
	var f factors
	for i := range f {
		for _, p := range []selector.Protocol{selector.Direct, selector.Bounce, selector.Pipe} {
			f[i][p] = selector.More{{Bytes: 64, Seconds: 0.8}, {Bytes: 64 * kib, Seconds: 0.7 * float64(1+i)}, {Bytes: 2 << 20, Seconds: 2}}
		}
	}
	m := home
	m.Model.Latency, m.Model.Net = 1.2*m.Model.Latency, m.Model.Net/1.1
	f.apply(at, &m)
	toward := m.Selector(0)
	for _, get := range []bool{false, true} {
		for _, p := range []selector.Protocol{selector.Direct, selector.Bounce, selector.Pipe} {
			for _, bytes := range []int{64, 64 * kib, 2 << 20} {
				q := query(p, get, bytes)
				require.InEpsilon(t, at.Cost(p, q)*f[side(get)][p].At(bytes), toward.Cost(p, q), 1e-9, "%v of %d bytes, get %v", p, bytes, get)
			}
		}
	}
	require.InEpsilon(t, home.Runs[selector.Bounce][1].Seconds*f[0][selector.Bounce].At(256*kib), m.Runs[selector.Bounce][1].Seconds, 1e-9)
	require.InDelta(t, 2e-5, home.Runs[selector.Bounce][1].Seconds, 0, "what is known at home stays")
	require.Equal(t, m.Puts[selector.Pipe], m.Puts[selector.Hybrid])
	require.Equal(t, m.Puts[selector.Direct], m.Puts[selector.Register])
	require.Equal(t, m.Puts[selector.Bounce], m.Puts[selector.Inline])

	var none factors
	m = home
	none.apply(at, &m)
	require.Equal(t, home.Puts[selector.Pipe], m.Puts[selector.Pipe], "of what was not tried nothing is known")
}

// TestSized: what is tried fits both ends, the NIC and the slots.
func TestSized(t *testing.T) {
	w := &workshop{message: 1 << 20}
	c := Config{NIC: w, Memory: mem.Of(make([]uint64, 8<<20/8))}
	cache, err := regmgr.New(regmgr.Config{Policy: regmgr.LeavePinned, Registrar: w, Sched: sched.Process(1)})
	require.NoError(t, err)
	defer func() { require.NoError(t, cache.Close()) }()
	m := testMachine()
	sizes := func(p selector.Protocol, longest int) (all []int) {
		for _, a := range c.sized(p, true, &m, longest, cache) {
			require.Equal(t, p, a.p)
			require.True(t, a.get)
			all = append(all, a.bytes)
		}
		return all
	}
	require.Equal(t, []int{64, 16 * kib, 64 * kib, 256 * kib, 2 << 20}, sizes(selector.Pipe, 2<<20))
	require.Equal(t, []int{64, 16 * kib, 64 * kib, 256 * kib, 1 << 20}, sizes(selector.Direct, 2<<20))
	require.Equal(t, []int{64, 16 * kib, 40 * kib}, sizes(selector.Bounce, 40*kib))
	m.BulkSlot = 0
	require.Equal(t, []int{64, 16 * kib, 64 * kib}, sizes(selector.Bounce, 2<<20), "nothing longer is cut")
}
