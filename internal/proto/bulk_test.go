package proto

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/eager"
	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/internal/prices"
	"gopgas/internal/selector"
	"gopgas/internal/superpipe"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// forcedBulk has all transfers from least bytes on travel as the name says.
func forcedBulk(t *testing.T, name string, least int) func(*Config) {
	b, err := ParseBulk(name)
	require.NoError(t, err)
	return func(c *Config) { c.Bulk, c.Registration.Threshold = b, least }
}

// memoryOf returns n bytes on the heap that begin shift bytes after a word.
func memoryOf(n, shift int) mem.Range { return mem.Of(make([]uint64, (n+shift+15)/8)).Slice(shift, n) }

// fill writes a payload that is random, or full of what superpipe's flags look like.
func fill(r mem.Range, rng *rand.Rand) {
	b := r.Data()
	flags := rng.IntN(2) == 0
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	for i := 0; flags && i+8 <= len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], uint64(1+rng.IntN(4))<<25|uint64(i/4096)<<1|uint64(rng.IntN(2)))
	}
}

// TestBulk moves odd lengths at odd places under every way, with NICs that are good, slow and narrow, and looks at the bytes
// around them.
func TestBulk(t *testing.T) {
	const room = 3 << 20
	fabrics := map[string]transporttest.FabricConfig{
		"good": {}, "late": {Jitter: 20 * time.Microsecond, Seed: 3}, "narrow": {MaxPost: 2, MaxMessage: 30_000},
		"in order": {InOrder: true, MaxPinned: 64 << 20},
	}
	for fabric, c := range fabrics {
		for _, how := range []string{"auto", "superpipe", "copy", "flat", "onthefly", "pipelined"} {
			t.Run(fabric+" "+how, func(t *testing.T) {
				tm := newTeamWith(t, 2, room, c, nil, forcedBulk(t, how, 1000))
				e, to := tm.e[0], &tm.of[0][1]
				rng := rand.New(rand.NewPCG(11, 12))
				want := make([]byte, room)
				there := tm.mem[1]
				for range 12 {
					n := 1000 + rng.IntN(1<<(10+rng.IntN(11)))
					off, shift := rng.IntN(room-n), rng.IntN(16)
					src, back := memoryOf(n, shift), memoryOf(n, rng.IntN(16))
					fill(src, rng)
					copy(want[off:], src.Data())
					if rng.IntN(2) == 0 {
						require.NoError(t, e.Put(to, off, src))
						clear(src.Data()) // it is the caller's again
					} else {
						h, err := e.PutNB(to, off, src)
						require.NoError(t, err)
						require.NoError(t, h.Wait(context.Background()))
						clear(src.Data())
					}
					require.NoError(t, e.Flush(to))
					require.Equal(t, want, there.Data())
					if rng.IntN(2) == 0 {
						require.NoError(t, e.Get(to, off, back))
					} else {
						h, err := e.GetNB(to, off, back)
						require.NoError(t, err)
						require.NoError(t, h.Wait(context.Background()))
					}
					require.Equal(t, want[off:off+n], back.Data())
				}
				if how != "auto" {
					require.EqualValues(t, 24, e.Stats()[PathPipe].Ops)
				} else {
					require.NoError(t, e.nic().measureNow(), "which has begun beside")
				}
				require.Eventually(t, e.nic().Idle, time.Minute, time.Microsecond, "whoever polls counts a piece as done behind its handle")
				slotsBack(t, e)
			})
		}
	}
}

// TestBulkTogether has several goroutines move large and small memory to one rank at once, more than there are pipes,
// without a wait in between.
func TestBulkTogether(t *testing.T) {
	const n, each, workers = 40_000, 20, 5
	tm := newTeamWith(t, 2, n*each*workers, transporttest.FabricConfig{MaxMessage: 9_000}, nil, forcedBulk(t, "superpipe", 1000))
	e, to := tm.e[0], &tm.of[0][1]
	want := make([]byte, n*each*workers)
	var wg sync.WaitGroup
	errs := make([]error, workers)
	for w := range workers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(5, uint64(w)))
			for i := range each {
				off := (w*each + i) * n
				src := memoryOf(n, i%16)
				fill(src, rng)
				copy(want[off:], src.Data())
				_, err := e.PutNB(to, off, src)
				errs[w] = errors.Join(errs[w], err)
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	require.NoError(t, e.Flush(to))
	require.Equal(t, want, tm.mem[1].Data())
	require.Zero(t, e.nic().flights.Levels().Flights)
}

// TestBulkFollowsNobody: a put in a pipe comes to its end though nobody waits or calls.
func TestBulkFollowsNobody(t *testing.T) {
	const n = 1 << 20
	tm := newTeamWith(t, 2, n, transporttest.FabricConfig{MaxMessage: 20_000}, nil, forcedBulk(t, "superpipe", 1000))
	e, to := tm.e[0], &tm.of[0][1]
	src := filled(n)
	_, err := e.PutNB(to, 0, src)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !e.nic().Pending(1) }, time.Minute, time.Millisecond)
	require.NoError(t, e.Flush(to))
	require.Equal(t, src.Data(), tm.mem[1].Data())
}

// TestOrderWaitsForPipes: what is stored after an Order is not seen before the put in a pipe.
func TestOrderWaitsForPipes(t *testing.T) {
	const n = 1 << 20
	tm := newTeamWith(t, 2, n+8, transporttest.FabricConfig{MaxMessage: 20_000}, nil, forcedBulk(t, "superpipe", 1000))
	e, to := tm.e[0], &tm.of[0][1]
	for i := range 10 {
		src := filled(n)
		src.Data()[n-1] = byte(i + 1)
		require.NoError(t, e.Put(to, 0, src))
		require.NoError(t, e.Store64(to, n, uint64(i+1)))
		require.Eventually(t, func() bool { return tm.mem[1].Word64(n).Load() == uint64(i+1) }, time.Minute, 10*time.Microsecond)
		require.Equal(t, byte(i+1), tm.mem[1].Data()[n-1])
	}
}

// TestBulkMends breaks the connection under large transfers, over and over: all of it arrives.
func TestBulkMends(t *testing.T) {
	const n = 300_001
	for name, c := range map[string]transporttest.FabricConfig{
		"roomy": {MaxMessage: 20_000}, "late": {MaxMessage: 20_000, Jitter: 50 * time.Microsecond, Seed: 1}, "narrow": {MaxMessage: 20_000, MaxPost: 2},
	} {
		t.Run(name, func(t *testing.T) {
			var cutter *cutting
			tm := newTeamWith(t, 2, n, c, func(d transport.Domain) transport.Domain { cutter = newCutting(d); return cutter },
				forcedBulk(t, "superpipe", 1000))
			e, to := tm.e[0], &tm.of[0][1]
			rng := rand.New(rand.NewPCG(7, 8))
			src, back := memoryOf(n, 3), memoryOf(n, 5)
			for range 15 {
				fill(src, rng)
				// A chunk that is cut off twice is an error, so the connection works before each transfer that is cut.
				works := func() {
					_, err := e.Load64(to, 0)
					require.NoError(t, err)
				}
				works()
				h, err := e.PutNB(to, 0, src)
				require.NoError(t, err)
				require.NoError(t, cutter.cut(1))
				require.NoError(t, h.Wait(context.Background()))
				require.NoError(t, e.Flush(to))
				require.Equal(t, src.Data(), tm.mem[1].Data())
				works()
				h, err = e.GetNB(to, 0, back)
				require.NoError(t, err)
				require.NoError(t, cutter.cut(1))
				require.NoError(t, h.Wait(context.Background()))
				require.Equal(t, src.Data(), back.Data())
			}
			slotsBack(t, e)
		})
	}
}

// TestPeerDiesMidPipe: puts and gets in pipes to a rank that dies end in its loss, with all slots back, and other ranks'
// go on.
func TestPeerDiesMidPipe(t *testing.T) {
	const n = 4 << 20
	c := transporttest.FabricConfig{MaxMessage: 10_000, Jitter: 100 * time.Microsecond}
	tm := newTeamWith(t, 3, n, c, nil, forcedBulk(t, "superpipe", 1000))
	e := tm.e[0]
	src, back := filled(n), filled(n)
	put, err := e.PutNB(&tm.of[0][1], 0, src)
	require.NoError(t, err)
	get, err := e.GetNB(&tm.of[0][1], 0, back)
	require.NoError(t, err)
	other, err := e.PutNB(&tm.of[0][2], 0, src)
	require.NoError(t, err)
	tm.fabric.Kill(1)
	require.ErrorIs(t, errors.Join(put.Wait(context.Background()), e.Flush(&tm.of[0][1])), transport.ErrPeerGone)
	require.ErrorIs(t, get.Wait(context.Background()), transport.ErrPeerGone)
	require.ErrorIs(t, e.Put(&tm.of[0][1], 0, src), transport.ErrPeerGone)
	require.NoError(t, other.Wait(context.Background()))
	require.NoError(t, e.Flush(&tm.of[0][2]))
	require.Equal(t, src.Data(), tm.mem[2].Data())
	require.Eventually(t, func() bool { return e.nic().flights.Levels().Flights == 0 }, time.Minute, time.Millisecond)
	slotsBack(t, e)
}

// TestOwnEndMidPipe: what waits for a pipe when its own NIC closes ends in an error.
func TestOwnEndMidPipe(t *testing.T) {
	const n = 4 << 20
	c := transporttest.FabricConfig{MaxMessage: 10_000, Jitter: 100 * time.Microsecond}
	tm := newTeamWith(t, 2, n, c, nil, forcedBulk(t, "superpipe", 1000))
	e := tm.e[0]
	h, err := e.GetNB(&tm.of[0][1], 0, filled(n))
	require.NoError(t, err)
	e.Abandon()
	require.ErrorIs(t, h.Wait(context.Background()), transport.ErrClosed)
}

// TestRefusedChunk (N2): a put into a pipe that the target refuses fails once, and what is behind it does not.
func TestRefusedChunk(t *testing.T) {
	const n = 1 << 20
	tm := newTeamWith(t, 2, n, transporttest.FabricConfig{MaxMessage: 20_000}, nil, forcedBulk(t, "superpipe", 1000))
	e := tm.e[0]
	bad, good := tm.of[0][1], &tm.of[0][1]
	bad.rkey++
	require.ErrorIs(t, errors.Join(e.Put(&bad, 0, filled(n)), e.Flush(good)), nic.ErrRefused)
	require.NoError(t, e.Flush(good), "once")
	require.ErrorIs(t, e.Get(&bad, 0, filled(n)), nic.ErrRefused)
	src := filled(n)
	require.NoError(t, e.Put(good, 0, src))
	require.NoError(t, e.Flush(good))
	require.Equal(t, src.Data(), tm.mem[1].Data())
	slotsBack(t, e)
}

// TestHybrid: the head is copied while the tail is being registered; the registration stays, and the second time nothing is
// copied.
func TestHybrid(t *testing.T) {
	const n = 4<<20 + 13
	tm := newTeamWith(t, 2, n, transporttest.FabricConfig{MaxMessage: 70_000}, nil, forcedBulk(t, "auto", 1000))
	e, to := tm.e[0], &tm.of[0][1]
	m := e.nic()
	// A machine on which the helper pays: registering takes longer than a call and less than a copy.
	m.gauge.begun.Store(true)
	slow := m.prices().Selector.Machine()
	slow.Model.RegLatency, slow.Model.Reg, slow.Model.Net = 100e-6, 20e9, 4e9
	slow.Idle = true
	m.gauge.prices.Store(prices.New(slow.Selector(0)))
	require.Equal(t, selector.Hybrid, selector.Select(selector.Query{Bytes: n, Waited: true, Uses: 1}, m.prices().Selector))
	rng := rand.New(rand.NewPCG(1, 9))
	for range 3 {
		src, back := memoryOf(n, 5), memoryOf(n, 2)
		for use := range 3 {
			fill(src, rng)
			h, err := e.PutNB(to, 0, src)
			require.NoError(t, err)
			require.NoError(t, h.Wait(context.Background()))
			require.NoError(t, e.Flush(to))
			require.Equal(t, src.Data(), tm.mem[1].Data())
			h, err = e.GetNB(to, 0, back)
			require.NoError(t, err)
			require.NoError(t, h.Wait(context.Background()))
			require.Equal(t, src.Data(), back.Data())
			if use == 0 {
				require.Eventually(t, func() bool {
					s, _, _ := e.Registered()
					return s.Registrations >= 2 && m.flights.Levels().Flights == 0
				}, time.Minute, time.Millisecond)
			}
		}
	}
	require.Positive(t, e.Stats()[PathPipe].Ops)
	require.Positive(t, e.Stats()[PathDirect].Ops)
	unheld(t, e, 0)
}

// TestUnhelped: a hybrid that is forced is a superpipeline where no core is free for a helper.
func TestUnhelped(t *testing.T) {
	const n = 4 << 20
	for name, c := range map[string]struct {
		user mem.Range
		idle bool
	}{"no core": {filled(n), false}} {
		t.Run(name, func(t *testing.T) {
			tm := newTeamWith(t, 2, n, transporttest.FabricConfig{MaxMessage: 70_000}, nil, forcedBulk(t, "auto", 1000))
			e, to := tm.e[0], &tm.of[0][1]
			believe(e.nic(), func(m *selector.Machine) {
				m.Model.RegLatency, m.Model.Reg, m.Model.Net, m.Idle = 100e-6, 20e9, 4e9, c.idle
			})
			e.Force(selector.Hybrid)
			require.NoError(t, e.Put(to, 0, c.user))
			require.NoError(t, e.Flush(to))
			require.Equal(t, c.user.Data(), tm.mem[1].Data())
			s, _, _ := e.Registered()
			require.Zero(t, s.Registrations)
			p, _ := e.Pipes()
			require.EqualValues(t, n, p.Copied)
			require.Zero(t, p.Direct)
		})
	}
}

// TestSelectedByUse: what is used again is registered, what is not is piped; what lies on a stack is never either.
func TestSelectedByUse(t *testing.T) {
	const n = 1 << 20
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // uses before a collection do not count
	tm := newTeamWith(t, 2, n, transporttest.FabricConfig{}, nil, func(*Config) {})
	e, to := tm.e[0], &tm.of[0][1]
	e.nic().gauge.begun.Store(true) // by the published constants
	for range 5 {
		h, err := e.PutNB(to, 0, filled(n))
		require.NoError(t, err)
		require.NoError(t, h.Wait(context.Background()))
	}
	once := e.Stats()
	require.EqualValues(t, 5, once[PathPipe].Ops)
	require.Zero(t, once[PathDirect].Ops)
	src := filled(n) // the second time may be the last; the third time it is worth registering
	for range 5 {
		h, err := e.PutNB(to, 0, src)
		require.NoError(t, err)
		require.NoError(t, h.Wait(context.Background()))
	}
	require.EqualValues(t, 3, e.Stats()[PathDirect].Ops)
	var onStack [100_000]byte
	require.NoError(t, e.Put(to, 0, mem.Of(onStack[:])))
	require.NoError(t, e.Flush(to))
	require.EqualValues(t, 3, e.Stats()[PathDirect].Ops)
}

// TestMeasured: a NIC is measured once, beside its other work, and goes by that.
func TestMeasured(t *testing.T) {
	tm := newTeam(t, 2, transporttest.FabricConfig{}, nil)
	n := tm.e[0].nic()
	require.False(t, n.prices().Measured)
	require.NoError(t, n.measureNow())
	p := n.prices()
	require.NoError(t, p.Why)
	require.True(t, p.Measured)
	m := p.Selector.Machine().Model
	require.Positive(t, m.Net)
	require.Positive(t, m.Reg)
	require.Positive(t, m.Copy(1e5))
	require.Zero(t, n.gauge.flying.Load())
	require.NoError(t, n.measureNow())
	require.Same(t, p, n.prices())
	require.NoError(t, tm.e[0].Put(&tm.of[0][1], 0, filled(4096)))
	require.NoError(t, tm.e[0].Flush(&tm.of[0][1]))
}

// TestBypass: a buffer that is used often is registered, once its uses repay that; its contents arrive as others do.
func TestBypass(t *testing.T) {
	const n = 8192
	tm := newTeamWith(t, 2, n, transporttest.FabricConfig{}, nil, func(c *Config) { c.Eager.Percent = 100 })
	e, to := tm.e[0], &tm.of[0][1]
	s := &e.nic().small
	e.nic().gauge.begun.Store(true)
	cheap := eager.Costs{{Bytes: 64, Copy: 10, Register: 1e4, Lookup: 100, Wire: 1e6}, {Bytes: n, Copy: 1100, Register: 1e4, Lookup: 100, Wire: 1e6}}
	c, err := eager.New(eager.Config{Costs: cheap, Percent: 100, Limits: eager.Limits{Inline: 128, Slot: 64 << 10}})
	require.NoError(t, err)
	s.decide(c)
	src, back := filled(n), memoryOf(n, 0)
	for i := range 30 { // 11 uses repay a registration
		src.Data()[i] = byte(i)
		require.NoError(t, e.Put(to, 0, src))
		require.NoError(t, e.Flush(to))
		require.NoError(t, e.Get(to, 0, back))
		require.Equal(t, src.Data(), back.Data())
	}
	st, ok := e.Bypasses()
	require.True(t, ok)
	require.Equal(t, 2, st.Buffers)
	require.Equal(t, 2, st.Frequent)
	require.GreaterOrEqual(t, e.Stats()[PathBypass].Ops, uint64(35), "19 or 20 gets, and the puts that a flush follows")
	r, _, _ := e.Registered()
	require.EqualValues(t, 2, r.Registrations)
	// Puts that nobody waits for, whose call site says so, wait for nothing.
	before := e.Stats()[PathBypass].Ops
	for range 40 {
		require.NoError(t, e.Put(to, 0, src))
	}
	require.Equal(t, before, e.Stats()[PathBypass].Ops)
}

func TestParseBulk(t *testing.T) {
	for _, name := range []string{"", "auto", "register", "superpipe", "copy", "flat", "onthefly", "pipelined"} {
		_, err := ParseBulk(name)
		require.NoError(t, err, name)
		require.Contains(t, Bulks(), name)
	}
	_, err := ParseBulk("magic")
	require.ErrorContains(t, err, Bulks())
	b, err := ParseBulk("flat")
	require.NoError(t, err)
	require.Equal(t, Bulk{bulkPiped, superpipe.Flat}, b)
}
