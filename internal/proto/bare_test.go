package proto

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
	"gopgas/internal/peers"
	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/auto"
	"gopgas/transport/shm"
	"gopgas/transport/transporttest"
)

// secretive is a NIC that does not tell how much it may pin.
type secretive struct{ transport.Domain }

func (s secretive) Caps() transport.Caps {
	c := s.Domain.Caps()
	c.MaxPinned = 0
	return c
}

// allocateOn makes an engine over each of some domains, all of one group, and has each expose bytes of memory.
func allocateOn(t *testing.T, domains []transport.Domain, bytes func(rank int) int) ([]*Engine, []*Exposure, []error) {
	t.Helper()
	n := len(domains)
	m, e, xp, errs := newMeeting(n), make([]*Engine, n), make([]*Exposure, n), make([]error, n)
	ranks := make([]int, n)
	for r := range n {
		ranks[r] = r
		e[r] = New(Config{
			Rank: r, Size: n, Sched: sched.Goroutine(n), Peers: peers.New(n), NICName: "test", Nodes: make([]int, n),
			OpenNIC: func(context.Context) (transport.Domain, error) { return domains[r], nil },
		})
	}
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			local := mem.Of(make([]uint64, bytes(r)/8))
			xp[r], errs[r] = e[r].Expose(t.Context(), seat{m, r}, ranks, local)
		})
	}
	wg.Wait()
	t.Cleanup(func() {
		for r := range n {
			if xp[r] != nil {
				require.NoError(t, errors.Join(xp[r].Free()))
			}
			e[r].Abandon()
		}
	})
	return e, xp, errs
}

// usedFrom moves bytes of many lengths to and from a member's part, looks at them in its memory, and has it do an atomic.
func usedFrom(t *testing.T, e *Engine, to *Remote, there mem.Range) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{8, 300, 5000, 70_000, 300_000} {
		src, back, off := memoryOf(n, 0), memoryOf(n, 0), 64+rng.IntN(there.Bytes-64-n)
		fill(src, rng)
		require.NoError(t, errors.Join(e.Put(to, off, src), e.Flush(to)), "%d bytes", n)
		require.Equal(t, src.Data(), there.Slice(off, n).Data(), "%d bytes", n)
		require.NoError(t, e.Get(to, off, back), "%d bytes", n)
		require.Equal(t, src.Data(), back.Data(), "%d bytes", n)
	}
	before := there.Slice(0, 8).Bits()
	old, err := e.Atomic(atom.Sum, atom.ElemOf[uint64](), to, 0, 5, 0)
	require.NoError(t, err)
	require.Equal(t, before, old)
	require.Equal(t, before+5, there.Slice(0, 8).Bits())
}

// TestExposedBeyondALimitThatNobodyKnew: over a NIC that has not told how much it may register, one member's memory is refused. All get
// the exposure, that member's part is reached through its CPU and the others' as ever.
func TestExposedBeyondALimitThatNobodyKnew(t *testing.T) {
	const most = 16 << 20
	for _, name := range []string{"soft", "loopback"} {
		t.Run(name, func(t *testing.T) {
			fabric := transporttest.NewFabric(3, transporttest.FabricConfig{MaxPinned: most, Untold: true})
			// On the heap, so that the race detector sees what the queues order.
			queues, domains := shm.NewGroup(3, shm.Config{What: "queues of the soft NIC"}), make([]transport.Domain, 3)
			for r := range domains {
				provider := fabric.Provider(r)
				if name == "soft" {
					var err error
					provider, err = auto.Provider(name, auto.Config{
						MaxPinned: most, SoftMapper: func(transport.Config) (transport.Mapper, error) { return queues[r], nil },
					})
					require.NoError(t, err)
				}
				d, err := provider.Open(t.Context(), transport.Config{
					Rank: r, Size: 3, Job: t.Name(), Secret: []byte(t.Name()), Sched: sched.Goroutine(3),
				})
				require.NoError(t, err)
				domains[r] = secretive{d}
			}
			e, xp, errs := allocateOn(t, domains, func(rank int) int { return 2<<20 + rank/2*most })
			require.NoError(t, errors.Join(errs...))
			for r := range xp {
				require.True(t, xp[r].Bare(), "rank %d", r)
				for m := range xp[r].Of {
					require.Equal(t, m == 2, xp[r].Of[m].hosed != nil, "rank %d, member %d", r, m)
				}
			}
			usedFrom(t, e[0], &xp[0].Of[2], xp[2].Local)
			usedFrom(t, e[2], &xp[2].Of[2], xp[2].Local)
			require.Positive(t, e[0].Stats()[PathMessage].Ops)
			require.Positive(t, e[0].Stats()[PathLease].Ops)
			before := e[0].Stats()[PathMessage].Ops
			usedFrom(t, e[0], &xp[0].Of[1], xp[1].Local)
			require.Equal(t, before, e[0].Stats()[PathMessage].Ops, "a part that is registered needs no messages for puts and gets")
		})
	}
}

// TestBudgetsOfSome: a member whose NIC tells its limit would offer buckets; another's knows of none, and cannot ask for any. So all
// do without.
func TestBudgetsOfSome(t *testing.T) {
	fabric := transporttest.NewFabric(2, transporttest.FabricConfig{MaxPinned: 16 << 20})
	domains := make([]transport.Domain, 2)
	for r := range domains {
		d, err := fabric.Provider(r).Open(t.Context(), transport.Config{Rank: r, Size: 2, Job: t.Name(), Sched: sched.Goroutine(2)})
		require.NoError(t, err)
		if domains[r] = d; r == 1 {
			domains[r] = secretive{d}
		}
	}
	e, xp, errs := allocateOn(t, domains, func(int) int { return 20 << 20 })
	require.NoError(t, errors.Join(errs...))
	for r := range xp {
		require.True(t, xp[r].Bare())
		usedFrom(t, e[r], &xp[r].Of[1-r], xp[1-r].Local)
	}
}

// TestNoWayRoundALimit: a NIC without messages cannot do without registration, and all members learn who could not and why.
func TestNoWayRoundALimit(t *testing.T) {
	fabric := transporttest.NewFabric(2, transporttest.FabricConfig{MaxPinned: 8 << 20, Untold: true, NoSends: true})
	domains := make([]transport.Domain, 2)
	for r := range domains {
		d, err := fabric.Provider(r).Open(t.Context(), transport.Config{Rank: r, Size: 2, Job: t.Name(), Sched: sched.Goroutine(2)})
		require.NoError(t, err)
		domains[r] = d
	}
	_, _, errs := allocateOn(t, domains, func(rank int) int { return 1<<20 + rank<<24 })
	for _, err := range errs {
		require.ErrorIs(t, err, transport.ErrLimit)
	}
	var who *transport.OpError
	require.ErrorAs(t, errs[0], &who)
	require.Equal(t, 1, who.Rank)
}
