package proto

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/eager"
	"gopgas/internal/hose"
	"gopgas/internal/mem"
	"gopgas/internal/prices"
	"gopgas/internal/selector"
	"gopgas/regmgr"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// register keeps memory registered until the test ends, and found.
func register(t *testing.T, n *device, user mem.Range) {
	for range 2 { // the second is found
		var h regmgr.Hold
		require.NoError(t, n.direct.reg.Acquire(&h, regmgr.Request{Mem: user, Access: transport.LocalWrite}))
		t.Cleanup(func() { n.direct.reg.Release(&h) })
	}
	require.True(t, n.direct.reg.Hot(user, transport.LocalWrite))
}

// decided has small transfers decided by costs at which the bypass pays from some hundred bytes on.
func decided(t *testing.T, n *device) {
	n.gauge.begun.Store(true)
	costs := eager.Costs{{Bytes: 64, Copy: 10, Register: 1e6, Lookup: 100, Wire: 1e6}, {Bytes: 64 << 10, Copy: 9000, Register: 1e6, Lookup: 100, Wire: 1e6}}
	c, err := eager.New(eager.Config{Costs: costs, Limits: eager.Limits{Inline: 128, Slot: 64 << 10}})
	require.NoError(t, err)
	n.small.decide(c)
}

// TestRegisteredIsNotCounted: transfers of memory that is registered already go past the slots at once where that pays and somebody waits, and the table
// of uses is not asked; others are counted, and go through a slot until they are many.
func TestRegisteredIsNotCounted(t *testing.T) {
	const bytes = 2 * leastLearned
	e, to, target := pair(t, bytes, Registration{}, transporttest.FabricConfig{})
	n := e.nic()
	decided(t, n)
	known, fresh := filled(bytes), memoryOf(bytes, 3)
	register(t, n, known)
	past := func(f func() error) uint64 {
		before := e.Stats()[PathBypass].Ops
		require.NoError(t, f())
		return e.Stats()[PathBypass].Ops - before
	}
	counted := func() int {
		s, ok := e.Bypasses()
		require.True(t, ok)
		return s.Buffers
	}
	handle := func(src mem.Range) func() error {
		return func() error {
			h, err := e.PutNB(to, 0, src)
			if err == nil {
				err = h.Wait(t.Context())
			}
			return err
		}
	}
	require.EqualValues(t, 1, past(handle(known)))
	require.Equal(t, known.Data(), target.Data())
	require.EqualValues(t, 1, past(func() error { return e.Get(to, 0, known) }))
	require.Zero(t, counted())
	s, _ := e.Bypasses()
	require.EqualValues(t, 2, s.Bypass)

	require.Zero(t, past(handle(fresh)))
	require.Equal(t, 1, counted())
	require.NoError(t, e.Flush(to))
	require.Equal(t, fresh.Data(), target.Data())
	require.Zero(t, past(func() error { return e.Get(to, 0, known.Slice(0, leastLearned/2)) }), "of so little it says too little")
	require.Equal(t, 2, counted())
}

// TestRegisteredPutsBeforeAFlush: a put that a flush follows goes past the slots likewise.
func TestRegisteredPutsBeforeAFlush(t *testing.T) {
	const bytes = 2 * leastLearned
	e, to, target := pair(t, bytes, Registration{}, transporttest.FabricConfig{})
	n := e.nic()
	believe(n, func(*selector.Machine) {})
	decided(t, n)
	user := filled(bytes)
	register(t, n, user)
	before := e.Stats()[PathBypass].Ops
	for i := range 20 {
		user.Data()[i] = byte(i)
		require.NoError(t, e.Put(to, 0, user))
		require.NoError(t, e.Flush(to))
		require.Equal(t, user.Data(), target.Data())
	}
	require.GreaterOrEqual(t, e.Stats()[PathBypass].Ops-before, uint64(15), "but for the first, of which nobody knows that a flush follows")
	s, _ := e.Bypasses()
	require.Zero(t, s.Buffers)
}

// slowCopies is a pair with a target of some bytes, where the copy is what takes long, and registered memory to put.
func slowCopies(t *testing.T, targetBytes, bytes int) (e *Engine, to *Remote, target, user mem.Range) {
	e, to, target = pair(t, targetBytes, Registration{}, transporttest.FabricConfig{})
	n := e.nic()
	believe(n, func(m *selector.Machine) {
		m.BulkSlot = 0
		m.Model.Copy = func(float64) float64 { return 1e7 }
	})
	n.small.habits.Begin(nil)
	user = filled(bytes)
	register(t, n, user)
	return e, to, target, user
}

// TestRegisteredPutsAreAlike: of registered memory that is put from one place over and over, from where it lies, one put in some is asked about.
func TestRegisteredPutsAreAlike(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	const bytes = 2 * leastLearned
	e, to, target, user := slowCopies(t, bytes, bytes)
	n := e.nic()
	n.bulk.chosen.Store(-1000) // what is asked about is counted there
	for range prices.AskedOf {
		require.NoError(t, e.Put(to, 0, user))
	}
	require.EqualValues(t, 1, n.bulk.chosen.Load()+1000)
	require.EqualValues(t, prices.AskedOf, e.Stats()[PathDirect].Ops)
	require.NoError(t, e.Flush(to))
	require.Equal(t, user.Data(), target.Data())
}

// TestFlushedPutsGoOn: of puts with a flush behind each, from where they lie, one in some is asked about; the others go as it did, but for those of memory
// that is not registered, behind one that is under way, or to buckets.
func TestFlushedPutsGoOn(t *testing.T) {
	const bytes = 2 * leastLearned
	granted := []int{prices.AskedOf, 13, 29, 61, 61} // puts of which one is asked about
	e, to, target := pair(t, bytes, Registration{}, transporttest.FabricConfig{})
	n := e.nic()
	believe(n, func(*selector.Machine) {})
	decided(t, n)
	user := filled(bytes)
	register(t, n, user)
	puts, goneOn := 2, 0 // but for the first, of which nobody knows that a flush follows
	for _, of := range granted {
		puts += of
	}
	for i := range puts {
		if n.small.habits.GoesOn(bytes) != selector.None {
			goneOn++
		}
		user.Data()[i] ^= 1
		require.NoError(t, e.Put(to, 0, user))
		require.NoError(t, e.Flush(to))
		require.Equal(t, user.Data(), target.Data())
	}
	require.Equal(t, puts-2-len(granted), goneOn)
	require.EqualValues(t, puts-1, e.Stats()[PathBypass].Ops)
	require.Equal(t, selector.Direct, n.small.habits.GoesOn(bytes), "the last one was asked about")
	journeyTo := func(r *Remote, blocking bool) *journey {
		return &journey{name: "test", kind: transport.OpWrite, r: r, path: PathDirect, blocking: blocking}
	}
	buckets := *to
	buckets.hosed = hose.Bare(to.Rank)
	require.Equal(t, selector.None, n.goesOn(journeyTo(&buckets, true), user))
	require.Equal(t, selector.None, n.goesOn(journeyTo(to, false), user), "whose handle somebody has")
	require.Equal(t, selector.None, n.goesOn(journeyTo(to, true), memoryOf(bytes, 3)), "it is not registered")
	j := journeyTo(to, true)
	require.Equal(t, selector.Direct, n.goesOn(j, user))
	require.Equal(t, PathBypass, j.path)
	for range 61 - 2 {
		require.True(t, n.small.habits.GoneOn(selector.Direct, bytes))
	}
	require.Equal(t, selector.None, n.goesOn(j, user), "it is to be asked about")
}
