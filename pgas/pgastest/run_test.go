package pgastest_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
)

func TestMain(m *testing.M) { os.Exit(pgastest.Main(m)) }

func TestRanksAreAllThere(t *testing.T) {
	for _, p := range pgastest.Paths() {
		t.Run(p.Name, func(t *testing.T) {
			var seen atomic.Int64
			pgastest.RunConfig(t, 5, p.Config, func(_ context.Context, w *pgas.World) error {
				if w.Size() != 5 {
					return errors.New("size")
				}
				seen.Add(1 << (8 * w.Rank()))
				return nil
			})
			require.EqualValues(t, 0x0101010101, seen.Load())
		})
	}
}

// TestEndOfARankIsAnError: a rank may return an error, panic, or be ended by t.FailNow; the others' barrier ends.
func TestEndOfARankIsAnError(t *testing.T) {
	ends := map[string]func() error{
		"error":  func() error { return errors.New("made up") },
		"panic":  func() error { panic("made up") },
		"goexit": func() error { runtime.Goexit(); return nil },
	}
	for name, end := range ends {
		for _, p := range pgastest.Paths() {
			t.Run(name+"/"+p.Name, func(t *testing.T) {
				start := time.Now()
				p.TimeLimit = time.Minute
				// Nobody dies before all have joined, and nobody else leaves, and is gone too, before all know.
				var joined, told sync.WaitGroup
				joined.Add(4)
				told.Add(3)
				errs := pgastest.Errors(t, 4, p.Config, func(ctx context.Context, w *pgas.World) error {
					joined.Done()
					if w.Rank() == 2 {
						joined.Wait()
						return end()
					}
					err := w.Barrier(ctx)
					told.Done()
					told.Wait()
					return err
				})
				require.Less(t, time.Since(start), 30*time.Second)
				require.Error(t, errs[2])
				for _, r := range []int{0, 1, 3} {
					require.ErrorIs(t, errs[r], pgas.ErrPeerGone, "rank %d", r)
					var oe *pgas.OpError
					require.ErrorAs(t, errs[r], &oe)
					require.Equal(t, 2, oe.Rank, "rank %d: %v", r, errs[r])
				}
			})
		}
	}
}

// fakeTB records what a hang does to its test.
type fakeTB struct {
	testing.TB
	fatal string
}

func (f *fakeTB) Helper()                  {}
func (f *fakeTB) Context() context.Context { return context.Background() }
func (f *fakeTB) Fatalf(format string, args ...any) {
	f.fatal = format
	for _, a := range args {
		if s, ok := a.(string); ok {
			f.fatal += s
		}
	}
}

func TestHangIsReported(t *testing.T) {
	const what = "rank 0: barrier (peer 1)"
	tb, ended := &fakeTB{TB: t}, make(chan struct{}, 2)
	for limit, begun := 300*time.Millisecond, 0; begun < 2 || !strings.Contains(tb.fatal, what); limit *= 2 { // until both have had the time to begin
		require.Less(t, limit, time.Minute, "%d have begun; wanted %q in %s", begun, what, tb.fatal)
		var now atomic.Int32
		tb, ended = &fakeTB{TB: t}, make(chan struct{}, 2)
		pgastest.Errors(tb, 2, pgastest.Config{TimeLimit: limit}, func(ctx context.Context, w *pgas.World) error {
			now.Add(1)
			defer func() { ended <- struct{}{} }()
			if w.Rank() == 1 {
				<-ctx.Done() // never reaches the barrier
				return ctx.Err()
			}
			return w.Barrier(ctx)
		})
		require.Contains(t, tb.fatal, "has not ended")
		begun = int(now.Load())
	}
	require.Contains(t, tb.fatal, "run_test.go:")
	<-ended
	<-ended
}

// TestFirstDeathIsNamed: ranks that leave because of another one do not hide it.
func TestFirstDeathIsNamed(t *testing.T) {
	for range 20 {
		var joined sync.WaitGroup
		joined.Add(4)
		errs := pgastest.Errors(t, 4, pgastest.Config{}, func(ctx context.Context, w *pgas.World) error {
			joined.Done()
			joined.Wait()
			if w.Rank() == 2 {
				return errors.New("made up")
			}
			return w.Barrier(ctx)
		})
		for _, r := range []int{0, 1, 3} {
			require.ErrorContains(t, errs[r], "rank 2 exited", "rank %d", r)
		}
	}
}
