package mem

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// copyLengths are those at which something changes in one of the ways, and some between.
func copyLengths() []int {
	out := []int{0, 1, 7, 8, 9, 63, 64, 65, 255, 256, 257}
	for n := 1 << 10; n < 1<<10+520; n += 13 {
		out = append(out, n)
	}
	for _, n := range []int{512, 1 << 10, fromString, piece, piece + fromString, 2 * piece, 2*piece + fromString} {
		out = append(out, n-64, n-8, n-1, n, n+1, n+8, n+65)
	}
	return out
}

// noise returns n bytes, the same ones every time.
func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// agrees copies n bytes of room from one place to another in both ways, and looks at all of room.
func agrees(t *testing.T, move func(dst, src []byte) int, room, have, want []byte, to, from, n int) {
	t.Helper()
	copy(have, room)
	copy(want, room)
	copy(want[to:to+n], want[from:from+n])
	if got := move(have[to:to+n], have[from:from+n]); got != n || !bytes.Equal(have, want) {
		t.Fatalf("%d bytes from %d to %d: %d copied, or others than these", n, from, to, got)
	}
}

func TestCopyIsTheBuiltins(t *testing.T) {
	for _, n := range copyLengths() {
		aligned := []int{0, 1, 8, 15, 16, 40, 63}
		room := noise(2*n + 256)
		have, want := make([]byte, len(room)), make([]byte, len(room))
		for _, a := range aligned {
			for _, b := range aligned {
				agrees(t, Copy, room, have, want, a, n+128+b, n)
				agrees(t, Copy, room, have, want, n+128+a, b, n)
				if n > piece {
					break // every shift of the one, no shift of the other
				}
			}
		}
	}
}

func TestCopyRange(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 9, 600, 5000} {
		room := noise(2*n + 2)
		want := append(slices.Clone(room[:n+1]), room[1:n+1]...)
		want = append(want, room[2*n+1:]...)
		CopyRange(Of(room[n+1:2*n+1]), Of(room[1:n+1]))
		require.Equal(t, want, room, "%d bytes, on no boundary", n)
	}
}

func TestCopyOverlapping(t *testing.T) {
	for _, n := range []int{100, least, least + 1, 3000, fromString, fromString + 9, piece + fromString + 1} {
		room := noise(2*n + 128)
		have, want := make([]byte, len(room)), make([]byte, len(room))
		for _, by := range []int{0, 1, 8, 63, 64, 65, 255, 256, 300, n / 2, n - 1, n, n + 1} {
			if by > n+1 {
				continue
			}
			agrees(t, Copy, room, have, want, 5, 5+by, n)
			agrees(t, Copy, room, have, want, 5+by, 5, n)
		}
	}
}

func TestCopyTakesTheShorter(t *testing.T) {
	for _, n := range []int{0, 10, 2000, 10000, 400000} {
		short, long := noise(n), make([]byte, n+least)
		require.Equal(t, n, Copy(long, short))
		require.Equal(t, short, long[:n])
		require.Equal(t, make([]byte, least), long[n:], "%d bytes: nothing behind them", n)
		clear(short)
		require.Equal(t, n, Copy(short, noise(n+least)))
		require.Equal(t, noise(n + least)[:n], short)
	}
	require.Zero(t, Copy(nil, nil))
	require.Zero(t, Copy(nil, noise(5000)))
}

// least is Long where Copy has ways of its own, and the same elsewhere.
const least = min(Long, 512)

func TestChooseWay(t *testing.T) {
	both, small := processor{wide: true, byString: true, cached: 4 << 20}, processor{cached: 4 << 20}
	const src, far = 1 << 20, 1 << 30
	type question struct {
		of  processor
		dst uintptr
		n   int
	}
	for q, want := range map[question]way{
		{both, far, 8}:                               builtin,
		{both, far, 511}:                             builtin,
		{both, far, 512}:                             wide,
		{both, far, fromString - 1}:                  wide,
		{both, far, fromString}:                      byString,
		{both, far, 1 << 29}:                         byString,
		{both, src, fromString}:                      builtin, // itself
		{both, src + fromString - 1, fromString}:     builtin,
		{both, src - fromString + 1, fromString}:     builtin,
		{both, src + fromString, fromString}:         byString, // side by side
		{both, src - fromString, fromString}:         byString,
		{processor{}, far, 1 << 20}:                  builtin,
		{small, far, fromUsed - 1}:                   builtin,
		{small, far, fromUsed}:                       asUsed,
		{small, src - 1<<20, 1 << 20}:                asUsed,
		{small, src + 1<<20 - 1, 1 << 20}:            builtin,
		{small, far, 4 << 20}:                        asUsed,
		{small, far, 4<<20 + 1}:                      builtin,
		{processor{wide: true}, far, fromString}:     wide,
		{processor{wide: true}, far, piece + 1}:      builtin,
		{processor{byString: true}, far, 1 << 12}:    builtin,
		{processor{byString: true}, far, fromString}: byString,
	} {
		if Long > 512 {
			want = builtin
		}
		require.Equal(t, want, q.of.choose(q.dst, src, q.n), "%+v", q)
	}
}

func TestCopyAllocatesNothing(t *testing.T) {
	for _, n := range []int{8, 2000, 1 << 14, 1 << 20} {
		var small [2000]byte // on the stack, as a program's may be
		src, dst := noise(n), make([]byte, n)
		require.Zero(t, testing.AllocsPerRun(10, func() { Copy(dst, src); Copy(small[:], src) }), "%d bytes", n)
	}
}

// TestCopyOfStacks copies memory of stacks that move between copies and during the growth that calls cause.
func TestCopyOfStacks(t *testing.T) {
	var down func(depth int, above []byte) []byte
	down = func(depth int, above []byte) []byte {
		var here [3000]byte
		Copy(here[:], above)
		here[depth]++
		if depth == 200 {
			return slices.Clone(here[:])
		}
		return down(depth+1, here[:])
	}
	want := noise(3000)
	first, done := slices.Clone(want), make(chan []byte)
	go func() { done <- down(0, first) }()
	for i := range 201 {
		want[i]++
	}
	require.True(t, bytes.Equal(want, <-done))
}

func FuzzCopy(f *testing.F) {
	f.Add(uint(3), uint(70), uint(5000))
	f.Add(uint(70), uint(3), uint(9000))
	f.Add(uint(0), uint(300000), uint(280000))
	room := noise(1 << 20)
	have, want := make([]byte, len(room)), make([]byte, len(room))
	f.Fuzz(func(t *testing.T, to, from, n uint) {
		m := uint(len(room))
		to, from = to%m, from%m
		n %= min(m-to, m-from)
		agrees(t, Copy, room, have, want, int(to), int(from), int(n))
	})
}

// BenchmarkCopy compares the builtin, Copy and its ways: in one hot buffer, and through 256 MiB of buffers in turn.
func BenchmarkCopy(b *testing.B) {
	const most = 64 << 20
	for _, all := range []struct {
		name  string
		bytes int
	}{{"hot", 0}, {"cold", 256 << 20}} {
		for n := 256; n <= most; n *= 2 {
			src, dst := make([]byte, max(n, all.bytes)), make([]byte, max(n, all.bytes))
			for _, w := range append([]namedWay{
				{"builtin", func(dst, src []byte) int { return copy(dst, src) }}, {"Copy", Copy},
			}, ownWays(n)...) {
				b.Run(fmt.Sprintf("%s/%d/%s", all.name, n, w.name), func(b *testing.B) {
					b.SetBytes(int64(n))
					at := 0
					for b.Loop() {
						w.move(dst[at:at+n], src[at:at+n])
						if at += n; at+n > len(dst) {
							at = 0
						}
					}
				})
			}
		}
	}
}

// namedWay is one of the ways by itself.
type namedWay struct {
	name string
	move func(dst, src []byte) int
}

// BenchmarkCopyRead is what a target that reads makes of a copy: its lines are in another core's cache when the next one comes. The
// time is that of the copy and the reading, with the least of all beside it: that holds on a busy machine, too.
func BenchmarkCopyRead(b *testing.B) {
	for n := 1 << 10; n <= 1<<20; n *= 2 {
		for _, w := range append([]namedWay{
			{"builtin", func(dst, src []byte) int { return copy(dst, src) }}, {"Copy", Copy},
		}, ownWays(n)...) {
			b.Run(fmt.Sprintf("%d/%s", n, w.name), func(b *testing.B) {
				var written, read atomic.Int64
				src, dst := noise(n), make([]byte, n)
				sums := make(chan byte)
				go func() {
					var sum byte
					for last := int64(0); last >= 0; {
						now := written.Load()
						if now == last {
							continue
						}
						for i := 0; i < n && now > 0; i += 64 {
							sum += dst[i]
						}
						last = now
						read.Store(now)
					}
					sums <- sum
				}()
				b.SetBytes(int64(n))
				least := time.Hour
				for at := int64(1); b.Loop(); at++ {
					began := time.Now()
					w.move(dst, src)
					written.Store(at)
					for read.Load() != at {
					}
					least = min(least, time.Since(began))
				}
				b.ReportMetric(float64(least), "ns-least")
				written.Store(-1)
				<-sums
			})
		}
	}
}
