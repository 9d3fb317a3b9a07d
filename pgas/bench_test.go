package pgas_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
)

// paths are the ways that a data-path call can take.
var paths = map[string]pgastest.Config{"mapped": {}, "nic": {NIC: true}}

// call is a data-path call of the package.
type call struct {
	name string
	call func() error
}

// dataPath returns every data-path call of arrays and global pointers, on elements of both members of a team of two.
func dataPath(ctx context.Context, w *pgas.World) ([]call, error) {
	block, err := pgas.NewArray[int64](ctx, w.Team(), 100, pgas.Block())
	if err != nil {
		return nil, err
	}
	cyclic, err := pgas.NewArray[int64](ctx, w.Team(), 100, pgas.Cyclic())
	if err != nil {
		return nil, err
	}
	p, err := pgas.Alloc[int64](ctx, w.Team(), 16)
	if err != nil {
		return nil, err
	}
	p = p.On(1)
	buf := make([]int64, 20)
	calls := []call{
		{"Ptr.Load", func() error { _, err := p.Load(); return err }},
		{"Ptr.Store", func() error { return p.Store(1) }},
		{"Ptr.Put", func() error { return p.Add(2).Put(buf[:4]) }},
		{"Ptr.Get", func() error { return p.Add(2).Get(buf[:4]) }},
	}
	for name, a := range map[string]*pgas.Array[int64]{"block": block, "cyclic": cyclic} {
		calls = append(calls,
			call{"At " + name, func() error { _, err := a.At(71); return err }},
			call{"Set " + name, func() error { return a.Set(71, 1) }},
			call{"Put across owners " + name, func() error { return a.Put(40, buf) }},
			call{"Get across owners " + name, func() error { return a.Get(40, buf) }},
			call{"FetchAdd " + name, func() error { _, err := pgas.FetchAdd(a, 71, 1); return err }},
			call{"Swap " + name, func() error { _, err := pgas.Swap(a, 71, 1); return err }},
			call{"CompareSwap " + name, func() error { _, err := pgas.CompareSwap(a, 71, 1, 2); return err }},
			call{"FetchXor " + name, func() error { _, err := pgas.FetchXor(a, 71, 1); return err }},
			call{"Flush " + name, a.Flush})
	}
	return calls, nil
}

// pair runs f on rank 0 of a world of two over each path.
func pair(t *testing.T, f func(path string, calls []call) error) {
	for path, c := range paths {
		t.Run(path, func(t *testing.T) {
			pgastest.RunConfig(t, 2, c, func(ctx context.Context, w *pgas.World) error {
				calls, err := dataPath(ctx, w)
				if err == nil && w.Rank() == 0 {
					if err = f(path, calls); err != nil {
						t.Error(err) // at once: the other rank may take a while to notice
					}
				}
				return err
			})
		})
	}
}

func TestDataPathAllocatesNothing(t *testing.T) {
	pair(t, func(_ string, calls []call) error {
		for _, c := range calls {
			var failed error
			n := testing.AllocsPerRun(100, func() {
				if err := c.call(); err != nil {
					failed = err
				}
			})
			if failed != nil {
				return fmt.Errorf("%s: %w", c.name, failed)
			}
			if n != 0 {
				return fmt.Errorf("%s: %v allocations per call", c.name, n)
			}
		}
		return nil
	})
}

// TestMillionCallsAllocateNothing sees what an average rounds away: one allocation in many calls.
func TestMillionCallsAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	pair(t, func(path string, calls []call) error {
		n := 1_000_000
		if path == "nic" {
			n = 2_000 // each waits for a reply
		}
		allowed := uint64(0)
		if path == "nic" {
			allowed = uint64(n / 200) // a contended mutex takes a record of the runtime's; on the NIC there are mutexes
		}
		least := ^uint64(0)
		for range 5 { // the runtime itself, and the waiting rank, allocate now and then
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range n / len(calls) {
				for _, c := range calls {
					if err := c.call(); err != nil {
						return fmt.Errorf("%s: %w", c.name, err)
					}
				}
			}
			runtime.ReadMemStats(&after)
			if least = min(least, after.Mallocs-before.Mallocs); least <= allowed {
				return nil
			}
		}
		return fmt.Errorf("%d allocations in %d calls", least, n)
	})
}

func BenchmarkDataPath(b *testing.B) {
	for path, c := range paths {
		c.TimeLimit = time.Hour // benchmarks decide how long they run
		b.Run(path, func(b *testing.B) {
			pgastest.RunConfig(b, 2, c, func(ctx context.Context, w *pgas.World) error {
				calls, err := dataPath(ctx, w)
				if err != nil || w.Rank() != 0 {
					return err
				}
				for _, c := range calls {
					b.Run(c.name, func(b *testing.B) {
						b.ReportAllocs()
						for b.Loop() {
							if err := c.call(); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				return nil
			})
		})
	}
}

// BenchmarkBarrier is of goroutine ranks; pgasbench measures processes.
func BenchmarkBarrier(b *testing.B) {
	for _, n := range []int{2, 4} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			pgastest.Run(b, n, func(ctx context.Context, w *pgas.World) error {
				if w.Rank() == 0 {
					b.ReportAllocs()
					b.ResetTimer()
				}
				for range b.N { // b.Loop decides as it goes, and the other ranks must know the number
					if err := w.Barrier(ctx); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}
