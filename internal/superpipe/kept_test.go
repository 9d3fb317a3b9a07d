package superpipe

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// TestReclaim: a workspace is registered when it is asked for, stays while leases are out, and can be given up in between.
func TestReclaim(t *testing.T) {
	_, c := quietConfig(transport.Caps{WriteImm: true})
	c.Later = true
	tg, err := NewTarget(c)
	require.NoError(t, err)
	dst, o := mem.Of(make([]byte, 100)), Offer{Bytes: 100, Tag: 1}
	lease := func() (Grant, bool) { return tg.Lease(0, transport.EP{}, o, dst) }
	last := uint64(0)
	for range 3 {
		require.False(t, tg.Idle())
		_, ok := lease()
		require.False(t, ok, "there is nothing to lease")
		bytes, err := tg.Reclaim()
		require.NoError(t, err)
		require.Zero(t, bytes)
		require.NoError(t, tg.Prepare())
		require.True(t, tg.Idle())
		g, ok := lease()
		require.True(t, ok)
		require.Greater(t, g.Generation, last, "flags of earlier days are nobody's")
		last = g.Generation
		bytes, err = tg.Reclaim()
		require.NoError(t, err)
		require.Zero(t, bytes, "a lease is out")
		require.True(t, tg.Return(0, g.Generation, 0))
		bytes, err = tg.Reclaim()
		require.NoError(t, err)
		require.Equal(t, tg.Footprint(), bytes)
	}
	tg.Close()
	require.NoError(t, tg.Prepare())
	_, ok := lease()
	require.False(t, ok, "closed")
}

// The outcomes of a lease.
var (
	waiting = [2]bool{}
	copied  = [2]bool{true, true}
	ended   = [2]bool{false, true}
)

func outcome(t *Target, g Grant) [2]bool {
	copied, ended := t.Outcome(g)
	return [2]bool{copied, ended}
}

// TestKept: a lease that is kept ends when its origin returns it, and not while the NIC has an acknowledgement. One that the NIC could
// not send is made again.
func TestKept(t *testing.T) {
	nic, c := quietConfig(transport.Caps{WriteImm: true})
	c.Kept = true
	tg, err := NewTarget(c)
	require.NoError(t, err)
	dst := mem.Of(make([]byte, 100))
	send := func(tag uint64) Grant {
		g, ok := tg.Lease(0, transport.EP{}, Offer{Bytes: 100, Tag: tag}, dst)
		require.True(t, ok)
		require.Equal(t, waiting, outcome(tg, g))
		require.Equal(t, []int{0}, tg.Into(dst.Slice(0, 50)))
		require.Empty(t, tg.Into(mem.Of(make([]byte, 8))))
		require.True(t, tg.Arrived(&transport.Completion{Kind: transport.OpRecv, Imm: immediate(g.Lease, g.Generation, 0), Bytes: 100}))
		require.True(t, tg.Progress())
		require.Equal(t, copied, outcome(tg, g))
		require.Empty(t, tg.Into(dst))
		require.Equal(t, ack(tag, 1), nic.ops[len(nic.ops)-1].SGE[0].Mem.Word64(0).Load())
		require.NotZero(t, nic.ops[len(nic.ops)-1].Flags&transport.FlagSignaled)
		return g
	}
	g := send(7)
	tg.Reported(nic.ops[0].Cookie, errors.New("the connection broke"))
	for tg.Progress() {
	}
	require.Len(t, nic.ops, 2, "told again")
	require.Equal(t, 1, tg.Active())
	tg.Reported(nic.ops[1].Cookie, nil)
	for tg.Progress() {
	}
	require.Len(t, nic.ops, 2)
	require.Zero(t, tg.Active(), "nobody has to look after it")
	require.EqualValues(t, 1, tg.Served())
	require.Equal(t, 1, tg.FreeLeases())
	require.True(t, tg.Return(1, g.Generation, 0), "another's: nothing happens")
	require.Equal(t, 1, tg.FreeLeases())
	require.True(t, tg.Return(0, g.Generation, 0))
	require.Equal(t, 2, tg.FreeLeases())
	require.Equal(t, copied, outcome(tg, g))

	g = send(8)
	require.False(t, tg.Return(0, 0, 8), "the NIC has its acknowledgement")
	require.Zero(t, tg.Active())
	require.Equal(t, 1, tg.FreeLeases())
	tg.Reported(nic.ops[2].Cookie, errors.New("the connection broke"))
	require.False(t, tg.Progress(), "it is not told again")
	require.True(t, tg.Return(0, 0, 8))
	require.Equal(t, 2, tg.FreeLeases())
	tg.Reported(nic.ops[2].Cookie, nil) // nobody's
	require.Zero(t, tg.Active())

	g, ok := tg.Expect(0, transport.EP{}, dst)
	require.True(t, ok)
	require.True(t, tg.Return(0, g.Generation, 0))
	require.Equal(t, ended, outcome(tg, g))
}

// TestPlaces: the place of a transfer's acknowledgements is used again when the target has agreed, or is gone.
func TestPlaces(t *testing.T) {
	nic, c := quietConfig(transport.Caps{WriteImm: true})
	c.Kept = true
	o, err := NewOrigin(c)
	require.NoError(t, err)
	for i := range Most + 3 {
		p, ok, err := o.Begin(Transfer{Rank: 1, Local: mem.Of(make([]byte, 100)), Lease: true})
		require.NoError(t, err)
		require.Equal(t, i < Most, ok, "transfer %d", i)
		if !ok {
			break
		}
		require.NoError(t, p.Granted(Grant{Generation: 1, SlotBytes: uint32(c.SlotBytes), Fold: 3, Way: WayImm}))
		for p.Step() {
		}
		o.Reported(nic.ops[len(nic.ops)-1].Cookie, nil)
		o.words.Word64(int(p.index) * 8).Store(ack(p.tag, 1))
		for p.Step() {
		}
		require.True(t, p.Done())
		require.NoError(t, p.Err())
	}
	o.Forgive(5)
	p, ok, err := o.Begin(Transfer{Rank: 1, Local: mem.Of(make([]byte, 100)), Lease: true})
	require.NoError(t, err)
	require.True(t, ok)
	require.EqualValues(t, 5, p.index)
	o.Abort(1, transport.ErrUnsupported)
	p.Step()
	require.ErrorIs(t, p.Err(), transport.ErrUnsupported)
	o.Lost(1, transport.ErrPeerGone)
	require.Len(t, o.free, Most)
}

// TestNoPlace: a transfer of which nothing was posted, though it had a lease, leaves no place behind, so that whoever ends it later does not give back that of another
// transfer that has used it since.
func TestNoPlace(t *testing.T) {
	nic, c := quietConfig(transport.Caps{WriteImm: true})
	c.Kept = true
	o, err := NewOrigin(c)
	require.NoError(t, err)
	begin := func() *Pipe {
		p, ok, err := o.Begin(Transfer{Rank: 1, Local: mem.Of(make([]byte, 100)), Lease: true})
		require.NoError(t, err)
		require.True(t, ok)
		require.NoError(t, p.Granted(Grant{Generation: 1, SlotBytes: uint32(c.SlotBytes), Fold: 3, Way: WayImm}))
		for p.Step() {
		}
		return p
	}
	nic.full = true
	none := begin()
	o.Abort(1, transport.ErrUnsupported)
	for none.Step() {
	}
	require.True(t, none.Done())
	nic.full = false
	p := begin()
	require.Equal(t, none.index, p.index)
	o.Reported(nic.ops[len(nic.ops)-1].Cookie, nil)
	o.words.Word64(int(p.index) * 8).Store(ack(p.tag, 1))
	for p.Step() {
	}
	require.True(t, p.Done())
	if place := none.Place(); place >= 0 {
		o.Forgive(place) // as when the target has the lease back
	}
	require.Len(t, o.free, Most-1, "its target may write there")
	o.Forgive(p.Place())
	require.Len(t, o.free, Most)
}

// TestExpected moves data into leases that the receiver has asked for, whose offer comes before the data, with it or after.
func TestExpected(t *testing.T) {
	for _, name := range []string{"immediates", "order", "jitter", "small, order"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2, flavours[name])
			a, b := r.ranks[0], r.ranks[1]
			rng := rand.New(rand.NewPCG(1, 2))
			for i, n := range []int{1, 4089, 30_000, 100_003} {
				want := payload(i, n, rng)
				dst := guard(n, i)
				var g Grant
				until(t, "a lease", func() (ok bool) { g, ok = b.t.Expect(0, b.eps[0], dst.in); return ok })
				p := a.begin(Transfer{Rank: 1, EP: a.eps[1], Local: mem.Of(want), Lease: true})
				if i%2 == 0 {
					require.True(t, b.t.Offered(g, p.Offer()))
				}
				require.NoError(t, p.Granted(g))
				if i%2 == 1 {
					until(t, "the first chunk", func() bool { p.Step(); return p.Sourced() || a.o.FreeSlots() < a.o.c.Slots })
					require.False(t, b.t.Offered(g, Offer{Bytes: uint64(n) + 1, Tag: 1}))
					require.True(t, b.t.Offered(g, p.Offer()))
				}
				require.NoError(t, finish(t, p))
				require.Equal(t, copied, outcome(b.t, g))
				dst.check(t, want, "%d bytes", n)
				require.True(t, b.t.Offered(g, p.Offer()), "it is over")
			}
			r.idle()
		})
	}
}
