package callsite

import (
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func since() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

func clocks() map[string]*Clock {
	return map[string]*Clock{"counter": New(since()), "plain": Plain(since())}
}

//go:noinline
func here(c *Clock) (s Stack) { c.Mark(&s, 0); return s }

//go:noinline
func outer(c *Clock) Stack { s := here(c); return s }

func names(s Stack) []string {
	var out []string
	for _, pc := range s {
		if pc != 0 {
			f := runtime.FuncForPC(pc - 1).Name()
			out = append(out, f[strings.LastIndex(f, ".")+1:])
		}
	}
	return out
}

func TestMarkNamesTheCallers(t *testing.T) {
	for name, c := range clocks() {
		t.Run(name, func(t *testing.T) {
			got := names(outer(c))
			require.GreaterOrEqual(t, len(got), 2, "%v", got)
			require.Equal(t, "outer", got[0], "the function that called Mark's caller: %v", got)
		})
	}
}

func TestStacksTellCallSitesApart(t *testing.T) {
	for name, c := range clocks() {
		t.Run(name, func(t *testing.T) {
			var first, second [3]Stack
			for i := range 3 {
				first[i] = outer(c)
				second[i] = outer(c)
			}
			require.Equal(t, first[0], first[1])
			require.Equal(t, first[1], first[2])
			require.Equal(t, second[0], second[2])
			require.NotEqual(t, first[0], second[0], "two lines, one stack")
		})
	}
}

// TestHereIsMark: the same stack; and hashes tell stacks apart.
func TestHereIsMark(t *testing.T) {
	c := New(since())
	hashes := map[uint64]bool{}
	for skip := range 3 {
		var by, here Stack
		c.Mark(&by, skip)
		Here(&here, skip)
		require.Equal(t, by, here, "skip %d", skip)
		require.Equal(t, by.Hash(), here.Hash())
		hashes[here.Hash()] = true
	}
	require.Len(t, hashes, 3)
}

func TestSkipDropsFrames(t *testing.T) {
	for name, c := range clocks() {
		t.Run(name, func(t *testing.T) {
			var all, fewer, none Stack
			mark := func(s *Stack, skip int) { c.Mark(s, skip) }
			for i, s := range []*Stack{&all, &fewer} {
				mark(s, i)
			}
			require.Equal(t, all[1], fewer[0])
			mark(&none, 1000)
			require.Equal(t, Stack{}, none, "no frame is that far out")
		})
	}
}

//go:noinline
func deep(n int, f func()) byte {
	var room [512]byte
	if n == 0 {
		f()
		return room[0]
	}
	return deep(n-1, f) + room[n%512]
}

// TestStackGrowthKeepsStacks: the goroutine's stack moves between two marks of one call site; its frames have other
// addresses then, its return addresses the same.
func TestStackGrowthKeepsStacks(t *testing.T) {
	c := New(since())
	done := make(chan []Stack, 1)
	go func() {
		var got []Stack
		for i := range 4 {
			s := here(c)
			got = append(got, s)
			deep(20<<i, func() { got = append(got, here(c)) })
		}
		done <- got
	}()
	got := <-done
	for i := 2; i < len(got); i++ {
		require.Equal(t, got[i-2], got[i])
	}
}

func TestManyGoroutinesMark(t *testing.T) {
	c := New(since())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			want := outerAgain(c)
			for range 2000 {
				if outerAgain(c) != want {
					t.Error("one call site, two stacks")
					return
				}
			}
		})
	}
	wg.Wait()
}

//go:noinline
func outerAgain(c *Clock) Stack { s := here(c); s[1] = 0; return s } // its own caller differs between the two calls above

func TestStampsFollowTheSource(t *testing.T) {
	c := New(since())
	var offs []Nanos
	last := c.Now()
	for range 200 {
		before := Nanos(c.now())
		var s Stack
		at := c.Mark(&s, 0)
		after := Nanos(c.now())
		require.GreaterOrEqual(t, at, last-int64(50*time.Microsecond), "C3")
		last = at
		offs = append(offs, max(before-at, at-after, 0))
	}
	slices.Sort(offs)
	// Half of all stamps lie within a tenth of a percent of the time that has passed (and 20 us) of both readings.
	require.Less(t, offs[len(offs)/2], last/1000+int64(20*time.Microsecond))
}

func TestPlainClockIsTheSource(t *testing.T) {
	now := 5 * time.Second
	c := Plain(func() time.Duration { return now })
	require.False(t, c.Counter())
	require.EqualValues(t, 5*time.Second, c.Now())
	now++
	var s Stack
	require.EqualValues(t, 5*time.Second+1, c.Mark(&s, 0))
}

func TestConversion(t *testing.T) {
	c := &Clock{mult: 1 << (shift - 1), ticks0: 1000, nanos0: 50} // two ticks are a nanosecond
	require.EqualValues(t, 50, c.At(1000))
	require.EqualValues(t, 150, c.At(1200))
	require.EqualValues(t, 25, c.At(950), "a reading from before the calibration")
	require.EqualValues(t, 50+1<<60, c.At(1000+1<<61), "no overflow")
	for rate, ok := range map[float64]bool{0: false, -1: false, 2.6: true, 0.024: true, 1e9: false} {
		require.Equal(t, ok, usable(rate), "%v", rate)
	}
}

func TestMarkAllocatesNothing(t *testing.T) {
	for name, c := range clocks() {
		var s Stack
		require.Zero(t, testing.AllocsPerRun(100, func() { c.Mark(&s, 0) }), name)
	}
}

func BenchmarkMark(b *testing.B) {
	for name, c := range clocks() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var s Stack
			for b.Loop() {
				c.Mark(&s, 0)
			}
		})
	}
}

func BenchmarkNow(b *testing.B) {
	c := New(since())
	for b.Loop() {
		c.Now()
	}
}

// TestCurrentTellsGoroutinesApart: those that run at once, and none from itself.
func TestCurrentTellsGoroutinesApart(t *testing.T) {
	me := Current()
	require.Equal(t, me, Current())
	const many = 8
	seen := make(chan Caller, many)
	end := make(chan struct{})
	var wg sync.WaitGroup
	for range many {
		wg.Go(func() {
			seen <- Current()
			<-end
		})
	}
	all := map[Caller]bool{me: true}
	for range many {
		all[<-seen] = true
	}
	close(end)
	wg.Wait()
	if runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64" {
		require.Len(t, all, many+1)
	} else {
		require.Len(t, all, 1)
	}
}
