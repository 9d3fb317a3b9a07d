package proto

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// posts counts the Posts of a domain and the operations in them.
type posts struct {
	transport.Domain
	calls, ops atomic.Int64
}

func (p *posts) Post(ops []transport.Op) (int, error) {
	n, err := p.Domain.Post(ops)
	p.calls.Add(1)
	p.ops.Add(int64(n))
	return n, err
}

// since returns how many Posts there were since others counted calls and ops, as soon as n operations are counted: the last Post may
// not have returned when its operations are done.
func (p *posts) since(t *testing.T, calls, ops, n int64) int64 {
	t.Helper()
	if p.ops.Load()-ops != n {
		require.Eventually(t, func() bool { return p.ops.Load()-ops == n }, 10*time.Second, time.Millisecond)
	}
	return p.calls.Load() - calls
}

// TestSmallPutsCrossTogether: 64 small puts for which nobody waits are one Post, and go before what comes after them, to memory that is
// registered as a whole as to a bucket that is held.
func TestSmallPutsCrossTogether(t *testing.T) {
	t.Run("whole", func(t *testing.T) { smallPutsCrossTogether(t, transporttest.FabricConfig{}) })
	t.Run("bucket", func(t *testing.T) { smallPutsCrossTogether(t, transporttest.FabricConfig{MaxPinned: tightPins}) })
}

func smallPutsCrossTogether(t *testing.T, c transporttest.FabricConfig) {
	var count *posts
	tm := newTeamOf(t, 2, tightBytes, c, func(d transport.Domain) transport.Domain { count = &posts{Domain: d}; return count })
	e, to := tm.e[0], &tm.of[0][1]
	require.Equal(t, c.MaxPinned != 0, to.hosed != nil)
	word := [1]uint64{}
	require.NoError(t, e.Put(to, 0, mem.Of(word[:])))
	require.NoError(t, e.Flush(to))
	best := int64(nic.Batch)
	for range 100 { // a poll in between, by whoever serves the NIC, may send some earlier
		calls, ops := count.calls.Load(), count.ops.Load()
		for i := range nic.Batch {
			word[0] = uint64(i + 1)
			_, err := e.PutNB(to, 16*i, mem.Of(word[:]))
			require.NoError(t, err)
		}
		require.NoError(t, e.Flush(to))
		best = min(best, count.since(t, calls, ops, nic.Batch))
	}
	require.EqualValues(t, 1, best, "posts")
	for i := range 3 * nic.Batch {
		word[0] = uint64(i + 1)
		_, err := e.PutNB(to, 0, mem.Of(word[:]))
		require.NoError(t, err)
	}
	word[0] = 7
	require.NoError(t, e.Put(to, 0, mem.Of(word[:])))
	last, err := e.Load64(to, 0)
	require.NoError(t, err)
	require.EqualValues(t, 7, last)

	// Any wait sends them on, not only a flush.
	_, err = e.PutNB(to, 8, mem.Of(word[:]))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		e.nic().Progress()
		return tm.mem[1].Word64(8).Load() == 7
	}, 5*time.Second, time.Millisecond)
}

// TestNeighboursAreOneOperation: puts that begin where the one before has ended are operations of up to 256 bytes, and counted as what they are;
// what was put before an Order goes before what is put behind it.
func TestNeighboursAreOneOperation(t *testing.T) {
	var count *posts
	tm := newTeamOf(t, 2, tightBytes, transporttest.FabricConfig{}, func(d transport.Domain) transport.Domain { count = &posts{Domain: d}; return count })
	e, to := tm.e[0], &tm.of[0][1]
	require.True(t, e.nic().Caps.OrderedWrites)
	word := [1]uint64{}
	put := func(i int) {
		word[0] = uint64(100 + i)
		_, err := e.PutNB(to, 8*i, mem.Of(word[:]))
		require.NoError(t, err)
	}
	// least is the fewest operations that some puts and a flush take: a poll in between, by whoever serves the NIC, may send some earlier.
	least := func(puts func()) (best int64) {
		best = 1 << 20
		for range 200 {
			clear(tm.mem[1].Slice(0, 8*nic.Batch).Data())
			before := count.ops.Load()
			puts()
			require.NoError(t, e.Flush(to))
			best = min(best, count.ops.Load()-before)
		}
		return best
	}
	before := e.Stats()[PathInline]
	require.EqualValues(t, 2, least(func() {
		for i := range nic.Batch {
			put(i)
		}
	}))
	for i := range nic.Batch {
		require.EqualValues(t, 100+i, tm.mem[1].Word64(8*i).Load())
	}
	after := e.Stats()[PathInline]
	require.EqualValues(t, 200*nic.Batch, after.Ops-before.Ops)
	require.EqualValues(t, 200*nic.Batch*8, after.Bytes-before.Bytes)
	require.EqualValues(t, 2, least(func() {
		put(0)
		require.NoError(t, e.Order(to))
		put(1)
		put(2)
	}), "behind an Order")
	require.EqualValues(t, 3, least(func() { put(1); put(0); put(2) }), "not neighbours of the one before")
	require.EqualValues(t, 102, tm.mem[1].Word64(16).Load())
}

// TestNeighboursAnywhere: puts of some goroutines, most of them behind the one before, over NICs of each kind, and over connections that break.
func TestNeighboursAnywhere(t *testing.T) {
	const each, room, flows = 250, 8 << 10, 3
	for name, c := range map[string]transporttest.FabricConfig{
		"plain": {}, "late": {Jitter: 20 * time.Microsecond, Seed: 5}, "narrow": {MaxPost: 3}, "short": {MaxInline: 16}, "breaks": {}, "buckets": {MaxPinned: tightPins},
	} {
		t.Run(name, func(t *testing.T) {
			var cutter *cutting
			tm := newTeamOf(t, 2, tightBytes, c, func(d transport.Domain) transport.Domain { cutter = newCutting(d); return cutter })
			e, to := tm.e[0], &tm.of[0][1]
			require.NoError(t, e.Put(to, 0, mem.Of(make([]byte, 8)))) // connected
			require.NoError(t, e.Flush(to))
			want := make([]byte, flows*room)
			errs := make([]error, flows+1)
			var wg sync.WaitGroup
			for g := range flows {
				wg.Go(func() {
					rng := rand.New(rand.NewPCG(uint64(g), 77))
					at := 0
					for k := range each {
						if rng.IntN(8) == 0 || at > room-100 {
							errs[g] = errors.Join(errs[g], e.Flush(to)) // only then may something be put there again
							at = rng.IntN(room / 2)
						}
						bytes := 1 + rng.IntN(40)
						src := make([]byte, bytes)
						for i := range src {
							src[i] = byte(k + i)
						}
						copy(want[g*room+at:], src)
						_, err := e.PutNB(to, g*room+at, mem.Of(src))
						clear(src) // it is the caller's again
						errs[g] = errors.Join(errs[g], err)
						if at += bytes; rng.IntN(20) == 0 {
							at += 3
						}
					}
				})
			}
			if name == "breaks" {
				for range 3 { // what meets no more of them is done
					time.Sleep(200 * time.Microsecond)
					errs[flows] = errors.Join(errs[flows], cutter.cut(1))
				}
			}
			wg.Wait()
			require.NoError(t, errors.Join(append(errs, e.Flush(to))...))
			require.Equal(t, want, tm.mem[1].Slice(0, len(want)).Data())
		})
	}
}

// TestSmallPutsAllocateNothing also when they wait for room.
func TestSmallPutsAllocateNothing(t *testing.T) {
	tm := newTeam(t, 2, transporttest.FabricConfig{MaxPost: 8}, nil)
	e, to := tm.e[0], &tm.of[0][1]
	src := mem.Of(make([]uint64, 2))
	require.NoError(t, e.Put(to, 0, src))
	require.NoError(t, e.Flush(to))
	require.Zero(t, testing.AllocsPerRun(50, func() {
		for i := range 200 {
			if _, err := e.PutNB(to, 16*i, src); err != nil {
				panic("put")
			}
		}
		if e.Flush(to) != nil {
			panic("flush")
		}
	}))
}
