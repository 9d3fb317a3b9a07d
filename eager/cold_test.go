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
		got := lineNanos(ticking(step), coldMemory)
		require.InDelta(t, float64(step)/coldReads, got, 1e-9)
	}
	began := time.Now()
	got := lineNanos(func() time.Duration { return time.Since(began) }, coldMemory)
	require.Positive(t, got)
	t.Logf("%.1f ns a line; %v in all", got, time.Since(began))
}

// TestLineWithoutMemory: a machine that has no memory for it is no error.
func TestLineWithoutMemory(t *testing.T) {
	none := func(func() time.Duration) (mem.Range, func(), error) { return mem.Range{}, nil, errors.ErrUnsupported }
	require.InDelta(t, assumedLine, lineNanos(ticking(1), none), 0)
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
