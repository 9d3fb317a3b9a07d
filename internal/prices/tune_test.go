package prices

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/eager"
	"gopgas/internal/cost"
	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/internal/selector"
	"gopgas/internal/superpipe"
	"gopgas/regmgr"
	"gopgas/transport"
)

// TestCut: what was tried costs what it took, whatever the number of its chunks, and more beyond it by the bytes that are cut.
func TestCut(t *testing.T) {
	const fixed, each = 2e-6, 3e-11 // seconds, and seconds a byte
	for _, get := range []bool{false, true} {
		for p, sizes := range map[selector.Protocol][]int{
			selector.Bounce: {256, 4 * kib, 64 * kib, 256 * kib},
			selector.Pipe:   {4 * kib, 64 * kib, 256 * kib},
		} {
			m := Published(testMachine()).Selector.Machine()
			s := m.Selector(0)
			took := func(bytes int) float64 {
				q := query(p, get, bytes)
				return s.Cost(p, q) + fixed + each*float64(s.Later(p, q))
			}
			var all []tried
			for _, n := range sizes {
				all = append(all, tried{n, took(n)})
			}
			own, tuning := &m.Puts, &m.Slotted
			if get {
				own = &m.Gets
			}
			if p == selector.Pipe {
				tuning = &m.Piped
			}
			own[p] = cut(s, all, p, get, tuning)
			now := m.Selector(0)
			for _, n := range append(sizes, 16<<20) {
				require.InEpsilon(t, took(n), now.Cost(p, query(p, get, n)), 1e-9, "%v, %d bytes, get %v", p, n, get)
			}
		}
	}
	m := Published(testMachine()).Selector.Machine()
	s := m.Selector(0)
	cut(s, []tried{{4 * kib, 1e-5}, {256 * kib, 1}}, selector.Pipe, false, &m.Piped) // the last waited for a core
	require.InEpsilon(t, 1/m.Model.Copy(256*kib), m.Piped.Put, 1e-9, "as if nothing overlapped, and no more")
	m.Piped.Put = 0
	require.Empty(t, cut(m.Selector(0), nil, selector.Pipe, false, &m.Piped))
	require.Zero(t, m.Piped)
}

// TestBetween: between two sizes that were tried a transfer takes what lies between, whatever the wire seemed to take there when the model was measured.
func TestBetween(t *testing.T) {
	m := Published(testMachine()).Selector.Machine()
	m.Model.Writes = cost.Curve{{N: 64, Nanos: 1500}, {N: 256, Nanos: 9000}, {N: 1024, Nanos: 9100}, {N: 4096, Nanos: 9200}}
	m.Model.Reads = m.Model.Writes
	bare := m.Selector(0)
	for _, get := range []bool{false, true} {
		own := more(bare, []tried{{64, 200e-9}, {4096, 600e-9}}, selector.Direct, get)
		m.Puts[selector.Direct], m.Gets[selector.Direct] = own, own
		s := m.Selector(0)
		for bytes, want := range map[int]float64{64: 200e-9, 256: 200e-9 + 400e-9*192/4032, 1024: 200e-9 + 400e-9*960/4032, 4096: 600e-9} {
			require.InEpsilon(t, want, s.Cost(selector.Direct, query(selector.Direct, get, bytes)), 1e-9, "%d bytes, get %v", bytes, get)
		}
	}
}

// TestOnwards: beyond what was tried registered memory moves at the pace that was seen; where only few bytes were tried there is none.
func TestOnwards(t *testing.T) {
	point := func(bytes int, seconds float64) selector.More {
		return selector.More{{Bytes: bytes, Seconds: seconds}}
	}
	require.Equal(t, point(136, -1), onwards(point(136, -1)))
	slower := append(point(136, 1e-7), point(1<<20, 2e-5)...)
	require.Equal(t, slower, onwards(slower))
	goesOn := append(point(136, 1e-7), point(selector.Onward, -2)...)
	require.Equal(t, goesOn, onwards(goesOn))
	far := onwards(append(point(136, 1e-7), point(1<<20, -2e-5)...))
	require.InEpsilon(t, -2e-5, far.At(1<<20), 1e-9)
	require.InEpsilon(t, -32e-5, far.At(16<<20), 1e-9)
}

// TestTurns: each try finds memory in turn, all of it inside.
func TestTurns(t *testing.T) {
	near := mem.Of(make([]uint64, 8*kib))
	for _, bytes := range []int{64, 4 * kib, 40 * kib, 64 * kib} {
		seen := map[uint64]bool{}
		for k := range 3 * tuneTurns {
			r := turns(near, k, bytes)
			require.True(t, near.Contains(r))
			seen[r.Addr()] = true
		}
		require.GreaterOrEqual(t, len(seen), min(tuneTurns, near.Bytes/bytes), "%d bytes", bytes)
	}
}

// workshop is a NIC that moves nothing, and knows how pipes are to be cut before one is tried.
type workshop struct {
	NIC
	model   *superpipe.Model
	refuses error
	message int // the longest
	past    int
	runs    int
	most    int
}

func (w *workshop) Caps() transport.Caps { return transport.Caps{MaxMessage: w.message} }

func (w *workshop) Cut(m superpipe.Model) { w.model = &m }

func (w *workshop) Slotted(_ bool, user mem.Range) error {
	w.most = max(w.most, user.Bytes)
	return nil
}

func (w *workshop) Piped(bool, mem.Range) error {
	if w.model == nil {
		return errors.New("a pipe is tried that is cut by another model")
	}
	return nil
}

func (w *workshop) Past(get bool, user mem.Range, cache *regmgr.Manager) error {
	w.past = max(w.past, user.Bytes)
	if covered, _ := cache.Known(user, transport.LocalWrite); !covered {
		return errors.New("it is not registered yet")
	}
	return nil
}

func (w *workshop) Run(p selector.Protocol, user mem.Range, bytes int, cache *regmgr.Manager) error {
	if p == selector.Direct {
		return w.Past(false, user.Slice(0, bytes), cache)
	}
	w.runs = max(w.runs, user.Bytes)
	return nil
}

func (w *workshop) Register(mem.Range, transport.Access) (transport.Region, error) {
	return transport.Region{}, w.refuses
}

func (w *workshop) Deregister(transport.Region) error { return nil }

// TestTune: pipes are cut by the model whose costs are tuned, and registered memory is tried as long as there is some, unless the NIC has no
// room for it, and up to the longest message.
func TestTune(t *testing.T) {
	for message, refuses := range map[int]error{1 << 30: nil, 1<<16 + 1: nil, 1000: nil, 4 << 20: transport.ErrLimit} {
		w := &workshop{refuses: refuses, message: message}
		c := Config{Sched: sched.Process(1), NIC: w, Machine: testMachine(), Memory: mem.Of(make([]uint64, 4<<20/8))}
		m := Published(testMachine()).Selector.Machine()
		require.NoError(t, c.tune(&m, bySlot{bytes: 136}))
		require.NotNil(t, w.model)
		require.InDelta(t, m.Model.Net, w.model.Net, 0)
		require.Equal(t, 1<<20, w.most, "of what is cut some is tried that is longer than a slot")
		if refuses != nil {
			require.Zero(t, w.past)
			require.Len(t, m.Puts[selector.Direct], 1)
			continue
		}
		tried := map[int]int{1 << 30: 1 << 20, 1<<16 + 1: 1 << 16, 1000: 0}[message]
		require.Equal(t, tried, w.past)
		require.GreaterOrEqual(t, len(m.Gets[selector.Register]), 1+len(tuneSizes(tried)))
	}
}

// TestRunsMeasured: what each of some puts takes that are flushed together is what was measured of such, in place of what single ones make of it; and by how
// much the flush waits longer past the slots is told to who decides of small ones.
func TestRunsMeasured(t *testing.T) {
	w := &workshop{message: 1 << 30}
	c := Config{Sched: sched.Process(1), NIC: w, Machine: testMachine(), Memory: mem.Of(make([]uint64, 4<<20/8))}
	m := Published(testMachine()).Selector.Machine()
	require.NoError(t, c.tune(&m, bySlot{bytes: 136}))
	require.Equal(t, 1<<20, w.runs, "the most that fits into the half, sizes being four times as long as each other")
	for _, p := range []selector.Protocol{selector.Direct, selector.Bounce, selector.Pipe} {
		require.True(t, m.Runs[p].Has(64*kib), "%v", p)
		require.False(t, m.Runs[p].Has(256*kib), "%v", p)
	}
	m.Runs = [selector.Protocols]selector.More{
		selector.Bounce: {point(4*kib, 9e-6), point(64*kib, 9e-5)}, selector.Direct: {point(4*kib, 7e-6), point(64*kib, 8e-5)},
	}
	m.First = 0 // which a clock of real time does not tell to the picosecond
	s := m.Selector(0)
	q := selector.Query{Bytes: 64 * kib, Uses: 4}
	require.InDelta(t, 9e-5, s.Lasting(selector.Bounce, q), 1e-12)
	require.InDelta(t, 8e-5+m.Model.Register(64*kib)/4, s.Lasting(selector.Register, q), 1e-12)
	q.Waited = true
	require.InDelta(t, s.Cost(selector.Bounce, q), s.Lasting(selector.Bounce, q), 1e-12, "one by one")

	puts := eager.Costs{{Bytes: 64, Copy: 10, Wire: 500}, {Bytes: 4 * kib, Copy: 5000, Lookup: 100, Wire: 500}, {Bytes: 128 * kib, Wire: 500}}
	plain(puts, &m)
	require.InDelta(t, 5000-100-2000, puts[1].Wire, 1e-6)
	require.Equal(t, 500.0, puts[0].Wire, "not measured")
	require.Equal(t, 500.0, puts[2].Wire, "not measured")
}

// TestRegistered: a registration is what short transfers took longer that made one each.
func TestRegistered(t *testing.T) {
	m := Published(testMachine()).Selector.Machine()
	before := m.Model.RegLatency
	registered(&m, nil)
	require.Equal(t, before, m.Model.RegLatency)
	direct := m.Selector(0).Cost(selector.Direct, query(selector.Direct, false, 64))
	registered(&m, []tried{{64, direct + 3e-6}})
	require.InDelta(t, 3e-6, m.Model.RegLatency, 1e-12)
	registered(&m, []tried{{64, direct / 2}})
	require.Positive(t, m.Model.RegLatency)
}
