package prices

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/selector"
)

// TestDoubts: it is sure of a kind and a size until some answers one after the other are another way, and of the others as before.
func TestDoubts(t *testing.T) {
	m := Published(testMachine()).Selector.Machine()
	m.Model.Copy = func(float64) float64 { return 1e9 } // half of the network's rate
	p := From(m, Published(testMachine()).Small)
	const bytes = 1 << 20
	all := []Kind{Get, PutWaited, Put}
	for _, k := range all {
		require.True(t, p.Surely(k, bytes))
		require.False(t, p.Surely(k, 0))
		require.False(t, p.Surely(k, 1))
		require.False(t, p.Surely(k, 1<<40))
	}
	for _, k := range all {
		for range 100 { // trials, never two of them one after the other
			p.Asked(k, bytes, false)
			p.Asked(k, bytes, true)
		}
		for range mostDoubts {
			require.True(t, p.Surely(k, bytes))
			p.Asked(k, bytes+1, false)
		}
		require.False(t, p.Surely(k, bytes))
		require.True(t, p.Surely(k, 2*bytes), "another size")
		p.Asked(k, bytes, true)
		require.False(t, p.Surely(k, bytes), "once it is not sure it is never again")
	}
	p = New(p.Selector) // of which nothing is sure
	p.Asked(Get, bytes, false)
	require.False(t, p.Surely(Get, bytes))
}

// TestUnaskedBesideATrial: a put goes direct unasked, but not behind those of a run to its rank that are made another way, since it would wait for them,
// and they would seem to cost less than they do.
func TestUnaskedBesideATrial(t *testing.T) {
	const bytes = 1 << 20
	p := Published(testMachine())
	l := p.Learned(Far)
	run := func(covered bool, want selector.Protocol) (h *Habits) {
		h = new(Habits)
		h.Begin(nil)
		way, trial := l.Choose(selector.Query{Bytes: bytes, Waited: true, Covered: covered, Uses: 1}, p.Selector, true)
		require.Equal(t, want, way)
		h.FlushFollows(5, bytes)
		h.Put(l, trial, 1, 0)
		return h
	}
	h := run(false, selector.Pipe)
	require.False(t, h.Unasked(true, 1, false))
	require.True(t, h.Unasked(true, 2, false), "another rank")
	require.True(t, h.Unasked(false, 1, false), "a get")
	h.Flush(1)
	require.True(t, h.Unasked(true, 1, false), "it is over")
	require.True(t, run(true, selector.Direct).Unasked(true, 1, false), "it goes direct, too")
	require.True(t, new(Habits).Unasked(true, 1, false))
	require.Zero(t, testing.AllocsPerRun(10, func() { h.Unasked(true, 1, false) }))
}

// TestUnaskedIsFlushed: a put that goes direct unasked since a flush is thought to follow is one of those that a flush has followed.
func TestUnaskedIsFlushed(t *testing.T) {
	var h Habits
	h.Begin(nil)
	for k := range 100 {
		follows, _, _ := h.FlushFollows(5, 1<<20)
		require.Equal(t, k >= 1, follows, "put %d", k)
		require.True(t, h.Unasked(true, 1, true))
		h.Flush(1)
	}
	require.True(t, h.Unasked(true, 1, false))
	require.False(t, h.Awaiting())
}
