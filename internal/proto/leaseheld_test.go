package proto

import (
	"errors"
	"math/rand/v2"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/am"
	"gopgas/internal/flight"
	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/internal/superpipe"
	"gopgas/regmgr"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// keep has the cache of an engine hold a registration of memory that nothing uses.
func keep(t *testing.T, e *Engine, r mem.Range) {
	var h regmgr.Hold
	require.NoError(t, e.nic().direct.reg.Acquire(&h, regmgr.Request{Mem: r}))
	e.nic().direct.reg.Release(&h)
}

// inUse is how much of a rank's registered memory something uses, or is lent to others.
func inUse(e *Engine) int64 {
	s, _, _ := e.Registered()
	return s.Bytes - s.Idle
}

// unheld requires that no more than so much of a rank's registered memory is in use in the end: what garbage collections have shown to be
// old is neither idle nor gone while it is given up.
func unheld(t *testing.T, e *Engine, lent int64) {
	require.Eventually(t, func() bool { return inUse(e) == lent }, time.Minute, time.Millisecond)
}

// TestLeasedFromWhereItLies: the source of a transfer through a lease is not copied where it is registered: a put's by this rank, a get's by
// its owner, which exposes it. All bytes arrive in both ways in which a target learns of them.
func TestLeasedFromWhereItLies(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a registration of Go's memory survives two collections
	const room = 700_000
	for name, c := range map[string]transporttest.FabricConfig{
		"immediates": {}, "order": {InOrder: true}, "narrow": {MaxPost: 2, MaxMessage: 30_000}, "narrow, order": {InOrder: true, MaxPost: 2, MaxMessage: 9_000},
		"late, order": leased["late, order"],
	} {
		t.Run(name, func(t *testing.T) {
			tm := newTeamWith(t, 2, room, c, nil, forcedBulk(t, "lease", 1000))
			e, to := tm.e[0], &tm.of[0][1]
			rng := rand.New(rand.NewPCG(5, 6))
			all, want := memoryOf(room, 0), make([]byte, room)
			require.True(t, e.nic().flights.Ready())
			lent := inUse(e)
			keep(t, e, all)
			moved := uint64(0)
			for _, n := range []int{1000, 4087, 4088, 4089, 8177, 65_536, 131_072, 400_001} {
				at, off := rng.IntN(room-n), rng.IntN(room-n)
				src, back := all.Slice(at, n), memoryOf(n, 3)
				fill(src, rng)
				copy(want[off:], src.Data())
				require.NoError(t, errors.Join(e.Put(to, off, src), e.Flush(to)))
				require.Equal(t, want, tm.mem[1].Data(), "%d bytes", n)
				clear(src.Data()) // it is the caller's again
				require.NoError(t, e.Get(to, off, back))
				require.Equal(t, want[off:off+n], back.Data(), "%d bytes", n)
				moved += uint64(n)
				tm.settled(t)
			}
			for r := range tm.e {
				copied, _, gathered := tm.e[r].nic().flights.Moved()
				require.Equal(t, moved, gathered, "rank %d", r)
				require.Zero(t, copied, "rank %d", r)
			}
			unheld(t, e, lent)
			src := memoryOf(50_000, 1) // this one is not registered
			fill(src, rng)
			require.NoError(t, errors.Join(e.Put(to, 0, src), e.Flush(to)))
			require.Equal(t, src.Data(), tm.mem[1].Slice(0, src.Bytes).Data())
			tm.settled(t)
			copied, direct, gathered := e.nic().flights.Moved()
			require.EqualValues(t, src.Bytes, copied)
			require.Equal(t, moved, gathered)
			require.Equal(t, moved, direct)
		})
	}
}

// TestHeldByLeases: the registration of a source is given back however the transfer ends: refused, without a lease, with the target's
// death.
func TestHeldByLeases(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	const n = 1 << 20
	for _, name := range []string{"immediates", "order"} {
		t.Run(name, func(t *testing.T) {
			c := leased[name]
			c.Jitter = 20 * time.Microsecond
			tm := newTeamWith(t, 3, n, c, nil, forcedBulk(t, "lease", 1000))
			e, to := tm.e[0], &tm.of[0][1]
			src := filled(n)
			keep(t, e, src)

			bad := *to
			bad.rkey++
			require.ErrorIs(t, e.Put(&bad, 0, src), nic.ErrRefused)
			unheld(t, e, 0)

			target := tm.e[1].nic().flights
			require.True(t, target.Ready())
			for tag := range uint64(flight.MostLeases / 2) { // all that one origin gets
				var out [flight.ReplyBytes]byte
				offer := superpipe.Offer{Bytes: 8, Tag: 1000 + tag}
				_, ok := target.Serve(flight.ToPut, am.Request{Payload: offer.Append(nil)}, mem.Of(make([]byte, 8)), out[:])
				require.True(t, ok)
				require.NotZero(t, out[0])
			}
			require.NoError(t, errors.Join(e.Put(to, 0, src), e.Flush(to)), "by message")
			require.Equal(t, src.Data(), tm.mem[1].Data())
			_, _, gathered := e.nic().flights.Moved()
			require.Zero(t, gathered)
			unheld(t, e, 0)

			to = &tm.of[0][2]
			begun := make(chan struct{})
			go func() {
				<-begun
				tm.fabric.Kill(2)
			}()
			var err error
			for i := 0; err == nil; i++ {
				if i == 2 {
					close(begun)
				}
				err = errors.Join(e.Put(to, 0, src), e.Flush(to))
			}
			require.ErrorIs(t, err, transport.ErrPeerGone)
			_, _, gathered = e.nic().flights.Moved()
			require.Positive(t, gathered)
			unheld(t, e, 0)
		})
	}
}
