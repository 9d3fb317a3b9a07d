package proto

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// TestFetchesCrossTogether: the only atomic in flight sets out at once, those behind it in one Post, and none is held when
// somebody waits.
func TestFetchesCrossTogether(t *testing.T) {
	var count *posts
	tm := newTeam(t, 2, transporttest.FabricConfig{Jitter: time.Millisecond}, func(d transport.Domain) transport.Domain { count = &posts{Domain: d}; return count })
	e, to := tm.e[0], &tm.of[0][1]
	olds := mem.Of(make([]uint64, 1+nic.Batch))
	hs := make([]Handle, 1+nic.Batch)
	best, next := int64(nic.Batch), uint64(0)
	for range 100 { // a poll in between, by whoever serves the NIC, may send some earlier
		calls, ops := count.calls.Load(), count.ops.Load()
		for i := range hs {
			h, err := e.AtomicNB(atom.Sum, atom.Word64(), to, 8, 1, 0, olds.Slice(8*i, 8))
			require.NoError(t, err)
			if i == 0 && e.nic().HeldBack() != 0 {
				t.Fatal("the only one is held")
			}
			hs[i] = h
		}
		for i, h := range hs {
			require.NoError(t, h.Wait(context.Background()))
			require.GreaterOrEqual(t, olds.Slice(8*i, 8).Bits(), next)
			require.Less(t, olds.Slice(8*i, 8).Bits(), next+uint64(len(hs)))
		}
		next += uint64(len(hs))
		best = min(best, count.since(t, calls, ops, int64(len(hs))))
		require.Eventually(t, e.nic().Idle, time.Minute, time.Microsecond)
	}
	require.EqualValues(t, 2, best, "posts")
}

// TestFetchesOverBreaks breaks a connection under atomics in flight, by the NIC and by messages: each is done once, and its old
// value arrives.
func TestFetchesOverBreaks(t *testing.T) {
	for name, c := range map[string]transporttest.FabricConfig{
		"roomy": {}, "late": {Jitter: 20 * time.Microsecond, Seed: 1}, "narrow": {MaxPost: 3}, "not the CPU's": {NotCPU: true},
	} {
		t.Run(name, func(t *testing.T) {
			var cutter *cutting
			tm := newTeam(t, 2, c, func(d transport.Domain) transport.Domain { cutter = newCutting(d); return cutter })
			e, to := tm.e[0], &tm.of[0][1]
			const rounds, flights = 8, 20
			sums, xors := mem.Of(make([]uint64, flights)), mem.Of(make([]uint32, flights))
			narrow := atom.ElemOf[uint32]()
			var xor uint32
			for round := range uint64(rounds) {
				hs := make([]Handle, 0, 2*flights)
				for i := range flights {
					h, err := e.AtomicNB(atom.Sum, atom.Word64(), to, 8, 1, 0, sums.Slice(8*i, 8))
					require.NoError(t, err)
					k, err := e.AtomicNB(atom.Xor, narrow, to, 20, 1<<i, 0, xors.Slice(4*i, 4))
					require.NoError(t, err)
					if hs = append(hs, h, k); i == 7 {
						require.NoError(t, cutter.cut(1))
					}
				}
				seen := map[uint64]bool{}
				for _, h := range hs {
					require.NoError(t, h.Wait(context.Background()))
				}
				for i := range flights {
					seen[sums.Slice(8*i, 8).Bits()-round*flights] = true
					require.Equal(t, xor>>i&1, uint32(xors.Slice(4*i, 4).Bits())>>i&1, "bit %d before round %d", i, round)
				}
				require.Len(t, seen, flights)
				require.True(t, seen[0] && seen[flights-1])
				xor ^= 1<<flights - 1
			}
			require.NoError(t, e.Flush(to))
		})
	}
}

// TestFailedFetchIsReportedOnce (N2): by whoever waits for it, or by the next flush if nobody does.
func TestFailedFetchIsReportedOnce(t *testing.T) {
	for name, elem := range map[string]atom.Elem{"by the NIC": atom.Word64(), "by message": atom.ElemOf[uint32]()} {
		t.Run(name, func(t *testing.T) {
			tm := newTeam(t, 2, transporttest.FabricConfig{}, nil)
			e, to := tm.e[0], &tm.of[0][1]
			bad := *to
			bad.rkey++
			old := mem.Of(make([]uint64, 1)).Slice(0, elem.Bytes)
			old.SetBits(77)
			h, err := e.AtomicNB(atom.Sum, elem, &bad, 0, 1, 0, old)
			require.NoError(t, err)
			require.ErrorIs(t, h.Wait(context.Background()), nic.ErrRefused)
			require.NoError(t, h.Wait(context.Background()), "once")
			require.NoError(t, e.Flush(to), "once")
			_, err = e.AtomicNB(atom.Sum, elem, &bad, 0, 1, 0, old)
			require.NoError(t, err)
			require.ErrorIs(t, e.Flush(to), nic.ErrRefused)
			require.NoError(t, e.Flush(to), "once")
			require.EqualValues(t, 77, old.Bits())
			require.Eventually(t, e.nic().Idle, time.Minute, time.Microsecond)
		})
	}
}

// TestFetchInDoubt: an atomic of which nobody knows whether it was done is not done again, and whoever waits for it is told.
func TestFetchInDoubt(t *testing.T) {
	for _, at := range []int{1, 5, 14} {
		var cutter *cutting
		tm := newTeam(t, 2, transporttest.FabricConfig{}, func(d transport.Domain) transport.Domain {
			cutter = newCutting(transporttest.Faulty(d, transporttest.FaultPlan{BreakAt: at}))
			return cutter
		})
		e, to := tm.e[0], &tm.of[0][1]
		olds := mem.Of(make([]uint64, 24))
		hs := make([]Handle, 24)
		for i := range hs {
			var err error
			hs[i], err = e.AtomicNB(atom.Sum, atom.Word64(), to, 0, 1, 0, olds.Slice(8*i, 8))
			require.NoError(t, err)
		}
		done, seen := uint64(0), map[uint64]bool{}
		for i, h := range hs {
			if err := h.Wait(context.Background()); err != nil {
				require.ErrorIs(t, err, nic.ErrConnectionLost)
				continue
			}
			done++
			seen[olds.Slice(8*i, 8).Bits()] = true
		}
		require.Len(t, seen, int(done), "an old value twice")
		sum, err := e.Load64(to, 0)
		require.NoError(t, err)
		require.GreaterOrEqual(t, sum, done)
		require.LessOrEqual(t, sum, uint64(len(hs)))
	}
}

// TestListsOnTheirWay: a message of a list is refused as a whole, and a malformed one too.
func TestListsOnTheirWay(t *testing.T) {
	tm := newTeam(t, 2, transporttest.FabricConfig{}, nil)
	e, to := tm.e[0], &tm.of[0][1]
	bad := *to
	bad.room += 8 // a rank that lies to itself about the target's memory
	src, old := mem.Of([]uint32{1, 1, 1}), mem.Of(make([]uint32, 3))
	at := func(i int) (*Remote, int) { return &bad, []int{0, 1 << 16, 4}[i] }
	require.ErrorIs(t, e.AccumulateAt("gather", atom.Sum, atom.ElemOf[uint32](), 3, at, src, old), nic.ErrRefused)
	require.NoError(t, e.AccumulateAt("scatter", atom.Sum, atom.ElemOf[uint32](), 3, at, src, mem.Range{}))
	require.ErrorIs(t, e.Flush(to), nic.ErrRefused)
	v, err := e.Load64(to, 0)
	require.NoError(t, err)
	require.Zero(t, v, "part of it was done")
	outside := func(int) (*Remote, int) { return to, 1 << 16 }
	require.ErrorIs(t, e.AccumulateAt("gather", atom.Sum, atom.ElemOf[uint32](), 3, outside, src, old), errBounds)
}
