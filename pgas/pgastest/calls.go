package pgastest

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"
	"time"

	"gopgas/pgas"
)

// Call is a call of the data path, by one rank.
type Call struct {
	Name string
	Call func() error
}

// Calls makes the calls of one rank of a world of two that are to be counted and timed; it runs on both ranks.
type Calls func(ctx context.Context, w *pgas.World) ([]Call, error)

// callPaths are the ways that a data-path call can take, those of Paths on which it does other things. PGAS_TEST_PATHS names others.
func callPaths() []Named {
	all := []Named{{"mapped", Config{}}, {"counted", Config{Stats: true}}, {"nic", Config{NIC: true}}}
	return pick(all, os.Getenv(PathsVariable))
}

// allCallPaths are these, and without -short the NICs that every machine has; not in race builds, in which tcp copies what it sends.
func allCallPaths() []Named {
	all := callPaths()
	if os.Getenv(PathsVariable) == "" && !testing.Short() && !raceEnabled && mayPin() {
		all = append(all, over("soft"), over("tcp"))
	}
	return all
}

// oftenPaths are these where PGAS_TEST_CALLS says how many calls there are to be, since a million take minutes over tcp; else the first ones.
func oftenPaths() []Named {
	if os.Getenv(callsVariable) == "" {
		return callPaths()
	}
	return allCallPaths()
}

// pair runs f on rank 0 of a world of two on each of the paths.
func (c Calls) pair(t *testing.T, paths []Named, f func(path Named, calls []Call) error) {
	t.Helper()
	for _, p := range paths {
		p.TimeLimit = 20 * time.Minute // millions of calls over a NIC, of which a busy machine makes few in a second
		t.Run(p.Name, func(t *testing.T) {
			RunConfig(t, 2, p.Config, func(ctx context.Context, w *pgas.World) error {
				calls, err := c(ctx, w)
				if err != nil || w.Rank() != 0 {
					return err
				}
				if err := f(p, calls); err != nil {
					t.Error(err) // at once: the other rank may take a while to notice
					return err
				}
				return nil
			})
		})
	}
}

// AllocateNothing fails the test if one of the calls allocates.
func (c Calls) AllocateNothing(t *testing.T) {
	t.Helper()
	c.pair(t, allCallPaths(), func(path Named, calls []Call) error {
		for _, c := range calls {
			var failed error
			call := func() {
				if err := c.Call(); err != nil {
					failed = err
				}
			}
			for range 32 { // what a NIC measures once, it has measured then
				call()
			}
			n := testing.AllocsPerRun(200, call)
			for range 30 { // what transfers cost over a NIC of processes is measured once, beside the calls, and that allocates for a moment
				if n == 0 || failed != nil || path.Over == "" {
					break
				}
				time.Sleep(100 * time.Millisecond)
				n = testing.AllocsPerRun(200, call)
			}
			if failed != nil {
				return fmt.Errorf("%s: %w", c.Name, failed)
			}
			if n != 0 {
				return fmt.Errorf("%s: %v allocations per call", c.Name, n)
			}
		}
		return nil
	})
}

// stock has the runtime make more records of waiting goroutines than are ever in use here. It makes one where a goroutine must wait, for a lock of a
// NIC say, and there is none at hand, and keeps it for the next wait of any; a collection throws some away, so none takes place until restock is called.
// What is not at hand is counted as an allocation of the call that waits, which it is no more than a thread's stack is.
func stock() (restock func()) {
	percent := debug.SetGCPercent(-1)
	gate := make(chan struct{})
	var begun, ended sync.WaitGroup
	for range 2000 {
		begun.Add(1)
		ended.Go(func() { begun.Done(); <-gate })
	}
	begun.Wait()
	time.Sleep(10 * time.Millisecond) // those that have begun wait next
	close(gate)
	ended.Wait()
	return func() { debug.SetGCPercent(percent) }
}

// callsVariable bounds the calls over a NIC where a machine is too slow for a million.
const callsVariable = "PGAS_TEST_CALLS"

// often is how many calls are made on a path of which none may allocate: a million, or on a NIC, where each waits for a reply, what PGAS_TEST_CALLS
// says, or a tenth, and with -short a hundredth.
func (p Named) often() (int, error) {
	const all = 1_000_000
	bound := os.Getenv(callsVariable)
	switch {
	case !p.NIC:
		return all, nil
	case bound != "":
		n, err := strconv.Atoi(bound)
		if err == nil && n < 1 {
			err = fmt.Errorf("%d calls would show nothing; give 1 or more", n)
		}
		return n, err
	case testing.Short():
		return all / 100, nil
	}
	return all / 10, nil
}

// AllocateNothingOften sees what an average rounds away: one allocation in a million calls, or however many PGAS_TEST_CALLS and -short leave
// of those over a NIC. Only where PGAS_TEST_CALLS is set it makes them over soft and tcp, too.
// The race detector allocates; it is not for race builds.
func (c Calls) AllocateNothingOften(t *testing.T) {
	t.Helper()
	c.pair(t, oftenPaths(), func(path Named, calls []Call) error {
		n, err := path.often()
		if err != nil {
			return fmt.Errorf("%s: %w", callsVariable, err)
		}
		defer stock()()
		for range 256 { // as many as a NIC has pieces: what is made once is there
			for _, c := range calls {
				if err := c.Call(); err != nil {
					return fmt.Errorf("%s: %w", c.Name, err)
				}
			}
		}
		// What transfers cost is measured once, beside the calls, when so many have been made that it may pay: in these, where n is a million.
		if _, err := mallocs(calls, n/4); err != nil {
			return err
		}
		least := ^uint64(0)
		rounds := 5 // the runtime itself, and the waiting rank, allocate now and then
		if path.Over != "" {
			rounds = 10 // and a thread more, say
		}
		for range rounds {
			made, err := mallocs(calls, n)
			if err != nil {
				return err
			}
			t.Logf("%s: %d allocations in %d calls", path.Name, made, n)
			if least = min(least, made); least == 0 {
				return nil
			}
		}
		return fmt.Errorf("%d allocations in %d calls", least, n)
	})
}

// mallocs makes n calls, in turn, and returns how many allocations there were meanwhile in the whole process.
func mallocs(calls []Call, n int) (uint64, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range n {
		if err := calls[i%len(calls)].Call(); err != nil {
			return 0, fmt.Errorf("%s: %w", calls[i%len(calls)].Name, err)
		}
	}
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs, nil
}

// OverPaths runs f on rank 0 of worlds of two, on each path that a call can take; rank 1 makes what f uses too, and
// waits for the end.
func OverPaths[V any](b *testing.B, made func(context.Context, *pgas.World) (V, error), f func(b *testing.B, v V)) {
	for _, p := range callPaths() {
		p.TimeLimit = time.Hour // benchmarks decide how long they run
		b.Run(p.Name, func(b *testing.B) {
			RunConfig(b, 2, p.Config, func(ctx context.Context, w *pgas.World) error {
				v, err := made(ctx, w)
				if err != nil || w.Rank() != 0 {
					return err
				}
				f(b, v)
				return nil
			})
		})
	}
}

// Benchmark times each of the calls.
func (c Calls) Benchmark(b *testing.B) {
	OverPaths(b, c, func(b *testing.B, calls []Call) {
		for _, c := range calls {
			b.Run(c.Name, func(b *testing.B) { Loop(b, 0, c.Call) })
		}
	})
}

// Loop times one call, which moves so many bytes; 0: they do not count.
func Loop(b *testing.B, bytes int, call func() error) {
	b.SetBytes(int64(bytes))
	b.ReportAllocs()
	for b.Loop() {
		if err := call(); err != nil {
			b.Error(err)
			return
		}
	}
}
