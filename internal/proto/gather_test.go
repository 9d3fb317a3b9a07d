package proto

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/eager"
	"gopgas/internal/atom"
	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// onHeap is memory that is on no stack, whoever uses it: what lies there is copied.
//
//go:noinline
func onHeap(bytes int) mem.Range { return mem.Of(make([]uint64, (bytes+7)/8)).Slice(0, bytes) }

// TestGatherByUse: an accumulate's source that is used often is gathered where a flush follows or the answer is waited for, and copied
// where nobody waits; what it does is the same.
func TestGatherByUse(t *testing.T) {
	const n = 2048 // bytes
	tm := newTeamWith(t, 2, n, transporttest.FabricConfig{}, nil, func(c *Config) { c.Eager.Percent = 100 })
	e, to := tm.e[0], &tm.of[0][1]
	s := &e.nic().small
	e.nic().gauge.begun.Store(true)
	costs := eager.Costs{{Bytes: 64, Copy: 10, Register: 1e4, Lookup: 100, Wire: 1e6}, {Bytes: n, Copy: 1100, Register: 1e4, Lookup: 100, Wire: 1e6}}
	c, err := eager.New(eager.Config{Costs: costs, Percent: 100, Limits: eager.Limits{Inline: 128, Slot: 64 << 10}})
	require.NoError(t, err)
	s.decide(c)
	f64 := atom.ElemOf[float64]()
	src, old := onHeap(n), onHeap(n)
	total := 0.0
	add := func(times int, flush bool) {
		for i := range times {
			for k := range n / 8 {
				src.Slice(8*k, 8).SetBits(math.Float64bits(float64(i + 1)))
			}
			total += float64(i + 1)
			require.NoError(t, e.Accumulate(atom.Sum, f64, to, 0, src))
			if flush {
				require.NoError(t, e.Flush(to))
			}
		}
	}
	ops := func(p Path) uint64 { return e.Stats()[p].Ops }
	add(10, true)
	require.Zero(t, ops(PathGather), "11 uses repay a registration")
	add(20, true)
	require.EqualValues(t, 30, ops(PathGather)+ops(PathMessage))
	require.GreaterOrEqual(t, ops(PathGather), uint64(17), "those that a flush is known to follow")
	before := ops(PathGather)
	add(40, false)
	require.Equal(t, before, ops(PathGather))
	require.NoError(t, e.Flush(to))
	for range 5 {
		require.NoError(t, e.GetAccumulate(atom.Sum, f64, to, 0, src, old))
		require.InDelta(t, total, math.Float64frombits(old.Slice(n-8, 8).Bits()), 0)
		total += 40
	}
	require.Equal(t, before+5, ops(PathGather))
	require.NoError(t, e.Get(to, 0, old))
	for k := range n / 8 {
		require.InDelta(t, total, math.Float64frombits(old.Slice(8*k, 8).Bits()), 0)
	}
	st, ok := e.Bypasses()
	require.True(t, ok)
	require.Equal(t, 2, st.Buffers, "the one table counts them, and the get's destination")
	r, _, _ := e.Registered()
	require.EqualValues(t, 1, r.Registrations)
	require.Eventually(t, e.nic().Idle, time.Minute, time.Microsecond)
}

// forcedPast makes two engines past the copy, over a NIC like c.
func forcedPast(t *testing.T, bytes int, c transporttest.FabricConfig) *team {
	return newTeamWith(t, 2, bytes, c, nil, func(c *Config) { c.Eager.Mode = eager.OnlyBypass })
}

// TestGatherInParts: what is longer than a message is gathered in several, from memory that is registered once; old may be src.
func TestGatherInParts(t *testing.T) {
	const n = 40_000 // bytes
	tm := forcedPast(t, n, transporttest.FabricConfig{})
	e, to := tm.e[0], &tm.of[0][1]
	u32 := atom.ElemOf[uint32]()
	src := onHeap(n)
	for k := range n / 4 {
		src.Slice(4*k, 4).SetBits(uint64(k + 1))
	}
	require.NoError(t, e.Accumulate(atom.Sum, u32, to, 0, src))
	require.NoError(t, e.Accumulate(atom.Sum, u32, to, 0, src))
	require.NoError(t, e.Flush(to))
	require.NoError(t, e.GetAccumulate(atom.Max, u32, to, 0, src, src))
	for k := range n / 4 {
		require.EqualValues(t, 2*(k+1), src.Slice(4*k, 4).Bits())
	}
	st := e.Stats()
	require.EqualValues(t, 3, st[PathGather].Ops)
	require.EqualValues(t, 3*n, st[PathGather].Bytes)
	require.Zero(t, st[PathMessage].Ops)
	r, _, _ := e.Registered()
	require.EqualValues(t, 1, r.Registrations)
	unheld(t, e, 0)
	require.Eventually(t, e.nic().Idle, time.Minute, time.Microsecond)
	if !raceEnabled {
		part := src.Slice(0, 2000)
		require.Less(t, testing.AllocsPerRun(50, func() {
			_ = e.Accumulate(atom.Sum, u32, to, 0, part)
			_ = e.GetAccumulate(atom.Sum, u32, to, 0, part, part)
		}), 1.0)
	}
}

// TestNoGather: where the NIC takes a message from one place, or will not register the memory, it is copied.
func TestNoGather(t *testing.T) {
	f64 := atom.ElemOf[float64]()
	for _, c := range []struct {
		name   string
		fabric transporttest.FabricConfig
		budget int64
	}{
		{"one piece", transporttest.FabricConfig{MaxSGE: 1}, 0},
		{"no room", transporttest.FabricConfig{}, 4096},
	} {
		t.Run(c.name, func(t *testing.T) {
			const n = 20_000
			tm := newTeamWith(t, 2, n, c.fabric, nil, func(to *Config) {
				to.Eager.Mode, to.Registration.Bytes = eager.OnlyBypass, c.budget
			})
			e, to := tm.e[0], &tm.of[0][1]
			src, old := onHeap(n), onHeap(n)
			src.Slice(n-8, 8).SetBits(math.Float64bits(3))
			require.NoError(t, e.Accumulate(atom.Sum, f64, to, 0, src))
			require.NoError(t, e.GetAccumulate(atom.Sum, f64, to, 0, src, old))
			require.NoError(t, e.Flush(to))
			require.InDelta(t, 3, math.Float64frombits(old.Slice(n-8, 8).Bits()), 0)
			require.InDelta(t, 6, math.Float64frombits(tm.mem[1].Slice(n-8, 8).Bits()), 0)
			require.Zero(t, e.Stats()[PathGather].Ops)
			require.EqualValues(t, 2, e.Stats()[PathMessage].Ops)
		})
	}
}

// TestGatherRefused: an error of a request whose source was lent is told once, and nothing stays held.
func TestGatherRefused(t *testing.T) {
	tm := forcedPast(t, 1<<16, transporttest.FabricConfig{})
	e, to := tm.e[0], &tm.of[0][1]
	bad := *to
	bad.rkey++
	src := onHeap(8000)
	f64 := atom.ElemOf[float64]()
	require.Error(t, e.Accumulate(atom.Sum, f64, &bad, 0, src))
	require.NoError(t, e.Flush(to), "once")
	require.Error(t, e.GetAccumulate(atom.Sum, f64, &bad, 0, src, src))
	unheld(t, e, 0)
	require.Eventually(t, e.nic().Idle, time.Minute, time.Microsecond)
}

// TestGatherToBareMemory: puts to memory that only its owner's CPU reaches, blocking and not.
func TestGatherToBareMemory(t *testing.T) {
	const most = 16 << 20
	fabric := transporttest.NewFabric(2, transporttest.FabricConfig{MaxPinned: most, Untold: true})
	domains := make([]transport.Domain, 2)
	for r := range domains {
		d, err := fabric.Provider(r).Open(t.Context(), transport.Config{Rank: r, Size: 2, Job: t.Name(), Sched: sched.Goroutine(2)})
		require.NoError(t, err)
		domains[r] = secretive{d}
	}
	e, xp, errs := allocateOn(t, domains, func(rank int) int { return 1<<20 + rank*most })
	require.NoError(t, errors.Join(errs...))
	to, there := &xp[0].Of[1], xp[1].Local
	require.True(t, to.hosed.Bare())
	e[0].nic().small.how.Mode = eager.OnlyBypass
	usedFrom(t, e[0], to, there)
	require.Positive(t, e[0].Stats()[PathGather].Ops)
	for _, n := range []int{3, 4032, 9000} {
		src := filled(n&^7).Slice(0, n&^7)
		if n < 8 {
			src = filled(8).Slice(0, n)
		}
		h, err := e[0].PutNB(to, 128, src)
		require.NoError(t, err)
		require.NoError(t, h.Wait(context.Background()))
		require.NoError(t, e[0].Flush(to))
		require.Equal(t, src.Data(), there.Slice(128, src.Bytes).Data())
	}
	r, _, _ := e[0].Registered()
	require.Eventually(t, e[0].nic().Idle, time.Minute, time.Microsecond)
	require.Positive(t, r.Registrations)
}
