package proto

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// freeAll frees everybody's memory, together, as a program does after a barrier.
func (tm *team) freeAll(t *testing.T) {
	t.Helper()
	var wg sync.WaitGroup
	errs := make([]error, len(tm.xp))
	for r := range tm.xp {
		wg.Go(func() { errs[r] = tm.xp[r].Free() })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
}

// tight is a NIC that cannot register the bytes of one rank together.
const (
	tightBytes = 8 << 20
	tightPins  = 4 << 20
)

// TestMendBuckets breaks the connections under puts and gets of memory that is registered in buckets, at all times: before a
// move, while it is under way, and while what it brought is in use. Everything arrives, and the buckets come back.
func TestMendBuckets(t *testing.T) {
	for name, c := range map[string]transporttest.FabricConfig{
		"roomy": {}, "late": {Jitter: 20 * time.Microsecond, Seed: 1}, "narrow": {MaxPost: 3},
	} {
		t.Run(name, func(t *testing.T) {
			c.MaxPinned = tightPins
			var cutter *cutting
			tm := newTeamOf(t, 3, tightBytes, c, func(d transport.Domain) transport.Domain { cutter = newCutting(d); return cutter })
			e := tm.e[0]
			require.NotNil(t, tm.of[0][1].hosed)
			for peer := 1; peer < 3; peer++ { // so that there is something to cut
				require.NoError(t, e.Put(&tm.of[0][peer], 0, filled(8)))
			}
			stop, cut := make(chan struct{}), make(chan error, 1)
			go func() {
				defer close(cut)
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					case <-time.After(300 * time.Microsecond):
					}
					if err := cutter.cut(1 + i%2); err != nil {
						cut <- err
						return
					}
				}
			}()
			rng := rand.New(rand.NewPCG(1, 2))
			back := mem.Of(make([]byte, 200_000))
			failed := 0
			for i := range 300 {
				to, n := &tm.of[0][1+i%2], []int{8, 600, 40_000, 200_000}[i%4]
				off := rng.IntN((tightBytes-n)/8) * 8
				src := filled(n)
				src.Data()[0] = byte(i)
				err := errors.Join(e.Put(to, off, src), e.Flush(to))
				if err == nil {
					err = e.Get(to, off, back.Slice(0, n))
				}
				if err != nil { // flushed twice: it was posted again on a connection that was cut too
					require.ErrorIs(t, err, errConnectionLost)
					failed++
					continue
				}
				require.Equal(t, src.Data(), back.Slice(0, n).Data(), "transfer %d of %d bytes at %d", i, n, off)
			}
			close(stop)
			require.NoError(t, <-cut)
			require.Less(t, failed, 300)
			for peer := 1; peer < 3; peer++ { // all the same they can be reached
				for off := 0; off < tightBytes; off += 1 << 20 {
					require.NoError(t, e.Put(&tm.of[0][peer], off, filled(64)))
				}
				require.NoError(t, e.Flush(&tm.of[0][peer]))
			}
			tm.freeAll(t)
		})
	}
}

// TestUnreachableBuckets: an owner that cannot be reached for a while fails what is begun then, with the reason; later
// everything works again, by messages, and the owner does not wait for buckets that the other has forgotten.
func TestUnreachableBuckets(t *testing.T) {
	var cutter *cutting
	c := transporttest.FabricConfig{MaxPinned: tightPins, Jitter: 200 * time.Microsecond, Seed: 3}
	tm := newTeamOf(t, 2, tightBytes, c, func(d transport.Domain) transport.Domain { cutter = newCutting(d); return cutter })
	e, to := tm.e[0], &tm.of[0][1]
	require.NoError(t, e.Put(to, 0, filled(40_000)))
	require.NoError(t, e.Flush(to))
	refusal := errors.New("the cable is out")
	set := func(err error) {
		cutter.mu.Lock()
		defer cutter.mu.Unlock()
		cutter.dead = err
	}
	for round := range 5 {
		begun, done := make(chan struct{}), make(chan error, 1)
		go func() { // a miss each time: its move is under way, or not yet
			var err error
			for k := range 40 {
				if k == 2 {
					close(begun)
				}
				off := (1 + (round*40+k)%200) * 40_000
				err = errors.Join(err, e.Put(to, off, filled(40_000)))
			}
			done <- err
		}()
		<-begun
		set(refusal)
		require.NoError(t, cutter.cut(1))
		err := <-done
		err = errors.Join(err, e.Flush(to), e.Put(to, 0, filled(8)), e.Flush(to))
		require.ErrorIs(t, err, refusal)
		set(nil)
		_ = e.Flush(to) // of what has failed meanwhile
		src, back := filled(80_000), mem.Of(make([]byte, 80_000))
		require.NoError(t, e.Put(to, 4<<20, src))
		require.NoError(t, e.Flush(to))
		require.NoError(t, e.Get(to, 4<<20, back))
		require.Equal(t, src.Data(), back.Data())
	}
	require.NoError(t, e.Peers.Check(1), "nobody has called it gone")
	tm.freeAll(t)
}

// TestMendDirect breaks the connection under transfers from and to the user's memory: they arrive, and nothing stays held.
func TestMendDirect(t *testing.T) {
	const n = 1 << 20
	var cutter *cutting
	c := transporttest.FabricConfig{MaxMessage: 100_000, Jitter: 20 * time.Microsecond, Seed: 2}
	tm := newTeamWith(t, 2, n, c, func(d transport.Domain) transport.Domain { cutter = newCutting(d); return cutter },
		forcedBulk(t, "register", 0))
	e, to := tm.e[0], &tm.of[0][1]
	require.NoError(t, e.Put(to, 0, filled(8)))
	for i := range 100 {
		src, back := filled(n), mem.Of(make([]byte, n))
		src.Data()[n-1] = byte(i)
		h, err := e.PutNB(to, 0, src)
		require.NoError(t, err)
		require.NoError(t, cutter.cut(1))
		require.NoError(t, h.Wait(context.Background()))
		require.NoError(t, e.Flush(to))
		require.Equal(t, src.Data(), tm.mem[1].Data())
		h, err = e.GetNB(to, 0, back)
		require.NoError(t, err)
		require.NoError(t, cutter.cut(1))
		require.NoError(t, h.Wait(context.Background()))
		require.Equal(t, src.Data(), back.Data())
	}
	s, refused, _ := e.Registered()
	require.NoError(t, refused)
	require.Equal(t, s.Bytes, s.Idle, "nothing is held")
	require.Positive(t, e.Stats()[PathDirect].Ops)
}
