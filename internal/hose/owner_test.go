package hose

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/firehose"
	"gopgas/regmgr"
)

// TestOwnerUsesItsOwn: what the owner itself uses of its exposed memory is a region of regmgr's cache, out of the budget that others'
// buckets come out of: together they never have more; what others do not use makes room for it, and it makes room for others.
func TestOwnerUsesItsOwn(t *testing.T) {
	p := newPair(t)
	h, own, nic := p.set[0], p.regs[1], p.nic[1]
	require.NoError(t, h.Fix(h.Unit())) // what misses take, which decides otherwise, is no part of this
	registered := func() (sum int) {
		sum, _ = nic.registered()
		return sum
	}
	use := func(off, bytes int) error {
		var hold regmgr.Hold
		err := own.Acquire(&hold, regmgr.Request{Mem: p.mem.Slice(off, bytes)})
		if err == nil {
			own.Release(&hold)
		}
		return err
	}
	buckets := func(from, to int) {
		for off := from; off < to; off += int(h.Unit()) {
			_, direct, _, err := h.Attach("put", 0, p.far, p.addr(off), 8, nil, false)
			require.NoError(t, err)
			require.True(t, direct)
			p.release(0)
			require.LessOrEqual(t, registered(), budget)
		}
	}
	share := int(h.Budget().Share << h.Budget().Shift)
	buckets(0, share+budget/8) // more than may be held: some are victims
	_, owner := p.set[1].Stats()
	require.Positive(t, owner.Victims)
	require.InDelta(t, share+budget/8, registered(), float64(h.Unit()), "the memory may begin within a bucket")

	before := own.Stats()
	require.NoError(t, use(0, budget/4), "the victims make room")
	require.LessOrEqual(t, registered(), budget)
	require.NoError(t, use(100, budget/8))
	after := own.Stats()
	require.EqualValues(t, 1, after.Registrations-before.Registrations, "the second use finds what the first one has registered")
	require.Positive(t, after.Shed-before.Shed)
	require.ErrorIs(t, use(0, budget/2), regmgr.ErrCopy, "the rest is promised to others")

	buckets(share, 2*share)
	require.LessOrEqual(t, registered(), budget)
	p.end(t)
}

// TestHolderIsGone: what a rank that is gone held comes back at once, also what it was using, and makes room for whoever needs it; the
// memory need not be withdrawn for that.
func TestHolderIsGone(t *testing.T) {
	p := newPair(t)
	h, nic := p.set[0], p.nic[1]
	require.NoError(t, h.Fix(h.Unit()))
	const held = 4
	for i := range held {
		_, direct, _, err := h.Attach("put", int32(i), p.far, p.addr(2*i*int(h.Unit())), 8, nil, false)
		require.NoError(t, err)
		require.True(t, direct)
		if i > 0 {
			p.release(int32(i))
		}
	}
	_, before := p.set[1].Stats()
	require.Zero(t, before.Victims)
	bytes, registrations := nic.registered()
	require.Equal(t, held, registrations)
	require.Zero(t, p.regs[1].Trim(1<<40), "all of it is held")

	nic.gone = errors.New("rank 0 is gone")
	p.set[1].Lost(0)
	_, after := p.set[1].Stats()
	require.EqualValues(t, bytes/int(h.Unit()), after.Victims)
	require.EqualValues(t, bytes, p.regs[1].Trim(1<<40))
	_, registrations = nic.registered()
	require.Zero(t, registrations)
	require.Zero(t, p.regs[1].Stats().Lent)
	p.release(0)
	p.end(t)
}

// TestWithdrawnUnderAPut: memory is not given back while a put is stored there that has come with a move, whatever has become of its sender; and what comes
// later is stored nowhere.
func TestWithdrawnUnderAPut(t *testing.T) {
	p := newPair(t)
	h, nic := p.set[1], p.nic[1]
	nic.many = true // two goroutines are at work
	m := firehose.Move{
		ID: 1, New: []firehose.Run{p.far.r.Run(h.budget.Shift, 0, 64, 8)}, Put: firehose.Put{Range: p.id, Off: 64, Data: []byte("eight by")},
	}
	begun, goOn, freed := make(chan bool), make(chan bool), make(chan error, 1)
	nic.storing = func() {
		close(begun)
		<-goOn
	}
	served := make(chan bool)
	go func() {
		_, ok := h.Handle(Ask, 0, m.Append(nil), make([]byte, 4096))
		served <- ok
	}()
	<-begun
	nic.gone = errors.New("rank 0 is gone")
	go func() { freed <- h.Withdraw(t.Context(), p.id) }()
	select {
	case <-freed:
		t.Error("the memory is its owner's, and somebody writes there")
	case <-time.After(100 * time.Millisecond):
	}
	close(goOn)
	require.True(t, <-served)
	if !t.Failed() {
		require.NoError(t, <-freed)
	}
	require.Empty(t, nic.live)
	require.NotPanics(t, func() { h.finish(&m, &firehose.Reply{Stored: true}, nil) })
	for _, m := range p.regs {
		require.NoError(t, m.Close())
		m.Forget()
	}
}

// TestNumbers: a rank may expose memory as often as it likes: numbers come again, but for those that are in use. What cannot be exposed leaves nothing behind.
func TestNumbers(t *testing.T) {
	p := newPair(t)
	h := p.set[1]
	h.next = h.budget.MaxRange() - 1
	seen := map[uint32]bool{p.id: true}
	require.Contains(t, h.parts, uint32(1))
	for range 4 {
		id, err := h.Expose(p.mem.Slice(0, 1<<20))
		require.NoError(t, err)
		require.False(t, seen[id], "number %d is that of other memory", id)
		seen[id] = true
		far := NewFar(1, id, p.mem.Addr(), 1<<20)
		_, direct, _, err := p.set[0].Attach("get", 0, far, p.addr(8), 8, nil, true)
		require.NoError(t, err)
		require.True(t, direct)
		p.release(0)
		require.NoError(t, p.set[0].Leave(t.Context(), []*Far{far}))
		require.NoError(t, h.Withdraw(t.Context(), id))
	}
	_, err := h.Expose(p.mem.Slice(0, 0))
	require.ErrorIs(t, err, firehose.ErrRange)
	p.end(t)
}
