package proto

import (
	"context"
	"reflect"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/internal/peers"
	"gopgas/internal/sched"
	"gopgas/regmgr"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// pair returns the engines of two ranks over a loop-back NIC, and rank 1's memory as rank 0 reaches it.
// Rank 0's NIC goes through wrap first.
func pair(t *testing.T, bytes int, r Registration, fabric transporttest.FabricConfig, wrap ...func(transport.Domain) transport.Domain) (e *Engine, there *Remote, memory mem.Range) {
	f := transporttest.NewFabric(2, fabric)
	var domains [2]transport.Domain
	var addresses [][]byte
	scheds := [2]*sched.Sched{sched.Goroutine(2), sched.Goroutine(2)}
	for i := range domains {
		d, err := f.Provider(i).Open(t.Context(), transport.Config{Rank: i, Size: 2, Job: t.Name(), Sched: scheds[i]})
		require.NoError(t, err)
		for _, w := range wrap[:len(wrap)*(1-i)] {
			d = w(d)
		}
		domains[i] = d
		addresses = append(addresses, d.Address())
	}
	var engines [2]*Engine
	for i := range engines {
		engines[i] = New(Config{
			Rank: i, Size: 2, Sched: scheds[i], Peers: peers.New(2), NICName: "loopback",
			OpenNIC: func(context.Context) (transport.Domain, error) { return domains[i], nil },
			Nodes:   []int{0, 1}, Registration: r,
		})
		require.NoError(t, engines[i].openNIC(t.Context()))
		for k := range addresses {
			engines[i].nic().Learn(k, addresses[k])
		}
		t.Cleanup(func() { _ = engines[i].Close() })
	}
	memory = mem.Of(make([]uint64, bytes/8))
	reg, err := domains[1].Register(memory, transport.AllAccess)
	require.NoError(t, err)
	return engines[0], &Remote{Rank: 1, Bytes: bytes, raddr: memory.Addr(), rkey: reg.RKey, keyed: true, room: bytes}, memory
}

func filled(bytes int) mem.Range {
	r := mem.Of(make([]uint64, bytes/8))
	for i := range r.Data() {
		r.Data()[i] = byte(i * 13)
	}
	return r
}

// TestFailedPutIsReportedOnce (N2): by whoever waits for it, or by the next flush if nobody does.
func TestFailedPutIsReportedOnce(t *testing.T) {
	const n = 1 << 20
	for name, report := range map[string]func(e *Engine, r *Remote, src mem.Range) error{
		"put": func(e *Engine, r *Remote, src mem.Range) error { return e.Put(r, 0, src) },
		"handle": func(e *Engine, r *Remote, src mem.Range) error {
			h, err := e.PutNB(r, 0, src)
			require.NoError(t, err)
			return h.Wait(context.Background())
		},
		"flush": func(e *Engine, r *Remote, src mem.Range) error {
			_, err := e.PutNB(r, 0, src)
			require.NoError(t, err)
			return e.Flush(r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, r, memory := pair(t, n, Registration{}, transporttest.FabricConfig{MaxMessage: 100_000})
			bad := *r
			bad.rkey++
			require.ErrorIs(t, report(e, &bad, filled(n)), nic.ErrRefused)
			require.NoError(t, e.Flush(r), "once")
			require.Eventually(t, e.nic().Idle, time.Minute, time.Microsecond)
			require.Equal(t, make([]byte, n), memory.Data())
			_, refused, _ := e.Registered()
			require.NoError(t, refused)
			unheld(t, e, 0)
		})
	}
}

// TestHandleIsDoneAfterItsRegistrationIs: whoever has waited may unmap the memory.
func TestHandleIsDoneAfterItsRegistrationIs(t *testing.T) {
	const n = 1 << 20
	e, r, memory := pair(t, n, Registration{Policy: regmgr.OnDemand}, transporttest.FabricConfig{MaxMessage: 100_000})
	src, back := filled(n), mem.Of(make([]byte, n))
	for range 20 {
		h, err := e.PutNB(r, 0, src)
		require.NoError(t, err)
		require.NoError(t, h.Wait(context.Background()))
		s, _, _ := e.Registered()
		require.Zero(t, s.Bytes)
		require.NoError(t, e.Flush(r))
		require.Equal(t, src.Data(), memory.Data())
		h, err = e.GetNB(r, 0, back)
		require.NoError(t, err)
		require.NoError(t, h.Wait(context.Background()))
		s, _, _ = e.Registered()
		require.Zero(t, s.Bytes)
		require.Equal(t, src.Data(), back.Data())
		clear(back.Data())
	}
	require.Equal(t, uint64(40), e.Stats()[PathDirect].Ops)
}

// TestExposedMemoryTakesRoomFromTheCache: what a window needs, idle registrations give up.
func TestExposedMemoryTakesRoomFromTheCache(t *testing.T) {
	const n = 1 << 20
	fabric := transporttest.FabricConfig{MaxPinned: 8 << 20}
	e, r, _ := pair(t, n, Registration{Bytes: 5 << 20}, fabric)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // behind a collection an address may be another buffer's
	for range 4 {
		src := filled(n)
		for range 4 { // what is used once is not registered
			require.NoError(t, e.Put(r, 0, src))
		}
	}
	// The tail of the last one may still be in use.
	require.Eventually(t, func() bool { return e.nic().flights.Levels().Flights == 0 }, time.Minute, time.Millisecond)
	s, _, _ := e.Registered()
	require.Positive(t, s.Idle)
	exposed := mem.Of(make([]byte, 4<<20))
	reg, err := e.nic().registerExposed(exposed, transport.AllAccess)
	require.NoError(t, err)
	after, _, _ := e.Registered()
	require.Less(t, after.Idle, s.Idle)
	require.NoError(t, e.nic().Domain.Deregister(reg))
	_, err = e.nic().registerExposed(mem.Of(make([]byte, 9<<20)), transport.AllAccess)
	require.ErrorIs(t, err, transport.ErrLimit, "more than there is")
}

// miser is a NIC that registers nothing any more once it has posted something large; what it has posted is over then, and
// idle registrations are given up.
type miser struct {
	transport.Domain
	engine *Engine
	mean   bool
}

func (d *miser) Register(r mem.Range, a transport.Access) (transport.Region, error) {
	if d.mean {
		return transport.Region{}, &transport.LimitError{What: "registrations"}
	}
	return d.Domain.Register(r, a)
}

func (d *miser) Post(ops []transport.Op) (int, error) {
	n, err := d.Domain.Post(ops)
	if d.engine != nil && n > 0 && ops[0].SGE[0].Mem.Bytes > nic.SlotBytes {
		d.mean = true
		for d.engine.nic().Pending(1) {
			d.engine.nic().Progress()
		}
		d.engine.nic().direct.reg.Trim(1 << 30)
	}
	return n, err
}

// TestTransferKeepsItsRegistration: between two pieces of a transfer, of which the first may be over, nobody takes away what
// the second needs.
func TestTransferKeepsItsRegistration(t *testing.T) {
	const n = 1 << 20
	for _, policy := range []regmgr.Policy{regmgr.OnDemand, regmgr.PipelinedLeavePinned, regmgr.LeavePinnedNoEvict} {
		nic := &miser{}
		e, r, memory := pair(t, n, Registration{Policy: policy}, transporttest.FabricConfig{MaxMessage: 100_000},
			func(d transport.Domain) transport.Domain { nic.Domain = d; return nic })
		nic.engine = e
		src := filled(n)
		h, err := e.PutNB(r, 0, src)
		require.NoError(t, err)
		require.NoError(t, h.Wait(context.Background()))
		require.NoError(t, e.Flush(r))
		require.Equal(t, src.Data(), memory.Data())
		s, refused, _ := e.Registered()
		require.NoError(t, refused)
		require.Equal(t, uint64(1), s.Registrations)
	}
}

// TestHandleStaysInRegisters: the compiler keeps structures of up to four fields and words there.
func TestHandleStaysInRegisters(t *testing.T) {
	h := reflect.TypeFor[Handle]()
	require.LessOrEqual(t, h.NumField(), 4)
	require.LessOrEqual(t, h.Size(), 4*reflect.TypeFor[uintptr]().Size())
}
