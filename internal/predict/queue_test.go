package predict

import (
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestQueueKeepsOrderAndLosesNewest(t *testing.T) {
	q := NewQueue(3) // four slots
	require.Nil(t, q.front())
	for i := range 6 {
		require.Equal(t, i < 4, q.Put(&Use{At: Nanos(i)}))
	}
	require.EqualValues(t, 2, q.Lost())
	var u Use
	for i := range 4 {
		require.Equal(t, Nanos(i), q.front().At)
		require.True(t, q.take(&u))
		require.Equal(t, Nanos(i), u.At)
	}
	require.False(t, q.take(&u))
	for i := range 100 { // around the ring many times
		require.True(t, q.Put(&Use{At: Nanos(i)}))
		require.True(t, q.take(&u))
		require.Equal(t, Nanos(i), u.At)
	}
	require.Len(t, NewQueue(0).slots, DefaultQueue)
}

// TestQueueOfOne: what was put into the smallest queue is not overwritten, and is read.
func TestQueueOfOne(t *testing.T) {
	q, put := NewQueue(1), 0
	for put < 4 && q.Put(&Use{At: Nanos(put)}) {
		put++
	}
	require.Less(t, put, 4, "nobody reads")
	var u Use
	for i := range put {
		require.True(t, q.take(&u))
		require.Equal(t, Nanos(i), u.At)
	}
}

// TestQueueNeverShowsHalfAnEntry: producer and consumer run against each other on a small ring that overflows.
func TestQueueNeverShowsHalfAnEntry(t *testing.T) {
	const uses = 200_000
	q := NewQueue(4)
	var done atomic.Bool
	go func() {
		defer done.Store(true)
		for i := range uint64(uses) {
			u := Use{At: Nanos(i), Region: Region(i), Buf: i, Pages: uint32(i)}
			u.Stack[7], u.Before = uintptr(i), i
			q.Put(&u)
		}
	}()
	var u Use
	last, got := Nanos(-1), uint64(0)
	deadline := time.Now().Add(time.Minute)
	for {
		over := done.Load()
		if !q.take(&u) {
			if over {
				break
			}
			require.True(t, time.Now().Before(deadline))
			continue
		}
		got++
		i := uint64(u.At)
		require.Greater(t, u.At, last)
		last = u.At
		if u.Region != Region(i) || u.Buf != i || u.Pages != uint32(i) || u.Stack[7] != uintptr(i) || u.Before != i {
			require.Fail(t, "a torn entry", "%+v", u)
		}
	}
	require.EqualValues(t, uses, got+q.Lost(), "each use is read once or lost")
}

// TestManyProducers: each of several producers sees its own uses come out in its order, once, or lost.
func TestManyProducers(t *testing.T) {
	const producers, uses = 4, 50_000
	q := NewQueue(8)
	var wg sync.WaitGroup
	var done atomic.Bool
	for id := range uint64(producers) {
		wg.Go(func() {
			for i := range uint64(uses) {
				u := Use{At: Nanos(i), Region: Region(id), Buf: i ^ id<<32}
				u.Before = u.Buf
				q.Put(&u)
			}
		})
	}
	go func() { wg.Wait(); done.Store(true) }()
	var u Use
	got := uint64(0)
	last := [producers]Nanos{-1, -1, -1, -1}
	deadline := time.Now().Add(time.Minute)
	for {
		over := done.Load()
		if !q.take(&u) {
			if over {
				break
			}
			require.True(t, time.Now().Before(deadline))
			continue
		}
		got++
		if u.At <= last[u.Region] || u.Buf != uint64(u.At)^uint64(u.Region)<<32 || u.Before != u.Buf {
			require.Fail(t, "a torn entry, or one twice", "%+v", u)
		}
		last[u.Region] = u.At
	}
	require.EqualValues(t, producers*uses, got+q.Lost())
	require.EqualValues(t, producers*uses, q.Heard())
}

// TestStreamTellsWindowsApart: what Stream hands over is equal where the window's calls are, and only there.
func TestStreamTellsWindowsApart(t *testing.T) {
	for _, window := range []int{0, 1, 2, 3, 4} {
		length := window
		if window == 0 {
			length = 2 // the default
		}
		s := NewStream(window)
		seen := map[uint64][]int{}
		var calls []int
		for i := range 2000 {
			var u Use
			call := i * i % 7
			s.Note(&u, MakeCall(1, uint64(call)<<12), 0)
			if i >= length {
				want, known := seen[u.Before]
				if !known {
					for _, other := range seen {
						require.NotEqual(t, other, calls[i-length:], "window %d: one window, two words", window)
					}
					seen[u.Before] = append([]int(nil), calls[i-length:]...)
				} else {
					require.Equal(t, want, calls[i-length:], "window %d: two windows, one word", window)
				}
			}
			calls = append(calls, call)
		}
		require.Greater(t, len(seen), 2)
	}
	s, u := NewStream(NoWindow), Use{}
	s.Note(&u, MakeCall(1, 5), 0)
	s.Note(&u, MakeCall(1, 6), 0)
	require.Zero(t, u.Before)
}

func TestPutAllocatesNothing(t *testing.T) {
	q := NewQueue(0)
	u := Use{}
	require.Zero(t, testing.AllocsPerRun(1000, func() { q.Put(&u); q.take(&u) }))
}

func TestCallsDiffer(t *testing.T) {
	require.NotEqual(t, MakeCall(0, 0), Call(0), "a call is not the lack of one")
	require.NotEqual(t, MakeCall(1, 8), MakeCall(2, 8))
}

func TestSignatureTakesInWhatThePaperSays(t *testing.T) {
	base := Use{At: 5, Region: 3, Buf: 64, Pages: 2}
	base.Stack[0], base.Before = 11, 7
	change := func(f func(*Use)) uint64 { u := base; f(&u); return Signature(&u, 2) }
	same := Signature(&base, 2)
	for name, f := range map[string]func(*Use){
		"stack":        func(u *Use) { u.Stack[7] = 1 },
		"buffer":       func(u *Use) { u.Buf++ },
		"calls before": func(u *Use) { u.Before++ },
	} {
		require.NotEqual(t, same, change(f), name)
	}
	for name, f := range map[string]func(*Use){
		"time":   func(u *Use) { u.At++ },
		"region": func(u *Use) { u.Region++ },
		"size":   func(u *Use) { u.Pages++ },
	} {
		require.Equal(t, same, change(f), name)
	}
	u := base
	u.Before++
	require.Equal(t, Signature(&base, 0), Signature(&u, 0), "no window")
	require.EqualValues(t, 128, reflect.TypeFor[slot]().Size())
}

func BenchmarkPut(b *testing.B) {
	q := NewQueue(0)
	u := Use{At: 1}
	b.ReportAllocs()
	spent, puts := time.Duration(0), 0
	for b.Loop() { // stopping the benchmark's own clock for each full queue would take longer than to fill it
		began := time.Now()
		for q.Put(&u) {
			puts++
		}
		spent += time.Since(began)
		for q.take(&u) {
		}
	}
	b.ReportMetric(float64(spent)/float64(puts), "ns/put")
}

// BenchmarkPutTake is a Put and the helper's take on one processor.
func BenchmarkPutTake(b *testing.B) {
	q := NewQueue(0)
	u := Use{At: 1}
	b.ReportAllocs()
	for b.Loop() {
		q.Put(&u)
		q.take(&u)
	}
}

func BenchmarkSignature(b *testing.B) {
	u := Use{At: 1}
	for b.Loop() {
		u.Buf += Signature(&u, 2)
	}
}

// TestStreamOfMany: goroutines that share a window, and note at once, get windows of calls that were made, or of none.
func TestStreamOfMany(t *testing.T) {
	const makers, calls = 4, 4000
	s := NewStream(2)
	hash := func(c Call) uint64 { return uint64(c) * factor >> 32 }
	known := map[uint64]bool{0: true}
	for id := range makers {
		known[hash(MakeCall(1, uint64(id)<<12))] = true
	}
	var strange atomic.Int64
	var wg sync.WaitGroup
	for id := range makers {
		wg.Go(func() {
			for range calls {
				var u Use
				s.Note(&u, MakeCall(1, uint64(id)<<12), 0)
				if w := u.Before; !known[w>>32] || !known[uint64(uint32(w))] {
					strange.Add(1)
				}
			}
		})
	}
	wg.Wait()
	require.Zero(t, strange.Load())
}

// TestStreamOfGoroutines: what one goroutine calls is no part of another's window.
func TestStreamOfGoroutines(t *testing.T) {
	s := NewStream(2)
	alone := NewStream(2)
	for i := range uint64(20) {
		var u, other, want Use
		s.Note(&u, MakeCall(0, i), 0xc000002380)
		alone.Note(&want, MakeCall(0, i), 0)
		for range i % 3 {
			s.Note(&other, MakeCall(1, i<<20), 0xc000006700)
		}
		require.Equal(t, want.Before, u.Before)
	}
}
