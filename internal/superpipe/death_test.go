package superpipe

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// mortal are the NICs on which ranks die.
var mortal = map[string]setup{
	"order":      {config: smallSlots(), fabric: transporttest.FabricConfig{InOrder: true}},
	"immediates": {config: smallSlots()},
	"late":       {config: smallSlots(), fabric: transporttest.FabricConfig{InOrder: true, Jitter: 50 * time.Microsecond}},
}

// TestTargetDies kills the target when chunk i of a transfer is about to be posted.
func TestTargetDies(t *testing.T) {
	for name, s := range mortal {
		for _, k := range kinds {
			for _, at := range []int64{1, 2, 4} {
				if k.registered && !k.lease && at > 1 {
					continue // it is one operation in all
				}
				t.Run(fmt.Sprintf("%s/%s/%d", name, k.name, at), func(t *testing.T) {
					spy := &spyNIC{}
					s := s
					s.nic = func(rank int, d transport.Domain) NIC {
						if rank == 0 {
							spy.NIC = d
							return spy
						}
						return d
					}
					spy.check = func([]transport.Op) {}
					r := newRig(t, 3, s)
					spy.check = func([]transport.Op) {
						if spy.posts.Load() == at-1 {
							r.kill(1)
						}
					}
					a, b := r.ranks[0], r.ranks[1]
					n := 200_000
					local, remote := make([]byte, n), make([]byte, n)
					reg, err := b.d.Register(mem.Of(remote), transport.AllAccess)
					require.NoError(t, err)
					tr := Transfer{Get: k.get, Rank: 1, EP: a.eps[1], Local: mem.Of(local), Behind: k.behind, Lease: k.lease, Registered: k.registered}
					if k.registered {
						lreg, err := a.d.Register(mem.Of(local), transport.LocalWrite)
						require.NoError(t, err)
						tr.LKey = lreg.LKey
					}
					tr.RAddr, tr.RKey = mem.Of(remote).Addr(), reg.RKey
					p := a.begin(tr)
					if k.lease {
						require.NoError(t, p.Granted(a.rendezvous(p, b, mem.Of(remote))))
					} else if k.behind > 0 {
						p.Reach(tr.RAddr, tr.RKey)
					}
					require.ErrorIs(t, finish(t, p), transport.ErrPeerGone)
					spy.check = func([]transport.Op) {}
					until(t, "slots", func() bool { return a.o.FreeSlots() == a.o.c.Slots && a.o.Live() == 0 })
					for i, k := range []kind{kinds[0], kinds[3], kinds[5]} {
						transfer(t, a, r.ranks[2], k, payload(i, 40_000, rand.New(rand.NewPCG(1, 2))), 1, "afterwards")
					}
					r.idle()
				})
			}
		}
	}
}

// TestOriginDies kills the origin between two chunks; its lease comes back, and the next transfer through the same
// workspace, with another generation, takes nothing of it for its own.
func TestOriginDies(t *testing.T) {
	for name, s := range mortal {
		for _, at := range []int64{1, 2, 3, 5} {
			t.Run(fmt.Sprintf("%s/%d", name, at), func(t *testing.T) {
				s := s
				s.config.Leases = 1
				spy := &spyNIC{}
				spy.check = func([]transport.Op) {}
				s.nic = func(rank int, d transport.Domain) NIC {
					if rank == 0 {
						spy.NIC = d
						return spy
					}
					return d
				}
				r := newRig(t, 3, s)
				spy.check = func([]transport.Op) {
					if spy.posts.Load() == at {
						r.kill(0)
					}
				}
				a, b := r.ranks[0], r.ranks[1]
				old, dst := payload(1, 200_000, rand.New(rand.NewPCG(3, 4))), make([]byte, 200_000)
				p := a.begin(Transfer{Rank: 1, EP: a.eps[1], Local: mem.Of(old), Lease: true})
				require.NoError(t, p.Granted(a.rendezvous(p, b, mem.Of(dst))))
				until(t, "the origin's death", func() bool {
					p.Step()
					return a.down.Load()
				})
				a.o.Close(transport.ErrClosed)
				require.ErrorIs(t, finish(t, p), transport.ErrClosed)
				until(t, "the lease", func() bool { return b.t.Active() == 0 && b.t.FreeLeases() == 1 })
				for i := range 3 {
					transfer(t, r.ranks[2], b, kinds[3], payload(i, 60_000, rand.New(rand.NewPCG(5, uint64(i)))), 0, "afterwards")
				}
				r.idle()
			})
		}
	}
}

// TestDroppedHandle forgets a transfer as soon as it has begun, and as soon as its source is free.
func TestDroppedHandle(t *testing.T) {
	r := newRig(t, 2, mortal["late"])
	a, b := r.ranks[0], r.ranks[1]
	want := payload(0, 150_000, rand.New(rand.NewPCG(1, 2)))
	dst := make([]byte, len(want))
	reg, err := b.d.Register(mem.Of(dst), transport.AllAccess)
	require.NoError(t, err)
	src := make([]byte, len(want))
	copy(src, want)
	p := a.begin(Transfer{Rank: 1, EP: a.eps[1], Local: mem.Of(src), RAddr: mem.Of(dst).Addr(), RKey: reg.RKey})
	until(t, "the source", func() bool {
		p.Step()
		return p.Sourced()
	})
	clear(src) // reused at once
	runtime.GC()
	until(t, "the end", func() bool { return a.o.Live() == 0 })
	require.Equal(t, want, dst)
	back := make([]byte, len(want))
	a.begin(Transfer{Get: true, Rank: 1, EP: a.eps[1], Local: mem.Of(back), RAddr: mem.Of(dst).Addr(), RKey: reg.RKey})
	until(t, "the end of what nobody waits for", func() bool { return a.o.Live() == 0 })
	require.Equal(t, want, back)
	r.idle()
}

// TestClose ends transfers that nobody answers.
func TestClose(t *testing.T) {
	r := newRig(t, 2, mortal["order"])
	a := r.ranks[0]
	p := a.begin(Transfer{Rank: 1, EP: a.eps[1], Local: mem.Of(make([]byte, 1<<20)), Lease: true})
	p.Step()
	require.False(t, p.Done())
	cause := errors.New("closing")
	a.o.Close(cause)
	require.ErrorIs(t, finish(t, p), cause)
	require.Equal(t, a.o.c.Slots, a.o.FreeSlots())
	_, _, err := a.o.Begin(Transfer{Rank: 1, EP: a.eps[1], Local: mem.Of(make([]byte, 1))})
	require.ErrorIs(t, err, cause)
	r.ranks[1].t.Close()
	_, ok := r.ranks[1].t.Lease(0, a.eps[1], Offer{Bytes: 1, Tag: 1}, mem.Of(make([]byte, 1)))
	require.False(t, ok)
}

// TestLeasesAreBudgeted: an origin gets its share, and one that is given back is granted again.
func TestLeasesAreBudgeted(t *testing.T) {
	s := mortal["order"]
	s.config.Leases, s.config.PerOrigin = 3, 2
	r := newRig(t, 3, s)
	b, dst := r.ranks[0], mem.Of(make([]byte, 100))
	o := Offer{Bytes: 100, Tag: 1}
	var grants []Grant
	for origin, want := range []int{0, 2, 1} {
		for n := 0; ; n++ {
			g, ok := b.t.Lease(origin, b.eps[origin], o, dst)
			if origin == 0 {
				require.True(t, ok)
				b.t.Return(0, g.Generation, 0)
				break
			}
			if !ok {
				require.Equal(t, want, n, "leases of rank %d", origin)
				break
			}
			grants = append(grants, g)
		}
	}
	for i, g := range grants {
		for _, h := range grants[:i] {
			require.NotEqual(t, g.Addr, h.Addr)
			require.NotEqual(t, g.Generation, h.Generation)
		}
	}
	b.t.Return(2, grants[0].Generation, 0) // another's: nothing happens
	require.Equal(t, 0, b.t.FreeLeases())
	b.t.Return(1, grants[0].Generation, 0)
	require.Equal(t, 1, b.t.FreeLeases())
	b.t.Lost(1)
	b.t.Lost(2)
	r.idle()
}

// TestMisfits: offers and grants that do not fit are refused.
func TestMisfits(t *testing.T) {
	r := newRig(t, 2, mortal["order"])
	a, b := r.ranks[0], r.ranks[1]
	dst := mem.Of(make([]byte, 100))
	for _, o := range []Offer{{Bytes: 99, Tag: 1}, {Bytes: 100}, {Bytes: 100, Tag: 1 << 60}} {
		_, ok := b.t.Lease(0, b.eps[0], o, dst)
		require.False(t, ok)
	}
	_, ok := b.t.Lease(0, b.eps[0], Offer{Tag: 1}, mem.Range{})
	require.False(t, ok, "nothing to lease for")
	p := a.begin(Transfer{Rank: 1, EP: a.eps[1], Local: dst, Lease: true})
	require.ErrorIs(t, p.Granted(Grant{Generation: 1, SlotBytes: 2 * Block, Fold: 3, Way: WayFlags}), ErrGrant)
	require.ErrorIs(t, finish(t, p), ErrGrant)
	_, _, err := a.o.Begin(Transfer{Get: true, Lease: true})
	require.ErrorIs(t, err, transport.ErrUnsupported)
	r.idle()
}

// TestPoorNIC: without order in a write and without immediates there is no way into a lease.
func TestPoorNIC(t *testing.T) {
	r := newRig(t, 1, flavours["poor"])
	require.Equal(t, WayNone, r.ranks[0].o.Way())
	_, err := NewTarget(Config{NIC: r.ranks[0].d})
	require.ErrorIs(t, err, transport.ErrUnsupported)
	_, _, err = r.ranks[0].o.Begin(Transfer{Lease: true})
	require.ErrorIs(t, err, transport.ErrUnsupported)
}

// TestRefusedRegistration: the workspace's refusal names the limit; that of a piece of a transfer falls back to copies.
func TestRefusedRegistration(t *testing.T) {
	ds, _ := openFabric(transporttest.FabricConfig{MaxPinned: 100 << 10})(t, 1)
	t.Cleanup(func() { require.NoError(t, ds[0].Close()) })
	limit := (*transport.LimitError)(nil)
	_, err := NewOrigin(Config{NIC: ds[0], SlotBytes: 1 << 20})
	require.ErrorAs(t, err, &limit)
	require.ErrorContains(t, err, "6 slots of 1048576 bytes")
	_, err = NewTarget(Config{NIC: ds[0], SlotBytes: 1 << 20})
	require.ErrorAs(t, err, &limit)
	for _, policy := range []Policy{OnTheFly, PipelinedPins} {
		for refused := 1; refused < 4; refused++ {
			for _, k := range []kind{{name: "put"}, {name: "get", get: true}} {
				s := setup{config: smallSlots()}
				s.config.Policy = policy
				s.fabric.MaxMessage = 30_000
				refuse := &refusing{at: 4 + refused} // four of the origin's and the target's own before
				s.nic = func(rank int, d transport.Domain) NIC {
					if rank == 0 {
						refuse.NIC = d
						return refuse
					}
					return d
				}
				r := newRig(t, 2, s)
				transfer(t, r.ranks[0], r.ranks[1], k, payload(0, 100_000, rand.New(rand.NewPCG(1, 2))), 3, policy.String())
				require.Positive(t, r.ranks[0].o.Fallbacks())
				r.idle()
			}
		}
	}
}

// refusing refuses every registration from one on.
type refusing struct {
	NIC
	seen, at int
}

func (f *refusing) Register(r mem.Range, a transport.Access) (transport.Region, error) {
	if f.seen++; f.seen >= f.at {
		return transport.Region{}, &transport.LimitError{What: "a test"}
	}
	return f.NIC.Register(r, a)
}

// TestLeaseWhileLost: a rank that is lost while it is being granted a lease has none when both are over, whichever was first.
func TestLeaseWhileLost(t *testing.T) {
	_, c := quietConfig(transport.Caps{WriteImm: true})
	c.Kept = true
	tg, err := NewTarget(c)
	require.NoError(t, err)
	dst := mem.Of(make([]byte, 100))
	for origin := range 20_000 {
		var both sync.WaitGroup
		both.Go(func() { tg.Expect(origin, transport.EP{}, dst) })
		both.Go(func() { tg.Lost(origin) })
		both.Wait()
		require.Zero(t, tg.Active(), "origin %d", origin)
		require.Equal(t, c.Leases, tg.FreeLeases(), "origin %d", origin)
	}
	var both sync.WaitGroup
	both.Go(func() { tg.Expect(0, transport.EP{}, dst) })
	both.Go(tg.Close)
	both.Wait()
	require.Zero(t, tg.Active())
}
