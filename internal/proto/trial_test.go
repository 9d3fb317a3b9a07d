package proto

import (
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/internal/hose"
	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/internal/prices"
	"gopgas/internal/selector"
	"gopgas/regmgr"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// believe has an engine go by the costs of a machine as if they had been measured, and what is changed of it.
func believe(n *device, change func(*selector.Machine)) {
	n.gauge.begun.Store(true)
	m := n.prices().Selector.Machine()
	change(&m)
	p := prices.New(m.Selector(0))
	p.Measured = true
	n.gauge.prices.Store(p)
}

// mapping is memory of no object of Go's, which its owner may unmap.
func mapping(t *testing.T, bytes int) mem.Range {
	b, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Munmap(b)) })
	return mem.Of(b)
}

// TestTrialsAreOfWhatTravels: what a transfer costs is noted as the cost of the protocol that has carried it, or not at all, also
// where the one that seems the cheapest cannot carry it: to few buckets, from a stack, from memory that its owner may unmap.
func TestTrialsAreOfWhatTravels(t *testing.T) {
	const n = 16 << 20
	helped := func(m *selector.Machine) { // the helper pays: to register takes longer than a call and less than a copy
		m.Model.RegLatency, m.Model.Reg, m.Model.Net, m.Idle = 100e-6, 20e9, 4e9, true
	}
	isPipe := func(p selector.Protocol) bool { return p == selector.Pipe || p == selector.Hybrid }
	anything := func(selector.Protocol) bool { return false }
	for _, c := range []struct {
		name   string
		limit  int64
		budget int64
		user   mem.Range // empty: on the stack
		barred func(selector.Protocol) bool
	}{
		{"buckets", 10 << 20, 0, filled(300_000), anything},
		{"few buckets", 10 << 20, 256 << 10, filled(1_000_000), isPipe},
		{"stack", 0, 0, mem.Range{}, func(p selector.Protocol) bool { return p != selector.Bounce }},
		{"mapping", 0, 0, mapping(t, 4<<20), func(p selector.Protocol) bool { return p == selector.Hybrid }},
	} {
		t.Run(c.name, func(t *testing.T) {
			tm := newTeamWith(t, 2, n, transporttest.FabricConfig{MaxPinned: c.limit}, nil, func(set *Config) { set.Registration.Bytes = c.budget })
			e, to := tm.e[0], &tm.of[0][1]
			require.Equal(t, c.limit > 0, to.hosed != nil)
			believe(e.nic(), helped)
			if c.limit > 0 { // what waits for buckets is noted of nothing
				require.NoError(t, e.Put(to, 0, c.user))
			}
			if c.user.Bytes > 0 {
				chooses(t, e.nic(), to, c.user, c.barred)
				return
			}
			var stack [100_000]byte
			user := mem.Of(stack[:])
			require.Equal(t, mem.Unknown, mem.OriginOf(user))
			chooses(t, e.nic(), to, user, c.barred)
		})
	}
}

// chooses has puts and gets chosen for, and requires that what is noted of each is noted of what carries it.
func chooses(t *testing.T, n *device, to *Remote, user mem.Range, barred func(selector.Protocol) bool) {
	for i := range 20 { // some of them try what seems dearer
		get := i%2 == 0
		j := journey{name: "test", kind: transport.OpWrite, r: to, path: PathDirect, blocking: true}
		if get {
			j.kind = transport.OpRead
		}
		p := n.choose(&j, get, user)
		require.False(t, barred(p), "%v", p)
		if j.trial == (selector.Trial{}) {
			continue
		}
		q := selector.Query{Bytes: user.Bytes, Get: get, Waited: get}
		tried, ok := j.trial.Again(q)
		for _, q.Covered = range []bool{false, true} { // its kind is that of one of these
			for _, q.Waited = range []bool{get, true} {
				if !ok {
					tried, ok = j.trial.Again(q)
				}
			}
		}
		require.True(t, ok)
		if tried == selector.Register {
			tried = selector.Direct
		}
		require.Equal(t, p, tried, "transfer %d", i)
		n.learned(to).Note(j.trial, 1e-3)
	}
}

// TestNothingIsTriedInVain: before the costs are known what a put has cost is noted nowhere, so none is made in a way that seems dearer, to learn what
// that takes.
func TestNothingIsTriedInVain(t *testing.T) {
	e, to, _ := pair(t, 1<<20, Registration{}, transporttest.FabricConfig{})
	n, user := e.nic(), filled(1<<20)
	n.gauge.begun.Store(true) // nobody measures
	tried := func(kind transport.Kind) (k int) {
		for range 40 {
			j := journey{name: "test", kind: kind, r: to, path: PathDirect, blocking: true}
			n.choose(&j, kind == transport.OpRead, user)
			if j.trial.Wanted() {
				k++
			}
		}
		return k
	}
	require.Zero(t, tried(transport.OpWrite))
	require.Positive(t, tried(transport.OpRead))
	n.small.habits.Begin(nil)
	require.Positive(t, tried(transport.OpWrite))
}

// TestRefusedIsNoTrial: a transfer whose memory was to be registered and is copied for want of room tells nothing about
// registered memory.
func TestRefusedIsNoTrial(t *testing.T) {
	const n = 1 << 20
	e, to, memory := pair(t, n, Registration{Bytes: 64 << 10}, transporttest.FabricConfig{})
	believe(e.nic(), func(*selector.Machine) {})
	src := filled(n)
	for _, parts := range []int{1, 4} {
		j := journey{name: nic.OpPut, kind: transport.OpWrite, r: to, path: PathDirect, blocking: true}
		_, j.trial = e.nic().learned(to).Choose(selector.Query{Bytes: n, Waited: true}, e.nic().prices().Selector, true)
		require.True(t, j.trial.Wanted())
		plan := e.nic().planFor(j, n)
		plan.Fragment = n / parts
		require.NoError(t, e.nic().whole(&j, src, plan))
		require.NoError(t, e.Flush(to))
		require.Equal(t, src.Data(), memory.Data())
		require.Zero(t, e.Stats()[PathDirect].Ops, "nothing was registered")
		require.False(t, j.trial.Wanted())
		clear(memory.Data())
	}
}

// TestLearnedByKindOfPeer: what transfers within this rank or its node have cost decides nothing about those to other nodes, nor does what
// buckets cost about memory that is registered as a whole.
func TestLearnedByKindOfPeer(t *testing.T) {
	const bytes = 1 << 20
	tm := newTeamWith(t, 3, bytes, transporttest.FabricConfig{}, nil, func(c *Config) { c.Nodes = []int{0, 0, 1} })
	n := tm.e[0].nic()
	believe(n, func(*selector.Machine) {})
	user := filled(bytes)
	choice := func(r *Remote, seconds map[selector.Protocol]float64) selector.Protocol {
		j := journey{name: "test", kind: transport.OpRead, r: r, path: PathDirect, blocking: true}
		p := n.choose(&j, true, user)
		n.learned(r).Note(j.trial, seconds[p])
		return p
	}
	bounced := func(r *Remote) (seen int) {
		for range 20 {
			if choice(r, nil) == selector.Bounce {
				seen++
			}
		}
		return seen
	}
	require.Less(t, bounced(&tm.of[0][2]), 10)
	for _, near := range []*Remote{&tm.of[0][0], &tm.of[0][1]} {
		for range 300 { // on this node slots are much better than anything
			choice(near, map[selector.Protocol]float64{selector.Bounce: 1e-6, selector.Direct: 1, selector.Pipe: 1, selector.Hybrid: 1})
		}
		require.Greater(t, bounced(near), 15, "rank %d", near.Rank)
	}
	require.Less(t, bounced(&tm.of[0][2]), 10)
	seen := map[prices.Peer]bool{}
	for i := range tm.of[0] {
		whole, buckets := tm.of[0][i], tm.of[0][i]
		buckets.hosed = hose.Bare(i)
		seen[tm.e[0].kindOf(&whole)], seen[tm.e[0].kindOf(&buckets)] = true, true
	}
	require.Len(t, seen, 6)
}

// TestShortTrialEnds: the first puts of a kind are a run of no more than a short trial has, though nothing is flushed: the last of it waits for all.
func TestShortTrialEnds(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // each buffer is a new one
	const bytes = 100_000                            // that return early
	e, to, _ := pair(t, bytes, Registration{}, transporttest.FabricConfig{Jitter: 50 * time.Microsecond})
	n := e.nic()
	believe(n, func(*selector.Machine) {})
	n.small.habits.Begin(nil)
	var begun time.Time
	for i := range selector.ShortTrial {
		src := filled(bytes)
		begun = time.Now()
		require.NoError(t, e.Put(to, 0, src))
		_, _, last := n.small.habits.FlushFollows(0, 32<<10)
		_, _, again := last.Again(n.learned(to), to.Rank, selector.Query{Bytes: bytes, Uses: 1})
		require.Equal(t, i < selector.ShortTrial-1, again, "put %d", i)
	}
	if n.Pending(to.Rank) { // it has waited as long as it may
		require.Greater(t, time.Since(begun), longestTry)
	}
}

// TestSureGoDirectUnasked: what is registered at both ends goes direct without being asked about where any other way is estimated to take far longer,
// but for one in seven, until those say otherwise; buckets, and memory that is not registered, are asked about each time.
func TestSureGoDirectUnasked(t *testing.T) {
	const bytes, transfers = 1 << 20, 5 * toldEvery
	e, to, _ := pair(t, bytes, Registration{}, transporttest.FabricConfig{})
	n := e.nic()
	n.gauge.begun.Store(true)
	m := n.prices().Selector.Machine()
	m.Model.Copy = func(float64) float64 { return 1e9 } // half of the network's rate
	n.gauge.prices.Store(prices.From(m, n.prices().Small))
	user := filled(bytes)
	ask := func(r *Remote, seconds func(p selector.Protocol) float64) (asked, direct int) {
		for range transfers {
			j := journey{name: "test", kind: transport.OpRead, r: r, path: PathDirect, blocking: true}
			p := n.choose(&j, true, user)
			if p == selector.Direct {
				direct++
			}
			if j.trial != (selector.Trial{}) {
				asked++
				n.learned(r).Note(j.trial, seconds(p))
			}
		}
		return asked, direct
	}
	same := func(selector.Protocol) float64 { return 1e-3 }
	asked, _ := ask(to, same)
	require.GreaterOrEqual(t, asked, transfers-5, "it is not registered")

	var h regmgr.Hold
	require.NoError(t, n.direct.reg.Acquire(&h, regmgr.Request{Mem: user, Access: transport.LocalWrite}))
	defer n.direct.reg.Release(&h)
	asked, direct := ask(to, same)
	require.Equal(t, transfers/toldOf, asked)
	require.GreaterOrEqual(t, direct, transfers-transfers/toldOf, "but for trials")

	slow := func(p selector.Protocol) float64 {
		if p == selector.Direct {
			return 1
		}
		return 1e-6
	}
	for range 10 {
		ask(to, slow)
	}
	asked, direct = ask(to, slow)
	require.Equal(t, transfers, asked, "direct has turned out to be slow")
	require.Less(t, direct, transfers/10)

	n.gauge.prices.Store(prices.From(m, n.prices().Small))
	buckets := *to
	buckets.hosed = hose.Bare(to.Rank)
	asked = int(n.direct.sure.Load())
	j := journey{name: "test", kind: transport.OpRead, r: &buckets, path: PathDirect, blocking: true}
	n.choose(&j, true, user)
	require.EqualValues(t, asked, n.direct.sure.Load(), "of buckets nothing is sure")
}

// TestPutsThroughSlotsAreAlike: of fresh buffers from one place that go through slots one in some is asked about, and all arrive; what is in buckets is
// asked about each time.
func TestPutsThroughSlotsAreAlike(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // each buffer is a new one
	const bytes = 2 * leastLearned
	e, to, target := pair(t, bytes, Registration{}, transporttest.FabricConfig{})
	n := e.nic()
	believe(n, func(m *selector.Machine) { m.BulkSlot, m.Model.RegLatency = 0, 1 }) // no other way is any good
	n.small.habits.Begin(nil)
	asked := func(puts int) int32 {
		n.bulk.chosen.Store(-1000) // what is asked about is counted there
		for range puts {
			require.NoError(t, e.Put(to, 0, filled(bytes)))
		}
		return n.bulk.chosen.Load() + 1000
	}
	require.EqualValues(t, 1, asked(prices.AskedOf))
	require.EqualValues(t, 1, asked(prices.AskedOf))
	require.NoError(t, e.Flush(to))
	require.Equal(t, filled(bytes).Data(), target.Data())
	require.EqualValues(t, 1, asked(1), "the first of a run")
	buckets := *to
	buckets.hosed = hose.Bare(to.Rank)
	_, alike := n.alike(&journey{kind: transport.OpWrite, r: &buckets, blocking: true}, 1, bytes, true)
	require.False(t, alike)
	_, alike = n.alike(&journey{kind: transport.OpWrite, r: to}, 1, bytes, true)
	require.False(t, alike, "whose handle somebody has")
}
