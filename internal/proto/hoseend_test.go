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
	"gopgas/internal/nic"
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
// move, while it is under way, and while what it brought is in use. Where each transfer meets one break, and perhaps one
// before it that nobody has noticed, everything arrives (N4). Where breaks come without end some transfers fail, and say
// why. The buckets come back.
func TestMendBuckets(t *testing.T) {
	kinds := map[string]transporttest.FabricConfig{
		"roomy": {}, "late": {Jitter: 20 * time.Microsecond, Seed: 1}, "narrow": {MaxPost: 3},
	}
	for name, c := range kinds {
		c.MaxPinned = tightPins
		t.Run(name, func(t *testing.T) {
			w := newTightWorld(t, c)
			rng := rand.New(rand.NewPCG(3, 4))
			for i := range 300 {
				cut := make(chan error, 1)
				pause := time.Duration(rng.IntN(200)) * time.Microsecond
				go func() {
					time.Sleep(pause) // any time will do
					cut <- w.cutter.cut(1 + i%2)
				}()
				err := w.transfer(t, i)
				require.NoError(t, <-cut)
				require.NoError(t, err, "transfer %d", i)
			}
			w.end(t)
		})
		t.Run(name+", without end", func(t *testing.T) {
			w := newTightWorld(t, c)
			stop, cut := make(chan struct{}), make(chan error, 1)
			go func() {
				defer close(cut)
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					case <-time.After(300 * time.Microsecond):
					}
					if err := w.cutter.cut(1 + i%2); err != nil {
						cut <- err
						return
					}
				}
			}()
			for i := range 100 {
				if err := w.transfer(t, i); err != nil { // each of its connections was cut too
					require.ErrorIs(t, err, nic.ErrConnectionLost)
				}
			}
			close(stop)
			require.NoError(t, <-cut)
			w.end(t)
		})
	}
}

// tightWorld is three ranks with memory in buckets; the connections of rank 0 can be cut.
type tightWorld struct {
	*team
	cutter *cutting
	rng    *rand.Rand
	back   mem.Range
}

func newTightWorld(t *testing.T, c transporttest.FabricConfig) *tightWorld {
	w := &tightWorld{rng: rand.New(rand.NewPCG(1, 2)), back: mem.Of(make([]byte, 200_000))}
	w.team = newTeamOf(t, 3, tightBytes, c, func(d transport.Domain) transport.Domain { w.cutter = newCutting(d); return w.cutter })
	require.NotNil(t, w.of[0][1].hosed)
	for peer := 1; peer < 3; peer++ { // so that there is something to cut
		require.NoError(t, w.e[0].Put(&w.of[0][peer], 0, filled(8)))
	}
	return w
}

// transfer puts and gets some bytes, and returns how that failed. What has not failed has arrived.
func (w *tightWorld) transfer(t *testing.T, i int) error {
	e, to, n := w.e[0], &w.of[0][1+i%2], []int{8, 600, 40_000, 200_000}[i/2%4]
	off := w.rng.IntN((tightBytes-n)/8) * 8
	src, back := filled(n), w.back.Slice(0, n)
	src.Data()[0] = byte(i)
	if err := errors.Join(e.Put(to, off, src), e.Flush(to)); err != nil {
		return err
	}
	if err := e.Get(to, off, back); err != nil {
		return err
	}
	require.Equal(t, src.Data(), back.Data(), "transfer %d of %d bytes at %d", i, n, off)
	return nil
}

// end sees that all can be reached, whatever has happened, and frees the memory.
func (w *tightWorld) end(t *testing.T) {
	for peer := 1; peer < 3; peer++ {
		for off := 0; off < tightBytes; off += 1 << 20 {
			require.NoError(t, w.e[0].Put(&w.of[0][peer], off, filled(64)))
		}
		require.NoError(t, w.e[0].Flush(&w.of[0][peer]))
	}
	w.freeAll(t)
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

// TestFreeEndsWithItsContext: a peer that holds buckets has stopped. Free of the owner ends with its context and says whose they are;
// the memory stays registered, and is freed when the peer goes on.
func TestFreeEndsWithItsContext(t *testing.T) {
	tm := newTeamOf(t, 2, tightBytes, transporttest.FabricConfig{MaxPinned: tightPins}, nil)
	require.NoError(t, tm.e[0].Put(&tm.of[0][1], 0, filled(40_000)))
	require.NoError(t, tm.e[0].Flush(&tm.of[0][1]))
	lent := func() int64 {
		s, _, _ := tm.e[1].Registered()
		return s.Lent
	}
	require.Positive(t, lent())
	patience := errors.New("patience is at its end")
	ctx, cancel := context.WithCancelCause(t.Context())
	freed := make(chan error)
	go func() { freed <- tm.xp[1].FreeWithin(ctx) }()
	require.Eventually(t, func() bool { return len(tm.e[1].Sched.Waits()) == 1 }, 20*time.Second, time.Millisecond)
	cancel(patience)
	err := <-freed
	require.ErrorIs(t, err, patience)
	require.ErrorContains(t, err, "ranks [0]")
	require.Positive(t, lent())
	tm.freeAll(t)
	require.Zero(t, lent())
}

// TestMendDirect breaks the connection under transfers from and to the user's memory: they arrive, and nothing stays held. A
// break may come when its transfer is over: then the next one meets it, and its own.
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
	_, refused, _ := e.Registered()
	require.NoError(t, refused)
	unheld(t, e, 0)
	require.Positive(t, e.Stats()[PathDirect].Ops)
}
