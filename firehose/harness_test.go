package firehose

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	unit     = 4096
	start    = 0x10_0000_0000
	bigRange = 1 << 30
)

// owner is a rank's memory and its Registrar, which counts and refuses to do what cannot be right.
type owner struct {
	t      testing.TB
	s      *Server
	budget Budget
	pins   map[Bucket]Pin
	keys   map[uint64]Bucket
	units  int64
	next   uint64
	refuse func(run Run) error // an error to return instead
	during func()              // something to happen while the lock is free
}

var errFull = errors.New("cannot allocate memory")

func (o *owner) Register(r Range, run Run, pins []Pin) error {
	o.happen()
	if o.refuse != nil {
		if err := o.refuse(run); err != nil {
			return err
		}
	}
	require.True(o.t, r.has(o.budget.Shift, run), "a bucket that is none: %v", run)
	require.Len(o.t, pins, int(run.Count))
	for i := range pins {
		b := run.At(uint32(i))
		_, twice := o.pins[b]
		require.False(o.t, twice, "%v is registered twice", b)
		o.next++
		pins[i] = Pin{Key: o.next<<8 | 0xf0, Handle: o.next}
		o.pins[b], o.keys[pins[i].Key] = pins[i], b
	}
	o.units += run.Weight()
	require.LessOrEqual(o.t, o.units, o.most(), "more is registered than the budget allows") // F1
	return nil
}

// most is what may be registered at any instant, in units.
func (o *owner) most() int64 {
	return o.s.limit + int64(o.budget.Ranks-1)*o.budget.Share
}

func (o *owner) Deregister(_ Range, run Run, pins []Pin) error {
	o.happen()
	for i, p := range pins {
		b := run.At(uint32(i))
		require.Equal(o.t, p, o.pins[b], "deregistered with another one's pin")
		delete(o.pins, b)
		delete(o.keys, p.Key)
	}
	o.units -= run.Weight()
	return nil
}

func (o *owner) happen() {
	if f := o.during; f != nil {
		o.during = nil
		f()
	}
}

// envelope is a message under way.
type envelope struct {
	from, to int
	reply    bool
	bytes    []byte
}

// net is a few ranks whose messages are delivered on command.
type net struct {
	t       testing.TB
	budget  Budget
	holders []*Holder
	owners  []*owner
	way     []envelope
	stuck   []bool // Move says that there is no room, by target
	stored  map[string]int
	dead    []bool
}

type config struct {
	ranks   int
	f, v    int64
	payload int
	costs   Costs
}

func newNet(t testing.TB, c config) *net {
	if c.payload == 0 {
		c.payload = 4032
	}
	f := c.f * int64(c.ranks-1) * unit
	b, err := Split(Limits{
		Ranks: c.ranks, Pinnable: f + c.v*unit, Peers: f, Own: c.v * unit, Unit: unit, Page: unit,
	})
	require.NoError(t, err)
	require.Equal(t, c.f, b.Share)
	n := &net{t: t, budget: b, stuck: make([]bool, c.ranks), stored: make(map[string]int), dead: make([]bool, c.ranks)}
	for range c.ranks {
		h, err := NewHolder(HolderConfig{Budget: b, Payload: c.payload, Costs: c.costs})
		require.NoError(t, err)
		n.holders = append(n.holders, h)
		o := &owner{t: t, budget: b, pins: make(map[Bucket]Pin), keys: make(map[uint64]Bucket)}
		o.s = NewServer(b, o, nil)
		require.NoError(t, o.s.Expose(Range{ID: 1, Start: start, Bytes: bigRange}))
		n.owners = append(n.owners, o)
	}
	return n
}

// mover is a rank's way to send.
type mover struct {
	n    *net
	from int
}

func (m mover) Move(peer int, mv *Move) (bool, error) {
	if m.n.stuck[peer] {
		return false, nil
	}
	b := mv.Append(nil)
	require.LessOrEqual(m.n.t, len(b), m.n.holders[m.from].wire.payload)
	m.n.way = append(m.n.way, envelope{from: m.from, to: peer, bytes: b})
	return true, nil
}

func (n *net) view(from, to int) *View {
	v, err := n.holders[from].View(to, Range{ID: 1, Start: start, Bytes: bigRange})
	require.NoError(n.t, err)
	return v
}

func (n *net) send(from int) { n.holders[from].Send(mover{n, from}) }

// deliver hands over the i-th message under way.
func (n *net) deliver(i int) {
	e := n.way[i]
	n.way = append(n.way[:i], n.way[i+1:]...)
	if n.dead[e.to] {
		return
	}
	if e.reply {
		var r Reply
		require.NoError(n.t, r.Parse(e.bytes))
		require.NoError(n.t, n.holders[e.to].Reply(e.from, &r))
		n.send(e.to)
		return
	}
	var m Move
	require.NoError(n.t, m.Parse(e.bytes))
	var r Reply
	if n.owners[e.to].s.Serve(e.from, &m, &r) {
		n.answer(e.to, e.from, &m, &r)
	}
	n.resume(e.to)
}

// answer sends an owner's reply, and stores the put.
func (n *net) answer(owner, origin int, m *Move, r *Reply) {
	if r.Stored {
		n.stored[fmt.Sprintf("%d %d %s", owner, m.Put.Off, m.Put.Data)]++
	}
	require.NotEqual(n.t, statusMalformed, r.Status, "rank %d does not understand %d: %+v", owner, origin, m)
	b := r.Append(nil)
	require.LessOrEqual(n.t, len(b), n.holders[origin].wire.payload, "a reply is too long")
	n.way = append(n.way, envelope{from: owner, to: origin, reply: true, bytes: b})
}

func (n *net) resume(owner int) {
	for {
		var r Reply
		origin, m, ok := n.owners[owner].s.Resume(&r)
		if !ok {
			return
		}
		n.answer(owner, origin, &m, &r)
	}
}

// settle delivers everything, oldest first.
func (n *net) settle() {
	for len(n.way) > 0 {
		n.deliver(0)
		n.check()
	}
}

// pin asks for count buckets of rank 1, for rank 0, and sends the moves, but delivers nothing.
func (n *net) pin(first uint64, count int) *Request {
	q := new(Request)
	n.holders[0].Acquire(n.view(0, 1), q, first*unit, uint64(count)*unit)
	n.send(0)
	n.check()
	return q
}

func (n *net) release(q *Request) {
	require.Equal(n.t, Ready, q.State())
	n.holders[0].Release(q)
	n.send(0)
	n.check()
}

// use is pin, everything delivered, and release, of each bucket by itself.
func (n *net) use(buckets ...uint64) {
	for _, b := range buckets {
		n.useRun(b, 1)
	}
}

func (n *net) useRun(first uint64, count int) {
	q := n.pin(first, count)
	n.settle()
	n.release(q)
}

// idleOf lists a queue's buckets, oldest first.
func (s *Server) idleOf() (out []uint64) {
	for i := s.idle.first(); i >= 0; i = s.idle.after(i) {
		out = append(out, s.slab[i].b.Index())
	}
	return out
}

func (p *peer) idleOf() (out []uint64) {
	for i := p.idle.first(); i >= 0; i = p.idle.after(i) {
		out = append(out, p.slab[i].b.Index())
	}
	return out
}

func (p *peer) table() (out []uint64) {
	for i := range p.slab {
		if p.slab[i].v != nil {
			out = append(out, p.slab[i].b.Index())
		}
	}
	return out
}
