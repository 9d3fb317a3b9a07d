package proto

import (
	"testing"
	"time"

	"gopgas/internal/mem"

	"github.com/stretchr/testify/require"

	"gopgas/internal/prices"
	"gopgas/internal/selector"
	"gopgas/regmgr"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// TestTrialsAmongSurePuts: of puts that go direct for sure one in seven is asked about, as many together as a short trial has. No put goes direct behind
// a trial of another way before that is over, and however many puts a trial has it is one: they are sure as before.
func TestTrialsAmongSurePuts(t *testing.T) {
	const bytes, batch, batches = 256 << 10, 10, 20 * toldEvery
	e, to, _ := pair(t, bytes, Registration{}, transporttest.FabricConfig{})
	n := e.nic()
	n.gauge.begun.Store(true)
	m := n.prices().Selector.Machine()
	m.Model.Copy = func(float64) float64 { return 8e8 } // less than half of the network's rate
	n.gauge.prices.Store(prices.From(m, n.prices().Small))
	n.small.habits.Begin(nil)
	require.True(t, n.prices().Surely(prices.Put, bytes))
	user := filled(bytes)
	var h regmgr.Hold
	require.NoError(t, n.direct.reg.Acquire(&h, regmgr.Request{Mem: user}))
	defer n.direct.reg.Release(&h)

	asked, tried := 0, 0
	for range batches {
		another := false // way was tried for the last put, and the trial is not over
		for range batch {
			j := journey{name: "test", kind: transport.OpWrite, r: to, path: PathDirect, blocking: true}
			p := n.choose(&j, false, user)
			if j.trial == (selector.Trial{}) {
				require.Equal(t, selector.Direct, p)
				require.False(t, another, "it would wait for those before it")
				continue
			}
			asked++
			took := 100 * time.Microsecond
			if another = p != selector.Direct; another {
				took *= 2
				tried++
			}
			if r := n.small.habits.Put(n.learned(to), j.trial, to.Rank, took); r.Wanted() {
				r.Flushed(0)
				another = false
			}
		}
		if r := n.small.habits.Flush(to.Rank); r.Wanted() {
			r.Flushed(0)
		}
	}
	require.InDelta(t, batches*batch/toldOf, asked, 0.05*batches*batch/toldOf+float64(tried), "those behind a trial are asked about, too")
	require.Greater(t, tried, 3*batch)
	require.Less(t, tried, asked/10)
	require.True(t, n.prices().Surely(prices.Put, bytes))
	require.True(t, n.learned(to).Sure(selector.Query{Bytes: bytes}), "it was learned")
}

// TestSurePutsThatFitSlots: of puts that fit into a slot, from registered memory, many before a flush, which were learned to take far less from where they
// lie, one in seven is one of a spell in which they are asked about as before; those of memory that is not registered always are.
func TestSurePutsThatFitSlots(t *testing.T) {
	const bytes, batch, batches = 2 * leastLearned, 16, 10 * toldEvery
	e, to, target, user := slowCopies(t, batch*bytes, bytes)
	n := e.nic()
	round := func() {
		for i := range batch {
			require.NoError(t, e.Put(to, i*bytes, user))
		}
		require.NoError(t, e.Flush(to))
	}
	for rounds := 0; !n.learned(to).Sure(selector.Query{Bytes: bytes}); rounds++ {
		require.Less(t, rounds, 1000)
		round()
	}
	require.Equal(t, user.Data(), target.Slice((batch-1)*bytes, bytes).Data())
	n.bulk.chosen.Store(-1 << 20) // what is asked about is counted there
	for range batches {
		round()
	}
	spells := batches * batch / toldEvery // of as many puts as a short trial has, most of which go on as the ones that are asked about
	asked := int(n.bulk.chosen.Load() + 1<<20)
	require.Greater(t, asked, spells)
	require.Less(t, asked, 2*spells*(selector.ShortTrial/prices.AskedOf+1), "trials of other ways included")

	j := journey{name: "test", kind: transport.OpWrite, r: to, path: PathDirect, blocking: true}
	require.False(t, n.surelyOn(&j, memoryOf(bytes, 3)), "it is not registered")
	n.direct.sure.Store(toldEvery - 1) // the next is in its spell
	require.False(t, n.surelyOn(&j, user))
	n.direct.sure.Store(selector.ShortTrial)
	require.True(t, n.surelyOn(&j, user))
}

// TestLargeTransfersPass: of large transfers of memory that is used once, which go through slots and for whose end somebody waits, most are not asked about;
// one of memory that is registered is, and one that is under way with another behind it.
func TestLargeTransfersPass(t *testing.T) {
	const bytes, each = 256 << 10, 70
	for _, get := range []bool{false, true} {
		e, to, target := pair(t, bytes, Registration{}, transporttest.FabricConfig{})
		n := e.nic()
		believe(n, func(m *selector.Machine) { // nothing else pays
			m.Model.RegLatency, m.BulkSlot = 1, 0
			m.Model.Copy = func(float64) float64 { return 1e12 }
		})
		n.small.habits.Begin(nil)
		n.bulk.chosen.Store(-1 << 20) // what is asked about is counted there
		asked := func() int { return int(n.bulk.chosen.Load() + 1<<20) }
		transfer := func(user mem.Range) {
			if get {
				require.NoError(t, e.Get(to, 0, user))
			} else {
				require.NoError(t, e.Put(to, 0, user))
				require.NoError(t, e.Flush(to))
			}
			require.Equal(t, target.Data(), user.Data())
		}
		var users []mem.Range // the collector is to give none of them twice
		for i := range each {
			users = append(users, memoryOf(bytes, 0))
			users[i].Data()[i], target.Data()[i] = 1, 2
			transfer(users[i])
		}
		require.Less(t, asked(), each/2)
		require.GreaterOrEqual(t, asked(), each/prices.AskedOf)
		require.EqualValues(t, each, e.Stats()[PathBounce].Ops)
		register(t, n, users[0])
		for range prices.AskedOf {
			transfer(users[0])
		}
		require.GreaterOrEqual(t, e.Stats()[PathDirect].Ops, uint64(prices.AskedOf/2+1), "but for trials of other ways")
	}
}
