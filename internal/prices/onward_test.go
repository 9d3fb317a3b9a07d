package prices

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/selector"
)

// running is habits that have seen the first put of a run to rank 1, from call site 5, whose protocol it returns with where its price goes.
func running(t *testing.T, bytes int) (h *Habits, way selector.Protocol, put func(site uint64) Run) {
	p := Published(testMachine())
	l := p.Learned(Far)
	way, trial := l.Choose(selector.Query{Bytes: bytes, Waited: true, Covered: true}, p.Selector, true)
	require.Equal(t, selector.Direct, way)
	require.True(t, trial.Short())
	h = new(Habits)
	h.Begin(nil)
	put = func(site uint64) Run {
		h.FlushFollows(site, bytes)
		return h.Put(l, trial, 1, 2*time.Second)
	}
	put(5)
	return h, way, put
}

// TestRunsOn: behind a put that was asked about those of as many bytes to the same rank go as it did, all but one in some, and but for the last one of a
// short trial; what their run costs is reckoned with all of them.
func TestRunsOn(t *testing.T) {
	const bytes = 16 * kib
	h, way, put := running(t, bytes)
	require.Equal(t, selector.None, h.RunsOn(2, bytes), "another rank")
	require.Equal(t, selector.None, h.RunsOn(1, bytes-8), "another size")
	require.False(t, h.RunOn(selector.Bounce, 1, bytes), "another way")
	require.Zero(t, testing.AllocsPerRun(1, func() { h.RunsOn(1, bytes) }))
	asked := 1
	var ended Run
	for k := 1; k < selector.ShortTrial; k++ {
		if p := h.RunsOn(1, bytes); p != selector.None {
			require.Equal(t, way, p)
			require.True(t, h.RunOn(p, 1, bytes))
			continue
		}
		asked++
		require.Zero(t, ended.puts)
		ended = put(5)
	}
	require.Equal(t, 1+selector.ShortTrial/AskedOf+1, asked, "the last one ends the run")
	require.Equal(t, selector.ShortTrial, ended.puts)
	require.InDelta(t, 2, ended.each(), 1e-9)
	require.Equal(t, selector.None, h.RunsOn(1, bytes), "it is over")

	h, way, _ = running(t, bytes)
	for range 3 {
		require.True(t, h.RunOn(way, 1, bytes))
	}
	r := h.Flush(1)
	require.Equal(t, 4, r.puts)
	require.Equal(t, 1, r.timed)
	require.Equal(t, selector.None, h.RunsOn(1, bytes), "it was flushed")
	require.False(t, h.RunOn(way, 1, bytes))
}

// TestRunsOnNoRoom: a size beyond what a word has room for is not taken for another.
func TestRunsOnNoRoom(t *testing.T) {
	const bytes = 16 * kib
	h, _, _ := running(t, bytes)
	require.NotEqual(t, selector.None, h.RunsOn(1, bytes))
	h, _, _ = running(t, mostBytes+1+bytes)
	require.Equal(t, selector.None, h.RunsOn(1, bytes))
}

// TestRunsOnNoFlush: the put that was noted last is not one that a flush follows, where others came behind it.
func TestRunsOnNoFlush(t *testing.T) {
	const bytes = 16 * kib
	for _, more := range []bool{false, true} {
		h, way, put := running(t, bytes)
		for range 5 {
			if more {
				require.True(t, h.RunOn(way, 1, bytes))
			}
			h.Flush(1)
			put(5)
		}
		h.Flush(1)
		follows, _, _ := h.FlushFollows(5, bytes)
		require.Equal(t, !more, follows)
	}
}

// TestRunsOnAtOnce: of puts of many goroutines each is counted once.
func TestRunsOnAtOnce(t *testing.T) {
	const bytes, rounds = 16 * kib, 300
	h, way, put := running(t, bytes)
	h.Flush(1)
	for range rounds {
		put(5)
		var took atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 3 {
					if h.RunOn(way, 1, bytes) {
						took.Add(1)
					}
				}
			})
		}
		r := h.Flush(1)
		wg.Wait()
		require.LessOrEqual(t, r.puts, AskedOf)
		require.EqualValues(t, r.puts-1, took.Load())
		require.Equal(t, selector.None, h.RunsOn(1, bytes))
	}
}
