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

// Of a NIC that may pin so much there are pipes, and buckets for memory that is larger.
const (
	pipedPins  = 10 << 20
	pipedBytes = 16 << 20
)

// all puts bytes and gets them back, blocking or not, and looks at them; it returns how that failed.
func (tm *team) all(t *testing.T, from, to, off, bytes int, nonBlocking bool, rng *rand.Rand) error {
	e, r := tm.e[from], &tm.of[from][to]
	src, back := memoryOf(bytes, rng.IntN(8)), memoryOf(bytes, rng.IntN(8))
	fill(src, rng)
	put, get := e.Put, e.Get
	if nonBlocking {
		wait := func(begin func(*Remote, int, mem.Range) (Handle, error)) func(*Remote, int, mem.Range) error {
			return func(r *Remote, off int, user mem.Range) error {
				h, err := begin(r, off, user)
				if err == nil {
					err = h.Wait(context.Background())
				}
				return err
			}
		}
		put, get = wait(e.PutNB), wait(e.GetNB)
	}
	if err := errors.Join(put(r, off, src), e.Flush(r)); err != nil {
		return err
	}
	if err := get(r, off, back); err != nil {
		return err
	}
	require.Equal(t, src.Data(), back.Data(), "%d bytes at %d", bytes, off)
	return nil
}

// TestPipesIntoBuckets: what is not registered here goes to and from buckets in pipes, at any place and of any length, more than may be
// held at once among them; nothing stays held.
func TestPipesIntoBuckets(t *testing.T) {
	for _, name := range []string{"superpipe", "flat", "onthefly"} {
		t.Run(name, func(t *testing.T) {
			tm := newTeamWith(t, 2, pipedBytes, transporttest.FabricConfig{MaxPinned: pipedPins}, nil, forcedBulk(t, name, 1000))
			require.NotNil(t, tm.of[0][1].hosed)
			rng, moved := rand.New(rand.NewPCG(1, 2)), 0
			sizes := []int{1000, 40_001, 300_003, 3 << 20, 300_003}
			if name != "superpipe" {
				sizes = sizes[:3]
			}
			for i, n := range sizes {
				require.NoError(t, tm.all(t, 0, 1, rng.IntN(pipedBytes-n), n, i%2 == 1, rng))
				moved += 2 * n
			}
			require.EqualValues(t, moved, tm.e[0].Stats()[PathPipe].Bytes)
			require.Empty(t, tm.e[0].Otherwise())
			p, _ := tm.e[0].Pipes()
			require.EqualValues(t, moved, p.Copied+p.Direct)
			require.Zero(t, p.Gathered)
			tm.freeAll(t)
		})
	}
}

// TestPipeBeginsAtTheEndOfABucket: where in a bucket a transfer begins does not keep it out of a pipe.
func TestPipeBeginsAtTheEndOfABucket(t *testing.T) {
	const n = 1 << 20 // more than what is asked for at once, which is little more than one of the largest buckets
	tm := newTeamWith(t, 3, pipedBytes, transporttest.FabricConfig{MaxPinned: 8 << 20}, nil, forcedBulk(t, "superpipe", 1000))
	rng := rand.New(rand.NewPCG(3, 4))
	const times, apart, before = 16, 32 << 10, 100 // before an end of the smallest buckets each, so that one is before an end of the largest
	for i := range times {
		require.NoError(t, tm.all(t, 0, 1, (i+1)*apart-before, n, i%2 == 1, rng))
	}
	require.EqualValues(t, 2*times*n, tm.e[0].Stats()[PathPipe].Bytes)
	require.Empty(t, tm.e[0].Otherwise())
	tm.freeAll(t)
}

// TestPipesShareBuckets: several goroutines of all ranks move more at once than may be held, and have more pipes than slots. All come to
// their end, and nobody gets another's bytes.
func TestPipesShareBuckets(t *testing.T) {
	const ranks, each, n = 2, 4, 500_000
	tm := newTeamWith(t, ranks, pipedBytes, transporttest.FabricConfig{MaxPinned: pipedPins}, nil, func(c *Config) {
		forcedBulk(t, "superpipe", 1000)(c)
		c.Registration.Bytes = 2 << 20
	})
	var wg sync.WaitGroup
	errs := make([]error, ranks*each)
	for i := range errs {
		wg.Go(func() {
			from, rng := i/each, rand.New(rand.NewPCG(uint64(i), 3))
			for k := range 2 {
				errs[i] = errors.Join(errs[i], tm.all(t, from, 1-from, i%each*n+rng.IntN(9), n-9, k == 1, rng))
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Positive(t, tm.e[0].Stats()[PathPipe].Ops)
	tm.freeAll(t)
}

// TestPipeIsRefusedBuckets: an owner whose NIC refuses in the middle of a piped transfer gets and gives the rest by messages, which is
// counted; nothing is lost or held.
func TestPipeIsRefusedBuckets(t *testing.T) {
	const n = 150_000
	var owner *refusing
	tm := newTeamWith(t, 2, pipedBytes, transporttest.FabricConfig{MaxPinned: pipedPins},
		func(d transport.Domain) transport.Domain { owner = &refusing{Domain: d}; return owner }, func(c *Config) {
			forcedBulk(t, "superpipe", 1000)(c)
			c.Leases = -1 // what is refused goes by messages for a while
		})
	e, rng := tm.e[1], rand.New(rand.NewPCG(7, 8))
	require.NoError(t, tm.all(t, 1, 0, 0, n, false, rng))
	owner.on.Store(true)
	for i := range 4 { // some do not ask at all
		require.NoError(t, tm.all(t, 1, 0, 2<<20+i<<19, n, i%2 == 1, rng))
	}
	require.Positive(t, e.Otherwise()[InBuckets])
	require.EqualValues(t, 2*n, e.Stats()[PathPipe].Bytes)
	require.Positive(t, e.Stats()[PathMessage].Bytes)
	owner.on.Store(false)
	for e.nic().bulk.wary[0].Load() > 0 {
		require.NoError(t, tm.all(t, 1, 0, 1<<20, n, false, rng))
	}
	before := e.Stats()[PathPipe].Bytes
	require.NoError(t, tm.all(t, 1, 0, 4<<20, n, false, rng))
	require.EqualValues(t, 2*n, e.Stats()[PathPipe].Bytes-before)
	tm.freeAll(t)
}

// TestMendPipesIntoBuckets breaks the connections under pipes to buckets, before a move, while it is under way, and while what it has
// brought is in use: everything arrives.
func TestMendPipesIntoBuckets(t *testing.T) {
	var cutter *cutting
	tm := newTeamWith(t, 2, pipedBytes, transporttest.FabricConfig{MaxPinned: pipedPins, Jitter: 20 * time.Microsecond, Seed: 5},
		func(d transport.Domain) transport.Domain { cutter = newCutting(d); return cutter }, forcedBulk(t, "superpipe", 1000))
	require.NoError(t, tm.e[0].Put(&tm.of[0][1], 0, filled(8))) // so that there is something to cut
	rng := rand.New(rand.NewPCG(9, 10))
	for i := range 15 {
		cut := make(chan error, 1)
		pause := time.Duration(rng.IntN(300)) * time.Microsecond
		go func() {
			time.Sleep(pause) // any time will do
			cut <- cutter.cut(1)
		}()
		n := []int{20_000, 200_000, 1 << 20}[i%3]
		err := tm.all(t, 0, 1, rng.IntN(pipedBytes-n), n, i%2 == 1, rng)
		require.NoError(t, <-cut)
		require.NoError(t, err, "transfer %d", i)
	}
	require.Positive(t, tm.e[0].Stats()[PathPipe].Ops)
	tm.freeAll(t)
}

// TestPeerOfAPipeIntoBucketsDies: whoever waits for buckets of a rank that dies, or is putting into them, is told, and what he had is free
// for transfers with others.
func TestPeerOfAPipeIntoBucketsDies(t *testing.T) {
	for i, late := range []bool{false, true} {
		tm := newTeamWith(t, 3, pipedBytes, transporttest.FabricConfig{MaxPinned: pipedPins, Jitter: 50 * time.Microsecond, Seed: 6}, nil,
			forcedBulk(t, "superpipe", 1000))
		rng := rand.New(rand.NewPCG(11, uint64(i)))
		require.NotNil(t, tm.of[0][2].hosed)
		require.NoError(t, tm.all(t, 0, 2, 0, 100_000, false, rng))
		if late {
			time.AfterFunc(200*time.Microsecond, func() { tm.fabric.Kill(2) }) // any time will do
		} else {
			tm.fabric.Kill(2)
		}
		begun := false
		require.Eventually(t, func() bool {
			err := tm.all(t, 0, 2, rng.IntN(8<<20), 1<<20, begun, rng)
			begun = !begun
			return errors.Is(err, transport.ErrPeerGone) || errors.Is(err, nic.ErrConnectionLost)
		}, 30*time.Second, time.Microsecond)
		require.NoError(t, tm.all(t, 0, 1, 5, 1<<20, true, rng))
		f := tm.e[0].nic().flights
		require.Eventually(t, func() bool { v := f.Levels(); return v.Flights == 0 && v.Pipes == 0 && v.FreeSlots > 0 }, 30*time.Second, time.Millisecond)
	}
}
