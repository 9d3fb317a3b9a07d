package firehose

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

var errGone = errors.New("peer is gone")

// TestRefusedRegistration: the machine refuses in the middle of a list. Nothing stays half done.
func TestRefusedRegistration(t *testing.T) {
	n := newNet(t, config{ranks: 2, f: 8, v: 4})
	o := n.owners[1]
	n.useRun(40, 4)
	n.use(2)
	o.refuse = func(run Run) error {
		if run.First.Index() > 2 && run.First.Index() < 6 {
			return errFull
		}
		return nil
	}
	q := n.pin(0, 5) // 0 and 1 register, 2 is held, 3 and 4 do not
	joined := n.pin(4, 1)
	n.settle()
	for _, q := range []*Request{q, joined} {
		require.Equal(t, Failed, q.State())
		require.ErrorIs(t, q.Err(), ErrRefused)
	}
	n.check()
	n.quiet()
	require.NotContains(t, n.holders[0].peers[1].table(), uint64(3))
	require.Contains(t, n.holders[0].peers[1].table(), uint64(2), "it was held before")
	require.Equal(t, uint64(1), n.holders[0].Stats().Refusals)
	require.Equal(t, uint64(1), o.s.Stats().Refused)

	// The machine has recovered: the same request again.
	o.refuse = nil
	n.useRun(0, 5)
	n.quiet()
}

// TestRefusedUntilVictimsGo: what nobody uses goes before an origin is refused.
func TestRefusedUntilVictimsGo(t *testing.T) {
	n := newNet(t, config{ranks: 2, f: 2, v: 4})
	o := n.owners[1]
	n.use(0, 10, 20, 30, 40)
	require.Len(t, o.s.idleOf(), 3)
	o.refuse = func(run Run) error { // the limit was lowered to 4
		if o.units+run.Weight() > 4 {
			return errFull
		}
		return nil
	}
	n.use(50, 60)
	require.Equal(t, int64(4), o.units)
	require.Zero(t, n.holders[0].Stats().Refusals)
	require.Positive(t, o.s.Stats().RegisterErrors)
	n.quiet()

	_, err := o.s.Pin(Run{MakeBucket(1, 0, 70), 4}, nil)
	require.ErrorIs(t, err, errFull, "not even without victims")
	n.check()
	require.Zero(t, o.s.own)
}

// TestRefusedJoiners: a request over two moves of which one is refused, in both orders of the replies.
func TestRefusedJoiners(t *testing.T) {
	for _, refusedFirst := range []bool{false, true} {
		n := newNet(t, config{ranks: 2, f: 8, v: 0})
		n.owners[1].refuse = func(run Run) error {
			if run.First.Index() == 1 {
				return errFull
			}
			return nil
		}
		a, b := n.pin(0, 1), n.pin(1, 1)
		both := n.pin(0, 2)
		require.Len(t, n.way, 2)
		require.Equal(t, Waiting, both.State())
		n.deliver(0)
		n.deliver(0)
		first := 0
		if refusedFirst {
			first = 1
		}
		n.deliver(first)
		n.check()
		again := n.pin(1, 1)
		if refusedFirst {
			require.Equal(t, Failed, again.State(), "it is known already")
		}
		n.settle()
		require.Equal(t, Ready, a.State())
		require.Equal(t, Failed, b.State())
		require.Equal(t, Failed, both.State())
		n.release(a)
		n.quiet()
	}
}

// TestPutInMove: a small put travels with a miss of its own only, and is stored once, registered or not.
func TestPutInMove(t *testing.T) {
	n := newNet(t, config{ranks: 2, f: 4, v: 0})
	h, v := n.holders[0], n.view(0, 1)
	ask := func(off uint64, text string) *Request {
		q := &Request{Put: []byte(text)}
		h.Acquire(v, q, off, uint64(len(text)))
		n.send(0)
		return q
	}
	miss := ask(10, "first")
	join := ask(20, "second")
	n.settle()
	require.True(t, miss.Carried())
	require.False(t, join.Carried())
	n.release(miss)
	n.release(join)
	hit := ask(30, "third")
	require.Equal(t, Ready, hit.State())
	require.False(t, hit.Carried())
	n.release(hit)
	large := ask(1<<20, strings.Repeat("x", mostPut+1))
	n.settle()
	require.Equal(t, Ready, large.State())
	require.False(t, large.Carried())
	n.release(large)
	require.Equal(t, map[string]int{"1 10 first": 1}, n.stored)

	n.owners[1].refuse = func(Run) error { return errFull }
	refused := ask(2<<20, "fourth")
	n.settle()
	require.Equal(t, Failed, refused.State())
	require.True(t, refused.Carried(), "the CPU needs no registration")
	require.Equal(t, 1, n.stored["1 2097152 fourth"])
	n.quiet()
}

// TestPeerDies: what a dead rank held comes back, and who waits for a dead rank is told.
func TestPeerDies(t *testing.T) {
	n := newNet(t, config{ranks: 3, f: 3, v: 2})
	n.use(0, 10)
	other := n.view(2, 1)
	var held Request
	n.holders[2].Acquire(other, &held, 10*unit, unit)
	n.send(2)
	n.settle()
	pending := n.pin(20, 1) // under way when rank 0 dies
	require.Equal(t, Waiting, pending.State())
	require.Equal(t, int64(2), n.owners[1].s.peers[0].held)
	n.dead[0] = true
	n.owners[1].s.Lost(0)
	n.owners[1].s.Lost(0)
	n.check()
	require.Zero(t, n.owners[1].s.peers[0].held)
	require.Equal(t, []uint64{0}, n.owners[1].s.idleOf(), "10 is rank 2's too")
	n.settle() // its last move arrives after its death
	require.NotContains(t, n.owners[1].keys, uint64(20))
	require.Zero(t, n.owners[1].s.peers[0].held)

	// And the other way round: rank 2 loses rank 1 while it uses, waits and is blocked.
	var asked, blocked Request
	n.holders[2].Acquire(other, &asked, 0, 2*unit)
	n.send(2)
	n.holders[2].Acquire(other, &blocked, 40*unit, 3*unit)
	n.dead[1] = true
	n.holders[2].Lost(1, errGone)
	n.check()
	require.Equal(t, Ready, held.State())
	for _, q := range []*Request{&asked, &blocked} {
		require.Equal(t, Failed, q.State())
		require.ErrorIs(t, q.Err(), errGone)
	}
	n.holders[2].Release(&held)
	n.check()
	require.Empty(t, n.holders[2].peers[1].table())
	require.Nil(t, n.holders[2].peers[1].slab)
	require.Equal(t, Failed, n.holders[2].Acquire(other, &asked, 0, unit))
	require.ErrorIs(t, asked.Err(), errGone)
	late := Reply{ID: 0}
	require.NoError(t, n.holders[2].Reply(1, &late))
}

// TestMoverFails: the way to a peer is broken.
func TestMoverFails(t *testing.T) {
	n := newNet(t, config{ranks: 2, f: 3, v: 2})
	var q Request
	n.holders[0].Acquire(n.view(0, 1), &q, 0, 1)
	require.False(t, n.holders[0].Send(broken{}))
	require.ErrorIs(t, q.Err(), errGone)
	n.check()
}

type broken struct{}

func (broken) Move(int, *Move) (bool, error) { return false, errGone }

// TestNoRoomToSend: moves wait until there is room.
func TestNoRoomToSend(t *testing.T) {
	n := newNet(t, config{ranks: 2, f: 3, v: 2})
	n.stuck[1] = true
	q := n.pin(0, 1)
	require.True(t, n.holders[0].Send(mover{n, 0}))
	require.Empty(t, n.way)
	n.stuck[1] = false
	n.send(0)
	n.settle()
	n.release(q)
}

// TestWithdraw: a range goes while peers hold, use, wait for and ask for buckets of it.
func TestWithdraw(t *testing.T) {
	n := newNet(t, config{ranks: 3, f: 4, v: 3})
	o := n.owners[1]
	second := Range{ID: 2, Start: start + 2*bigRange, Bytes: 10 * unit}
	require.NoError(t, o.s.Expose(second))
	require.ErrorIs(t, o.s.Expose(second), ErrRange)
	n.use(0) // of another range, which is not touched
	v, err := n.holders[0].View(1, second)
	require.NoError(t, err)
	var idle, inUse, waiting, blocked Request
	h := n.holders[0]
	h.Acquire(v, &idle, 0, unit)
	n.send(0)
	n.settle()
	n.release(&idle)
	h.Acquire(v, &inUse, unit, unit)
	n.send(0)
	n.settle()
	h.Acquire(v, &waiting, 2*unit, unit)
	n.send(0)
	n.deliver(0) // its reply is under way
	h.Acquire(v, &blocked, 4*unit, 4*unit)
	require.Equal(t, Waiting, blocked.State())
	_, err = o.s.Pin(Run{MakeBucket(2, 0, 9), 1}, nil)
	require.NoError(t, err)
	asked := n.pinOf(v, 3*unit) // behind the blocked one
	require.Equal(t, []int{0}, o.s.Withdraw(2))
	require.False(t, o.s.Withdrawn(2))
	h.Withdraw(1, 2)
	n.send(0)
	n.settle()
	for _, q := range []*Request{&blocked, asked} {
		require.Equal(t, Failed, q.State())
		require.ErrorIs(t, q.Err(), ErrWithdrawn)
	}
	require.Equal(t, Failed, h.Acquire(v, asked, 0, 1))
	require.Equal(t, Ready, waiting.State(), "its move was earlier than the wish")
	require.False(t, o.s.Withdrawn(2))
	n.release(&waiting)
	n.release(&inUse)
	n.settle()
	require.False(t, o.s.Withdrawn(2), "the owner itself uses it")
	o.s.Unpin(Run{MakeBucket(2, 0, 9), 1})
	require.True(t, o.s.Withdrawn(2))
	require.True(t, o.s.Withdrawn(2))
	n.quiet()
	require.Equal(t, []uint64{0}, n.holders[0].peers[1].table())
	require.Equal(t, int64(1), h.Used(1), "the credit is back")

	// Whoever has not heard of it is refused, and may still give up.
	stranger, err := n.holders[2].View(1, second)
	require.NoError(t, err)
	var q Request
	n.holders[2].Acquire(stranger, &q, 0, unit)
	n.send(2)
	n.settle()
	require.ErrorIs(t, q.Err(), ErrWithdrawn)
	n.quiet()
}

func (n *net) pinOf(v *View, off uint64) *Request {
	q := new(Request)
	n.holders[0].Acquire(v, q, off, unit)
	n.send(0)
	return q
}

// TestTransit: while one call registers a bucket, moves that want it are put aside, and local pins told to come back.
func TestTransit(t *testing.T) {
	n := newNet(t, config{ranks: 2, f: 4, v: 2})
	o := n.owners[1]
	run := Run{MakeBucket(1, 0, 0), 1}
	q := n.pin(0, 2)
	o.during = func() { // the owner is registering bucket 0 for itself when the move arrives
		n.deliver(0)
		require.Empty(t, n.way, "no answer yet")
		_, err := o.s.Pin(run, nil)
		require.ErrorIs(t, err, ErrBusy)
		n.check()
	}
	_, err := o.s.Pin(run, nil)
	require.NoError(t, err)
	require.Equal(t, Waiting, q.State())
	n.resume(1)
	n.settle()
	n.release(q)
	o.s.Unpin(run)
	n.quiet()
	require.Equal(t, uint64(2), o.s.Stats().Registered)
	require.Equal(t, uint64(1), o.s.Stats().Deferred)

	// A rank that dies while its buckets are registered leaves them to the victims.
	q = n.pin(10, 2)
	o.during = func() {
		n.dead[0] = true
		o.s.Lost(0)
	}
	n.settle()
	require.Zero(t, o.s.peers[0].held)
	n.check()
	require.LessOrEqual(t, o.units, int64(2))
	_ = q
}

// TestFairness: a large request is not starved by a stream of small ones.
func TestFairness(t *testing.T) {
	n := newNet(t, config{ranks: 2, f: 4, v: 0})
	h, v := n.holders[0], n.view(0, 1)
	stream := []*Request{n.pin(0, 1), n.pin(1, 1), n.pin(2, 1)}
	n.settle()
	all := n.pin(10, 4) // needs the whole share
	require.Equal(t, Waiting, all.State())
	for i := range 30 { // a stream of small requests, some of them hits, never stops
		q := new(Request)
		h.Acquire(v, q, uint64(i%5)*unit, unit)
		require.Equal(t, Waiting, q.State(), "nobody overtakes")
		require.False(t, h.Try(v, new(Request), 0, unit))
		stream = append(stream, q)
	}
	for _, q := range stream[:3] {
		n.release(q)
	}
	n.settle()
	require.Equal(t, Ready, all.State())
	n.release(all)
	for range 100 {
		n.settle()
		for _, q := range stream[3:] {
			if q.State() == Ready {
				n.release(q)
			}
		}
	}
	for _, q := range stream[3:] {
		require.Equal(t, Idle, q.State())
	}
	n.quiet()
}

// TestMixedOrders: a large bucket is paid for with many small ones, in more moves than one message holds.
func TestMixedOrders(t *testing.T) {
	n := newNet(t, config{ranks: 2, f: 64, v: 8, payload: LeastPayload + 3*runBytes})
	h, v := n.holders[0], n.view(0, 1)
	for b := range uint64(64) {
		n.use(3 * b)
	}
	require.NoError(t, h.Fix(v, 5))
	q := n.pin(0, 32)
	require.Equal(t, uint32(1), q.Run().Count)
	n.settle()
	require.Equal(t, uint64(6), h.Stats().Sheds, "32 runs in messages of 6")
	require.Equal(t, Ready, q.State())
	require.LessOrEqual(t, h.Used(1), int64(64))
	key, end := q.Part(5)
	require.Equal(t, q.Key(0), key)
	require.Equal(t, uint64(32*unit), end)
	n.release(q)

	// And many small ones with a large one, whose rest is credit only after the reply.
	require.NoError(t, h.Fix(v, 0))
	before := h.Used(1)
	for b := range uint64(33) {
		n.use(1000 + 3*b)
	}
	require.LessOrEqual(t, h.Used(1), before)
	n.quiet()
	n.use(999)
}

func TestAbandon(t *testing.T) {
	n := newNet(t, config{ranks: 2, f: 2, v: 0})
	h := n.holders[0]
	under := n.pin(0, 1)
	h.Abandon(under)
	require.Equal(t, Waiting, under.State())
	n.settle()
	require.Equal(t, Idle, under.State())
	ready := n.pin(0, 2)
	n.settle()
	blocked, next := n.pin(5, 2), n.pin(0, 1)
	require.Equal(t, Waiting, next.State())
	h.Abandon(blocked)
	require.Equal(t, Idle, blocked.State())
	require.Equal(t, Ready, next.State(), "it was behind the blocked one only")
	h.Abandon(next)
	h.Abandon(ready)
	require.Equal(t, Idle, ready.State())
	n.owners[1].refuse = func(Run) error { return errFull }
	under = n.pin(7, 1)
	h.Abandon(under)
	n.settle()
	require.Equal(t, Failed, under.State())
	n.check()
	n.quiet()
}

func TestShed(t *testing.T) {
	n := newNet(t, config{ranks: 2, f: 1, v: 4})
	n.use(0, 10, 20, 30)
	s := n.owners[1].s
	require.Equal(t, int64(unit), s.Shed(1))
	require.Equal(t, []uint64{10, 20}, s.idleOf())
	require.Equal(t, int64(2*unit), s.Shed(1<<30))
	n.check()
	n.quiet()
}

// TestTwoMovesAtOnce: a move that arrives while another one is carried out waits for it. Else both would count on the same
// bytes: what the first has given up is not deregistered yet, and is paid for with a bucket that it shares with the
// second, who lets go of it.
func TestTwoMovesAtOnce(t *testing.T) {
	n := newNet(t, config{ranks: 3, f: 2, v: 0})
	n.useRun(0, 2)
	var q Request
	h, v := n.holders[2], n.view(2, 1)
	swap := func(first uint64) {
		require.Equal(t, Waiting, h.Acquire(v, &q, first*unit, 2*unit))
		n.send(2)
	}
	swap(10)
	n.settle()
	h.Release(&q)
	first := n.pin(11, 2) // 11 is shared, 12 is new, 0 and 1 are given up
	swap(20)              // 10 and 11 are given up
	o := n.owners[1]
	o.during = func() {
		require.Equal(t, int64(4), o.units)
		n.deliver(0)
		require.Empty(t, n.way, "no answer yet")
		n.check()
	}
	n.settle()
	require.Equal(t, uint64(1), o.s.Stats().Deferred)
	require.Equal(t, Ready, q.State())
	n.release(first)
	h.Release(&q)
	n.quiet()
}
