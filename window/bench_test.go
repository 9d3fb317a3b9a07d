package window_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// paths are the ways that a data-path call can take.
var paths = map[string]pgastest.Config{"mapped": {}, "nic": {NIC: true}, "counted": {Stats: true}}

// dataPath is every data-path call of the package, towards member 1 of a window of n elements.
type dataPath struct {
	win   *window.Window[int64]
	flt   *window.Window[float64]
	one   []int64
	many  []int64
	sig   pgsync.Signal
	calls []struct {
		name string
		call func() error
	}
}

func newDataPath(ctx context.Context, w *pgas.World) (*dataPath, error) {
	d := &dataPath{one: make([]int64, 1), many: make([]int64, 64)}
	var err error
	if d.win, err = window.Allocate[int64](ctx, w.Team(), 64); err != nil {
		return nil, err
	}
	if d.flt, err = window.Allocate[float64](ctx, w.Team(), 64); err != nil {
		return nil, err
	}
	signals, err := pgsync.NewSignals(ctx, w.Team(), 1)
	if err != nil {
		return nil, err
	}
	d.sig = signals.Signal(0)
	add := func(name string, call func() error) {
		d.calls = append(d.calls, struct {
			name string
			call func() error
		}{name, call})
	}
	add("Put 8 B", func() error { return d.win.Put(1, 3, d.one) })
	add("Put 512 B", func() error { return d.win.Put(1, 0, d.many) })
	add("Get 8 B", func() error { return d.win.Get(1, 3, d.one) })
	add("Get 512 B", func() error { return d.win.Get(1, 0, d.many) })
	add("PutNB and Wait", func() error {
		h, err := d.win.PutNB(1, 0, d.many)
		if err != nil {
			return err
		}
		return h.Wait(ctx)
	})
	add("GetNB and Wait", func() error {
		h, err := d.win.GetNB(1, 0, d.many)
		if err != nil {
			return err
		}
		return h.Wait(ctx)
	})
	add("Put and Flush", func() error {
		if err := d.win.Put(1, 3, d.one); err != nil {
			return err
		}
		return d.win.Flush(1)
	})
	add("FlushAll", d.win.FlushAll)
	add("Order", func() error { return d.win.Order(1) })
	add("PutSignal", func() error { return d.win.PutSignal(1, 0, d.one, d.sig, 1) })
	add("FetchAdd", func() error { _, err := window.FetchAdd(d.win, 1, 3, 1); return err })
	add("FetchAdd of floats", func() error { _, err := window.FetchAdd(d.flt, 1, 3, 0.5); return err })
	add("Swap", func() error { _, err := window.Swap(d.win, 1, 3, 1); return err })
	add("CompareSwap", func() error { _, err := window.CompareSwap(d.win, 1, 3, 1, 2); return err })
	add("FetchAnd", func() error { _, err := window.FetchAnd(d.win, 1, 3, 1); return err })
	add("FetchOr", func() error { _, err := window.FetchOr(d.win, 1, 3, 1); return err })
	add("FetchXor", func() error { _, err := window.FetchXor(d.win, 1, 3, 1); return err })
	for op := pgsync.Sum; op <= pgsync.Replace; op++ {
		add("Accumulate "+op.String(), func() error { return window.Accumulate(d.win, 1, 3, d.one, op) })
	}
	add("Accumulate min of floats", func() error {
		return window.Accumulate(d.flt, 1, 0, []float64{1, 2}, pgsync.Min)
	})
	add("Accumulate sum of floats", func() error {
		return window.Accumulate(d.flt, 1, 0, []float64{1, 2}, pgsync.Sum)
	})
	if v, ok := d.win.View(1); ok {
		a := window.Atomics(v)
		add("View and Atomic", func() error {
			v.Store(3, v.Load(3)+1)
			v.Order()
			v.Flush()
			a.Store(3, a.Load(3))
			a.FetchAdd(3, a.Swap(3, a.FetchXor(3, 1)))
			if a.CompareSwap(3, -5, -6) {
				return fmt.Errorf("a compare-swap took a value that was not there")
			}
			return nil
		})
	}
	return d, nil
}

// pair runs f on rank 0 of a world of two over each path.
func pair(t *testing.T, f func(ctx context.Context, name string, d *dataPath) error) {
	for name, c := range paths {
		t.Run(name, func(t *testing.T) {
			pgastest.RunConfig(t, 2, c, func(ctx context.Context, w *pgas.World) error {
				d, err := newDataPath(ctx, w)
				if err != nil || w.Rank() != 0 {
					return err
				}
				if err := f(ctx, name, d); err != nil {
					t.Error(err) // at once: the other rank may take a while to notice
					return err
				}
				return nil
			})
		})
	}
}

func TestDataPathAllocatesNothing(t *testing.T) {
	pair(t, func(_ context.Context, _ string, d *dataPath) error {
		for _, c := range d.calls {
			var failed error
			n := testing.AllocsPerRun(200, func() {
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
	pair(t, func(_ context.Context, name string, d *dataPath) error {
		calls := 1_000_000
		for range 256 { // as many as this path has pieces: what it makes once is there
			for _, c := range d.calls {
				if err := c.call(); err != nil {
					return err
				}
			}
		}
		// Over a NIC there are mutexes, and a contended one takes a record of the runtime's that this thread's stock may
		// not have: 19 to 185 in a million calls. Each call waits for a reply, hence fewer of them.
		allowed := uint64(0)
		if name == "nic" {
			calls, allowed = 100_000, 100
		}
		least := ^uint64(0)
		for range 5 { // the runtime itself, and the waiting rank, allocate now and then
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range calls / len(d.calls) {
				for _, c := range d.calls {
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
		return fmt.Errorf("%d allocations in %d calls", least, calls)
	})
}

func BenchmarkDataPath(b *testing.B) {
	for name, c := range paths {
		c.TimeLimit = time.Hour // benchmarks decide how long they run
		b.Run(name, func(b *testing.B) {
			pgastest.RunConfig(b, 2, c, func(ctx context.Context, w *pgas.World) error {
				d, err := newDataPath(ctx, w)
				if err != nil || w.Rank() != 0 {
					return err
				}
				for _, c := range d.calls {
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

func BenchmarkView(b *testing.B) {
	pgastest.Run(b, 2, func(ctx context.Context, w *pgas.World) error {
		d, err := newDataPath(ctx, w)
		if err != nil || w.Rank() != 0 {
			return err
		}
		v, ok := d.win.View(1)
		if !ok {
			return fmt.Errorf("no view of mapped memory")
		}
		a := window.Atomics(v)
		var sum int64
		b.Run("Store and Order", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				v.Store(3, 1)
				v.Order()
			}
		})
		b.Run("Load", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sum += v.Load(3)
			}
		})
		b.Run("FetchAdd", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sum += a.FetchAdd(3, 1)
			}
		})
		runtime.KeepAlive(&sum)
		return nil
	})
}

// BenchmarkSizes moves blocks.
func BenchmarkSizes(b *testing.B) {
	for name, c := range paths {
		c.TimeLimit = time.Hour // benchmarks decide how long they run
		b.Run(name, func(b *testing.B) {
			pgastest.RunConfig(b, 2, c, func(ctx context.Context, w *pgas.World) error {
				win, err := window.Allocate[byte](ctx, w.Team(), 1<<20)
				if err != nil || w.Rank() != 0 {
					return err
				}
				buf := make([]byte, 1<<20)
				for _, size := range []int{64, 4 << 10, 64 << 10, 1 << 20} {
					for op, call := range map[string]func(int, int, []byte) error{"put": win.Put, "get": win.Get} {
						b.Run(fmt.Sprintf("%s %d", op, size), func(b *testing.B) {
							b.SetBytes(int64(size))
							b.ReportAllocs()
							for b.Loop() {
								if err := call(1, 0, buf[:size]); err != nil {
									b.Error(err)
									return
								}
							}
						})
					}
				}
				return win.FlushAll()
			})
		})
	}
}
