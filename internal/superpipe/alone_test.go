package superpipe

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// quietNIC takes operations, or not, and performs none: the test plays what it reports.
type quietNIC struct {
	caps transport.Caps
	full bool
	poor bool // it refuses registrations
	ops  []transport.Op
}

func (q *quietNIC) Caps() transport.Caps { return q.caps }

func (q *quietNIC) Register(mem.Range, transport.Access) (transport.Region, error) {
	if q.poor {
		return transport.Region{}, transport.ErrLimit
	}
	return transport.Region{}, nil
}

func (q *quietNIC) Deregister(transport.Region) error { return nil }

func (q *quietNIC) Post(ops []transport.Op) (int, error) {
	if q.full {
		return 0, nil
	}
	q.ops = append(q.ops, ops...)
	return len(ops), nil
}

func quietConfig(caps transport.Caps) (*quietNIC, Config) {
	caps.MaxMessage, caps.MaxSGE = 1<<20, 4
	nic := &quietNIC{caps: caps}
	return nic, Config{NIC: nic, SlotBytes: Block, Slots: 8, Leases: 2}
}

// TestSourcedMeansCopied: the source is free when the last chunk is copied and not before; nothing is done before the
// NIC has reported.
func TestSourcedMeansCopied(t *testing.T) {
	nic, c := quietConfig(transport.Caps{})
	nic.full = true
	o, err := NewOrigin(c)
	require.NoError(t, err)
	p, ok, err := o.Begin(Transfer{Local: mem.Of(make([]byte, 3*Block))})
	require.True(t, ok)
	require.NoError(t, err)
	require.Equal(t, 3, p.Chunks())
	for i := range 3 {
		require.False(t, p.Sourced(), "%d of 3 chunks are copied", i)
		require.True(t, p.Step())
	}
	require.True(t, p.Sourced())
	require.False(t, p.Step(), "the NIC has no room")
	nic.full = false
	for p.Step() {
	}
	require.Len(t, nic.ops, 2, "the third waits for the first")
	for i := range 3 {
		require.False(t, p.Done())
		require.Len(t, nic.ops, min(3, 2+i))
		require.True(t, o.Completed(&transport.Completion{Kind: transport.OpWrite, Cookie: nic.ops[i].Cookie}))
		for p.Step() {
		}
	}
	require.True(t, p.Done())
	require.NoError(t, p.Err())
	require.Equal(t, 8, o.FreeSlots())
	require.False(t, o.Completed(&transport.Completion{Kind: transport.OpRecv, Cookie: nic.ops[0].Cookie}))
	require.False(t, o.Completed(&transport.Completion{Kind: transport.OpWrite, Cookie: 1 << 60}))
}

// TestSourcedMeansSent: where a chunk was registered, and the next one could not be, the source is not free when the others are copied: the NIC still takes the
// first from there.
func TestSourcedMeansSent(t *testing.T) {
	nic, c := quietConfig(transport.Caps{})
	nic.caps.MaxMessage, c.Policy = 2*Block, OnTheFly
	o, err := NewOrigin(c)
	require.NoError(t, err)
	p, _, err := o.Begin(Transfer{Local: mem.Of(make([]byte, 3*Block))})
	require.NoError(t, err)
	require.Equal(t, 2, p.Chunks())
	p.Step()
	nic.poor = true
	for p.Step() {
	}
	require.EqualValues(t, 1, o.Fallbacks())
	require.Len(t, nic.ops, 2, "the third waits for the first")
	require.Equal(t, 6, o.FreeSlots(), "the others are copied")
	require.False(t, p.Sourced(), "the first is the NIC's")
	o.Completed(&transport.Completion{Kind: transport.OpWrite, Cookie: nic.ops[0].Cookie})
	p.Step()
	require.True(t, p.Sourced())
	require.False(t, p.Done())
	for _, k := range []int{1, 2} {
		for p.Step() {
		}
		o.Completed(&transport.Completion{Kind: transport.OpWrite, Cookie: nic.ops[k].Cookie})
	}
	for p.Step() {
	}
	require.True(t, p.Done())
	require.NoError(t, p.Err())
}

// TestErrorKeepsSlots: after an error the slots of what is in flight come back one by one, as it is reported.
func TestErrorKeepsSlots(t *testing.T) {
	nic, c := quietConfig(transport.Caps{})
	o, err := NewOrigin(c)
	require.NoError(t, err)
	p, _, err := o.Begin(Transfer{Rank: 5, Local: mem.Of(make([]byte, 5*Block))})
	require.NoError(t, err)
	for p.Step() {
	}
	o.Lost(5, transport.ErrPeerGone)
	p.Step()
	require.False(t, p.Done(), "two are the NIC's")
	require.Equal(t, 6, o.FreeSlots())
	for i, free := range []int{7, 8} {
		o.Completed(&transport.Completion{Kind: transport.OpWrite, Cookie: nic.ops[i].Cookie, Status: transport.StatusFlushed})
		p.Step()
		require.Equal(t, free, o.FreeSlots())
		require.Equal(t, i == 1, p.Done())
	}
	require.ErrorIs(t, p.Err(), transport.ErrPeerGone)
	require.Len(t, nic.ops, 2)
}

// TestLeaseEndsWithItsLastAcknowledgement, and neither sooner nor with another's.
func TestLeaseEndsWithItsLastAcknowledgement(t *testing.T) {
	nic, c := quietConfig(transport.Caps{WriteImm: true})
	tg, err := NewTarget(c)
	require.NoError(t, err)
	dst := make([]byte, 20)
	old, ok := tg.Lease(3, transport.EP{}, Offer{Bytes: 20, Tag: 1}, mem.Of(dst))
	require.True(t, ok)
	require.True(t, tg.Return(3, old.Generation, 0))
	g, ok := tg.Lease(3, transport.EP{}, Offer{Bytes: 20, AckAddr: 77, Tag: 2}, mem.Of(dst))
	require.True(t, ok)
	require.Equal(t, old.Lease, g.Lease)
	arrive := func(imm uint32, bytes uint32) {
		require.True(t, tg.Arrived(&transport.Completion{Kind: transport.OpRecv, Imm: imm, Bytes: bytes}))
	}
	copy(tg.leases[g.Lease].slots.Data(), "0123456789")
	arrive(immediate(old.Lease, old.Generation, 0), 10)
	arrive(immediate(g.Lease, g.Generation, 1), 10)
	require.False(t, tg.Progress(), "an older transfer's chunk, and one too early")
	require.False(t, tg.Arrived(&transport.Completion{Kind: transport.OpRecv}), "a message")
	nic.full = true
	arrive(immediate(g.Lease, g.Generation, 0), 10)
	require.True(t, tg.Progress())
	require.Equal(t, "0123456789", string(dst[:10]))
	require.False(t, tg.Progress(), "the NIC has no room for the acknowledgement")
	nic.full = false
	require.True(t, tg.Progress())
	require.False(t, tg.Progress())
	require.Len(t, nic.ops, 1, "one acknowledgement for one chunk")
	require.Zero(t, nic.ops[0].Flags&transport.FlagSignaled)
	require.EqualValues(t, 77, nic.ops[0].RAddr)
	require.Equal(t, ack(2, 1), nic.ops[0].SGE[0].Mem.Bits())
	copy(tg.leases[g.Lease].slots.Slice(Block, 10).Data(), "abcdefghij")
	arrive(immediate(g.Lease, g.Generation, 1), 10)
	require.True(t, tg.Progress())
	require.Equal(t, "0123456789abcdefghij", string(dst))
	require.Len(t, nic.ops, 2)
	require.NotZero(t, nic.ops[1].Flags&transport.FlagSignaled)
	require.False(t, tg.Progress())
	require.Equal(t, 1, tg.Active(), "its word is still the NIC's")
	require.True(t, tg.Completed(&transport.Completion{Kind: transport.OpWrite, Cookie: nic.ops[1].Cookie}))
	require.True(t, tg.Progress())
	require.Zero(t, tg.Active())
	require.Equal(t, 2, tg.FreeLeases())
	require.EqualValues(t, 1, tg.Served())
}

// TestBrokenLease: a chunk that cannot be stops a lease until its origin is lost; no byte outside is touched.
func TestBrokenLease(t *testing.T) {
	_, c := quietConfig(transport.Caps{WriteImm: true})
	tg, err := NewTarget(c)
	require.NoError(t, err)
	for i, bytes := range []uint32{0, 21, Block + 1, 1 << 31} {
		dst := make([]byte, 20)
		g, ok := tg.Lease(i, transport.EP{}, Offer{Bytes: 20, Tag: 1}, mem.Of(dst))
		require.True(t, ok)
		copy(tg.leases[g.Lease].slots.Data(), "0123456789")
		tg.Arrived(&transport.Completion{Kind: transport.OpRecv, Imm: immediate(g.Lease, g.Generation, 0), Bytes: bytes})
		require.True(t, tg.Progress())
		require.False(t, tg.Progress())
		require.Equal(t, make([]byte, 20), dst)
		require.EqualValues(t, i+1, tg.Broken())
		require.Zero(t, tg.Active(), "nothing to attend to")
		require.Equal(t, 1, tg.FreeLeases())
		tg.Lost(i)
		_, ok = tg.Lease(i, transport.EP{}, Offer{Bytes: 20, Tag: 2}, mem.Of(dst))
		require.False(t, ok, "it is gone")
		require.Equal(t, 2, tg.FreeLeases())
		require.Zero(t, tg.Active())
	}
}

// TestRunawayFlags: blocks without an end, as only a broken origin sends them, stop at the end of the slot.
func TestRunawayFlags(t *testing.T) {
	_, c := quietConfig(transport.Caps{InOrderData: true})
	tg, err := NewTarget(c)
	require.NoError(t, err)
	dst := make([]byte, 3*Payload)
	g, ok := tg.Lease(3, transport.EP{}, Offer{Bytes: uint64(len(dst)), Tag: 1}, mem.Of(dst))
	require.True(t, ok)
	tg.leases[g.Lease].slots.Word64(Payload).Store(flag(g.Generation, 0, 0))
	require.True(t, tg.Progress())
	require.False(t, tg.Progress())
	require.EqualValues(t, 1, tg.Broken())
	tg.Close()
	require.Equal(t, 2, tg.FreeLeases())
}

// TestFailedLeaseKeepsItsWord until the connection has ended: the target may still acknowledge into it.
func TestFailedLeaseKeepsItsWord(t *testing.T) {
	for _, lostFirst := range []bool{false, true} {
		nic, c := quietConfig(transport.Caps{WriteImm: true})
		o, err := NewOrigin(c)
		require.NoError(t, err)
		p, _, err := o.Begin(Transfer{Rank: 5, Local: mem.Of(make([]byte, Block)), Lease: true})
		require.NoError(t, err)
		p.Step()
		require.NoError(t, p.Granted(Grant{Generation: 1, SlotBytes: Block, Fold: 3, Way: WayImm}))
		p.Step()
		require.Len(t, nic.ops, 1)
		if lostFirst {
			o.Lost(5, transport.ErrPeerGone)
		}
		o.Completed(&transport.Completion{Kind: transport.OpWriteImm, Cookie: nic.ops[0].Cookie, Status: transport.StatusFlushed})
		p.Step()
		require.True(t, p.Done())
		if !lostFirst {
			require.ErrorIs(t, p.Err(), errBroken)
			require.Len(t, o.free, mostPipes-1)
			o.Lost(4, transport.ErrPeerGone)
			require.Len(t, o.free, mostPipes-1, "another's connection")
			o.Lost(5, transport.ErrPeerGone)
		}
		require.Len(t, o.free, mostPipes)
	}
}
