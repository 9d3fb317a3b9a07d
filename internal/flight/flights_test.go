package flight

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/am"
	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/internal/peers"
	"gopgas/internal/sched"
	"gopgas/internal/spread"
	"gopgas/internal/superpipe"
	"gopgas/regmgr"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// rank is one rank's flights, as its NIC's client sees them: whoever asks for its memory gets it.
type rank struct {
	*Flights
	memory mem.Range
	key    uint64
	reg    *regmgr.Manager
	deaf   bool // it does not answer requests for leases
}

func (r *rank) Landed(int32)      {}
func (r *rank) LetGoLocked(int32) {}
func (r *rank) Tell() bool        { return false }

func (r *rank) Handle(q am.Request, out []byte) (int, uint8) {
	k, bytes, ok := Kind(q.Handler), 0, false
	switch {
	case k == ToReturn || k == ToStop:
		bytes, ok = r.Noted(k, q, out)
	case r.deaf:
	default:
		r.Ready()
		bytes, ok = r.Serve(k, q, r.memory.Slice(int(q.Args[1]-r.memory.Addr()), int(q.Args[2])), out)
	}
	if !ok {
		return 0, 1
	}
	return bytes, 0
}

// newRanks makes ranks that attend to their NICs; each has so many bytes.
func newRanks(t *testing.T, n, bytes int, c transporttest.FabricConfig, leases int) []*rank {
	t.Helper()
	ranks := make([]*rank, n)
	fabric := transporttest.NewFabric(n, c)
	for i := range ranks {
		s, r := sched.Goroutine(n), &rank{memory: mem.Of(make([]byte, bytes))}
		d, err := fabric.Provider(i).Open(t.Context(), transport.Config{Rank: i, Size: n, Job: t.Name(), Secret: []byte(t.Name()), Sched: s})
		require.NoError(t, err)
		table := peers.New(n)
		device, err := nic.New(nic.Config{Rank: i, Size: n, Name: "loopback", Domain: d, Sched: s, Peers: table, Client: r})
		require.NoError(t, err)
		r.Flights, err = New(Config{NIC: device, Sched: s, Peers: table, Size: n, Leases: leases})
		require.NoError(t, err)
		require.NoError(t, device.Listen(r.Immediates()))
		r.reg, err = regmgr.New(regmgr.Config{Policy: regmgr.LeavePinned, Registrar: d, Sched: s})
		require.NoError(t, err)
		r.Use(r.reg, nil)
		key, err := d.Register(r.memory, transport.AllAccess)
		require.NoError(t, err)
		r.key = key.RKey
		ranks[i] = r
		t.Cleanup(func() {
			device.Quit()
			require.NoError(t, r.reg.Close())
			require.NoError(t, d.Close())
			r.Close()
		})
	}
	for _, r := range ranks {
		for i, p := range ranks {
			r.n.Learn(i, p.n.Domain.Address())
		}
		r.n.Start()
	}
	return ranks
}

// trip goes to, or from, byte at of a rank's memory.
func (r *rank) trip(to int, get bool, at int) Trip {
	op := "put"
	if get {
		op = "get"
	}
	return Trip{Op: op, Get: get, Rank: to, Addr: r.memory.Addr() + uint64(at), Key: r.key}
}

// settled requires that nothing is left over at any rank.
func settled(t *testing.T, ranks []*rank) {
	t.Helper()
	for i, r := range ranks {
		require.Eventually(t, func() bool {
			r.n.Progress()
			v := r.Levels()
			return v.Flights+v.Pulls+v.Notes+v.Leased == 0 && v.FreeSlots == Slots && r.n.Idle()
		}, 10*time.Second, time.Millisecond, "rank %d: %+v", i, r.Levels())
		require.Zero(t, r.Levels().Broken)
	}
}

func filled(bytes int, seed byte) mem.Range {
	b := make([]byte, bytes)
	for i := range b {
		b[i] = byte(i>>8) ^ byte(i)*7 ^ seed
	}
	return mem.Of(b)
}

const exposed = 1 << 20

// TestPipes puts and gets through pipes, with and without a helper for the end: a flush finds all there, and nothing is left over.
func TestPipes(t *testing.T) {
	ranks := newRanks(t, 2, exposed, transporttest.FabricConfig{}, 0)
	s, far := ranks[0], ranks[1]
	require.NoError(t, s.n.Connect("put", 1))
	for i, bytes := range []int{1, 70_001, 700_000} {
		for _, head := range []int{bytes, bytes / 3} {
			src, back := filled(bytes, byte(i+head)), mem.Of(make([]byte, bytes))
			h, err := s.Begin(far.trip(1, false, 13), src, head)
			require.NoError(t, err)
			require.NoError(t, h.Wait(t.Context()))
			require.NoError(t, s.n.Flush(t.Context(), 1))
			require.Equal(t, src.Data(), far.memory.Slice(13, bytes).Data())
			h, err = s.Begin(far.trip(1, true, 13), back, head)
			require.NoError(t, err)
			require.NoError(t, h.Wait(t.Context()))
			require.Equal(t, src.Data(), back.Data())
		}
	}
	settled(t, ranks)
}

// TestRefusedPipe (X4): the failure of a put whose handle was done before is the flush's to tell; that of a get the handle's.
func TestRefusedPipe(t *testing.T) {
	ranks := newRanks(t, 2, exposed, transporttest.FabricConfig{}, 0)
	s, bad := ranks[0], ranks[1].trip(1, false, 0)
	bad.Key++
	require.NoError(t, s.n.Connect("put", 1))
	h, err := s.Begin(bad, filled(exposed, 1), exposed)
	require.NoError(t, err)
	err = h.Wait(t.Context())
	if ferr := s.n.Flush(t.Context(), 1); err == nil {
		err = ferr
	} else {
		require.NoError(t, ferr, "it is told once")
	}
	require.ErrorIs(t, err, nic.ErrRefused)
	require.NoError(t, s.n.Flush(t.Context(), 1))
	bad.Op, bad.Get = "get", true
	h, err = s.Begin(bad, filled(exposed, 1), exposed)
	require.NoError(t, err)
	require.ErrorIs(t, h.Wait(t.Context()), nic.ErrRefused)
	require.NoError(t, s.n.Flush(t.Context(), 1))
	settled(t, ranks)
}

// TestLeases carries whole memory and pieces both ways, on NICs that report what arrives and on those that keep it in order.
func TestLeases(t *testing.T) {
	for name, c := range map[string]transporttest.FabricConfig{"told": {}, "in order": {InOrder: true, NoWriteImm: true}} {
		t.Run(name, func(t *testing.T) {
			ranks := newRanks(t, 2, exposed, c, 0)
			s, far := ranks[0], ranks[1]
			require.True(t, s.Leases())
			for round := range 4 {
				near := filled(300_000, byte(round))
				cargo := Cargo{Near: near, Span: near.Bytes}
				want := near
				if round%2 == 1 { // every second kilobyte here, to every third there
					a, b := new(spread.Spread), new(spread.Spread)
					a.Reset(near)
					b.Reset(far.memory)
					for k := range 100 {
						a.Add(2048*k, 1024)
						b.Add(3072*k, 1024)
					}
					_, end := b.Bounds()
					cargo = Cargo{Near: near, Spread: a, Span: end, Layout: b.Append(nil, 0)}
					want = mem.Of(make([]byte, 0))
				}
				h, granted, err := s.Lease(far.trip(1, false, 0), cargo)
				require.NoError(t, err)
				require.True(t, granted)
				require.NoError(t, h.Wait(t.Context()))
				require.NoError(t, s.n.Flush(t.Context(), 1))
				for k := 0; k < 100 && want.Bytes == 0; k++ {
					require.Equal(t, near.Slice(2048*k, 1024).Data(), far.memory.Slice(3072*k, 1024).Data())
				}
				if want.Bytes > 0 {
					require.Equal(t, want.Data(), far.memory.Slice(0, want.Bytes).Data())
				}
				back := mem.Of(make([]byte, near.Bytes))
				h, granted, err = s.Lease(far.trip(1, true, 0), Cargo{Near: back, Span: back.Bytes})
				require.NoError(t, err)
				require.True(t, granted)
				require.NoError(t, h.Wait(t.Context()))
				require.Equal(t, far.memory.Slice(0, back.Bytes).Data(), back.Data())
				settled(t, ranks)
				require.NoError(t, far.Drain(t.Context(), far.memory))
			}
		})
	}
}

// TestNoLease: where there is none nothing has happened, and the owner of the memory may free it.
func TestNoLease(t *testing.T) {
	ranks := newRanks(t, 2, exposed, transporttest.FabricConfig{}, 0)
	s, far := ranks[0], ranks[1]
	before := filled(exposed, 9)
	copy(far.memory.Data(), before.Data())
	require.True(t, far.Ready())
	for i := range MostLeases / 2 { // as many as one origin may have
		_, ok := far.target.Expect(0, transport.EP{}, filled(8, byte(i)))
		require.True(t, ok)
	}
	_, granted, err := s.Lease(far.trip(1, false, 0), Cargo{Near: filled(1000, 1), Span: 1000})
	require.NoError(t, err)
	require.False(t, granted)
	require.Equal(t, before.Data(), far.memory.Data())
	require.True(t, s.LeasesTo(1), "it may have one later")
	far.deaf = true
	for _, get := range []bool{false, true} {
		_, granted, err = s.Lease(far.trip(1, get, 0), Cargo{Near: filled(1000, 1), Span: 1000})
		require.ErrorIs(t, err, nic.ErrRefused)
		require.False(t, granted)
	}
	far.target.Lost(0)
	settled(t, ranks)
	none := newRanks(t, 2, exposed, transporttest.FabricConfig{}, -1)
	require.False(t, none[0].Leases() || none[0].LeasesTo(1) || none[0].Ready())
	require.Zero(t, none[0].Immediates())
	require.NoError(t, none[0].Drain(t.Context(), none[0].memory))
}

// TestMalformed: what no rank of this program would send is refused, whoever is said to send it, and leaves nothing behind.
func TestMalformed(t *testing.T) {
	ranks := newRanks(t, 2, exposed, transporttest.FabricConfig{}, 0)
	s := ranks[0]
	out := make([]byte, ReplyBytes)
	good := superpipe.Offer{}
	for _, from := range []int{-1, 0, 1, 2} {
		for k := range Kinds {
			q := am.Request{From: from, Payload: []byte("garbage")}
			if k == ToReturn || k == ToStop {
				_, ok := s.Noted(k, q, out)
				require.Equal(t, from == 0 || from == 1, ok)
				continue
			}
			_, ok := s.Serve(k, q, s.memory, out)
			require.False(t, ok)
			q.Payload = append(good.Append(nil), "no layout"...)
			_, ok = s.Serve(k, q, s.memory, out)
			require.False(t, ok)
		}
	}
	settled(t, ranks)
}

// TestIdleWorkspaceGoes (X5): what is leased to nobody makes room for registrations, and comes again.
func TestIdleWorkspaceGoes(t *testing.T) {
	ranks := newRanks(t, 2, exposed, transporttest.FabricConfig{}, 0)
	s, far := ranks[0], ranks[1]
	_, ok := far.room.Oldest()
	require.False(t, ok, "nothing is registered yet")
	for range 2 {
		h, granted, err := s.Lease(far.trip(1, false, 0), Cargo{Near: filled(5000, 1), Span: 5000})
		require.NoError(t, err)
		require.True(t, granted)
		require.NoError(t, h.Wait(t.Context()))
		settled(t, ranks)
		require.Eventually(t, func() bool { return far.Levels().Idle }, 10*time.Second, time.Millisecond)
		require.Positive(t, far.reg.Trim(1))
		_, ok = far.room.Oldest()
		require.False(t, ok)
	}
}

// TestSlots: a NIC that may pin little has smaller slots, or none.
func TestSlots(t *testing.T) {
	for most, want := range map[int64]int{
		0: SlotBytes, 1 << 40: SlotBytes, SlotBytes * Slots * slotShare: SlotBytes, slotLeast * Slots * slotShare: slotLeast,
		slotLeast*Slots*slotShare - 1: 0, 1: 0,
	} {
		require.Equal(t, want, slotFor(most), most)
	}
	few := newRanks(t, 1, 4096, transporttest.FabricConfig{MaxPinned: 4 << 20}, 0)[0]
	require.False(t, few.Pipes() || few.Leases())
	require.Zero(t, few.Footprint()+few.SlotBytes())
	require.False(t, few.Advance() || few.Watchful())
}

// TestAllAtOnce: all ranks put to all and get from all, through pipes and leases, more than there are of either.
func TestAllAtOnce(t *testing.T) {
	const n, bytes = 3, 100_000
	ranks := newRanks(t, n, 2*n*bytes, transporttest.FabricConfig{Jitter: 20 * time.Microsecond, Seed: 3}, 0)
	var wg sync.WaitGroup
	errs := make(chan error, 2*n*n)
	for i, r := range ranks {
		for j, far := range ranks {
			wg.Go(func() {
				errs <- func() error {
					if err := r.n.Connect("put", j); err != nil {
						return err
					}
					src, back := filled(bytes, byte(i)), mem.Of(make([]byte, bytes))
					h, err := r.Begin(far.trip(j, false, i*bytes), src, bytes)
					if err == nil {
						err = h.Wait(context.Background())
					}
					if err == nil {
						err = r.n.Flush(context.Background(), j)
					}
					granted := false
					for err == nil && !granted {
						if h, granted, err = r.Lease(far.trip(j, true, i*bytes), Cargo{Near: back, Span: bytes}); granted {
							err = h.Wait(context.Background())
						}
					}
					if err == nil && string(back.Data()) != string(src.Data()) {
						err = fmt.Errorf("rank %d has got other bytes from %d", i, j)
					}
					return err
				}()
			})
		}
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	settled(t, ranks)
}

// plot is ground of which a test says what becomes, in stretches of 10 000 bytes.
type plot struct {
	key      uint64
	meet     func() (ok bool, err error)
	asked    bool
	released atomic.Int32
}

func (p *plot) Key(at int) (uint64, int)   { return p.key, at/10_000*10_000 + 10_000 }
func (p *plot) Ask()                       { p.asked = true }
func (p *plot) Wait() (ok bool, err error) { return p.meet() }
func (p *plot) Release()                   { p.released.Add(1) }

// TestGround: the first chunks of a put are copied while its ground is asked for, and nothing is posted; then it goes on, and gives the
// ground back before its waiter knows. What is refused has not happened.
func TestGround(t *testing.T) {
	const bytes = 300_000
	ranks := newRanks(t, 2, exposed, transporttest.FabricConfig{}, 0)
	s, far := ranks[0], ranks[1]
	require.NoError(t, s.n.Connect("put", 1))
	trouble := errors.New("the test's")
	for i, meets := range []struct {
		ok  bool
		err error
	}{{ok: true}, {}, {err: trouble}} {
		for _, get := range []bool{false, true} {
			for _, head := range []int{bytes, bytes / 3} {
				before := filled(exposed, byte(i))
				copy(far.memory.Data(), before.Data())
				user, p := filled(bytes, byte(5+i)), &plot{key: far.key}
				was := mem.Of(append([]byte(nil), user.Data()...))
				p.meet = func() (bool, error) {
					require.True(t, p.asked)
					s.n.Progress()
					require.Equal(t, !get, s.Levels().FreeSlots < Slots, "copied meanwhile")
					require.Equal(t, 1, s.Levels().Flights)
					require.Equal(t, before.Data(), far.memory.Data())
					return meets.ok, meets.err
				}
				h, granted, err := s.BeginOn(far.trip(1, get, 17), user, head, 1e-6, p)
				require.ErrorIs(t, err, meets.err)
				require.Equal(t, meets.ok, granted)
				require.NoError(t, h.Wait(t.Context()))
				if get && granted {
					require.EqualValues(t, 1, p.released.Load())
				}
				require.NoError(t, s.n.Flush(t.Context(), 1))
				switch {
				case !granted:
					require.Zero(t, p.released.Load())
					require.Equal(t, before.Data(), far.memory.Data())
					require.Equal(t, was.Data(), user.Data())
				case get:
					require.Equal(t, before.Slice(17, bytes).Data(), user.Data())
				default:
					require.EqualValues(t, 1, p.released.Load())
					require.Equal(t, user.Data(), far.memory.Slice(17, bytes).Data())
				}
				settled(t, ranks)
			}
		}
	}
	_, _, gathered := s.Moved()
	require.Zero(t, gathered, "no lease")
}
