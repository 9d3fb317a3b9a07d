package eager

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
)

// ticking is a clock that goes on by step whenever it is asked.
func ticking(step time.Duration) func() time.Duration {
	var now time.Duration
	return func() time.Duration { now += step; return now }
}

// TestLineNanos: a round takes one tick of this clock, whatever the machine.
func TestLineNanos(t *testing.T) {
	for _, step := range []time.Duration{0, time.Microsecond, coldTime} {
		c := newCold(ticking(step), coldMemory)
		require.InDelta(t, float64(step)/coldReads, c.line, 1e-9)
		require.Zero(t, c.copies(ticking(step), mem.Of(make([]uint64, 512))), "both kinds of copies take a tick")
		c.free()
	}
	began := time.Now()
	now := func() time.Duration { return time.Since(began) }
	c := newCold(now, coldMemory)
	defer c.free()
	require.Positive(t, c.line)
	src, more := mem.Of(make([]uint64, 1024)), []float64(nil)
	for bytes := 1024; bytes <= src.Bytes; bytes *= 2 {
		more = append(more, c.copies(now, src.Slice(0, bytes)))
	}
	t.Logf("%.1f ns a line; copies of 1, 2, 4, 8 KiB take %v ns longer; %v in all", c.line, more, time.Since(began))
	require.Zero(t, c.copies(now, c.memory.Slice(0, 0)))
}

// TestLineWithoutMemory: a machine that has no memory for it is no error.
func TestLineWithoutMemory(t *testing.T) {
	none := func(func() time.Duration) (mem.Range, func(), error) { return mem.Range{}, nil, errors.ErrUnsupported }
	c := newCold(ticking(1), none)
	defer c.free()
	require.InDelta(t, assumedLine, c.line, 0)
	require.Zero(t, c.copies(ticking(1), mem.Of(make([]uint64, 8))))
}

// TestColdMemoryIsBounded: making the memory ends with its time, and with the most there may be.
func TestColdMemoryIsBounded(t *testing.T) {
	for _, c := range []struct {
		step time.Duration
		want int
	}{
		{0, coldMost}, {coldTime / 4, 4 * coldStep}, {coldTime, coldStep}, {time.Hour, coldStep},
	} {
		next := 0
		require.Equal(t, c.want, grow(ticking(c.step), func(from, bytes int) {
			require.Equal(t, next, from)
			next = from + bytes
		}), "%v", c.step)
		require.Equal(t, c.want, next)
	}
}

// TestWalkGoesEverywhere: reads are in lines of their own nearly always, in all parts of the memory, and each depends on the one before.
func TestWalkGoesEverywhere(t *testing.T) {
	for _, bytes := range []int{coldStep, 5 * coldStep} {
		words := make([]uint64, bytes/8)
		lines, seen, eighths := uint64(len(words)/lineWords), map[uint64]bool{}, map[uint64]bool{}
		at := uint64(0)
		for range coldReads {
			before := at
			at = walk(words, before, 1)
			line := at >> 32 * lines >> 32
			seen[line], eighths[line*8/lines] = true, true
			words[line*lineWords]++
			require.Equal(t, at+1, walk(words, before, 1), "what is read is part of what comes next")
			words[line*lineWords]--
		}
		require.Greater(t, len(seen), coldReads*9/10)
		require.Len(t, eighths, 8)
	}
}
