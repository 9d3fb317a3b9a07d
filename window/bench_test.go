package window_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// dataPath is every data-path call of the package, towards member 1 of a window of n elements.
type dataPath struct {
	win   *window.Window[int64]
	flt   *window.Window[float64]
	one   []int64
	many  []int64
	sig   pgsync.Signal
	calls []pgastest.Call
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
		d.calls = append(d.calls, pgastest.Call{Name: name, Call: call})
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
	add("Put, FlushNB and Wait", func() error {
		if err := d.win.Put(1, 3, d.one); err != nil {
			return err
		}
		h, err := d.win.FlushNB(1)
		if err != nil {
			return err
		}
		return h.Wait(ctx)
	})
	add("PutStrided", func() error { return d.win.PutStrided(1, 0, 2, d.many, 1, 30) })
	add("GetStrided", func() error { return d.win.GetStrided(1, 0, 2, d.many, 1, 30) })
	add("PutSection", func() error { return d.win.PutSection(1, 0, d.many, window.Packed(6, 4, 10)) })
	add("GetSection", func() error { return d.win.GetSection(1, 0, d.many, window.Packed(6, 4, 10)) })
	pieces := []window.Piece{{Target: 1, Section: window.Packed(2, 3, 8)}, {Target: 0, Disp: 5, Near: 9, Section: window.Packed(4, 1, 3)}}
	add("PutSections", func() error { return d.win.PutSections(d.many, pieces) })
	add("GetSections", func() error { return d.win.GetSections(d.many, pieces) })
	disps := []int{60, 7, 8, 30}
	add("PutIndexed", func() error { return d.win.PutIndexed(1, disps, d.many[:4]) })
	add("GetIndexed", func() error { return d.win.GetIndexed(1, disps, d.many[:4]) })
	at := func(i int) (int, int) { return i % 2, disps[i] }
	add("Scatter", func() error { return d.win.Scatter(d.many[:4], at) })
	add("Gather", func() error { return d.win.Gather(d.many[:4], at) })
	add("GetAccumulate", func() error { return window.GetAccumulate(d.win, 1, 8, d.many[:4], d.many[:4], pgsync.Sum) })
	add("GetAccumulate max", func() error { return window.GetAccumulate(d.win, 1, 8, d.many[:4], d.many[:4], pgsync.Max) })
	add("GetIndexed to the stack", func() error {
		var two [2]int64
		return d.win.GetIndexed(1, disps[:2], two[:])
	})
	add("FlushLocal", func() error { return d.win.FlushLocal(1) })
	add("PutSignalAdd", func() error { return d.win.PutSignalAdd(1, 0, d.one, d.sig, 1) })
	add("FlushAll", d.win.FlushAll)
	add("Order", func() error { return d.win.Order(1) })
	add("PutSignal", func() error { return d.win.PutSignal(1, 0, d.one, d.sig, 1) })
	add("Load", func() error { _, err := window.Load(d.win, 1, 3); return err })
	add("Load of floats", func() error { _, err := window.Load(d.flt, 1, 3); return err })
	add("Store", func() error { return window.Store(d.win, 1, 3, 1) })
	add("Store of floats", func() error { return window.Store(d.flt, 1, 3, 1) })
	add("LoadNB and Wait", func() error {
		h, err := window.LoadNB(d.win, 1, 3, &d.one[0])
		if err != nil {
			return err
		}
		return h.Wait(ctx)
	})
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

// timed are the calls of a dataPath.
func timed(ctx context.Context, w *pgas.World) ([]pgastest.Call, error) {
	d, err := newDataPath(ctx, w)
	if err != nil {
		return nil, err
	}
	return d.calls, nil
}

func TestDataPathAllocatesNothing(t *testing.T) { pgastest.Calls(timed).AllocateNothing(t) }

// TestMillionCallsAllocateNothing sees what an average rounds away.
func TestMillionCallsAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	pgastest.Calls(timed).AllocateNothingOften(t)
}

func BenchmarkDataPath(b *testing.B) { pgastest.Calls(timed).Benchmark(b) }

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
	made := func(ctx context.Context, w *pgas.World) (*window.Window[byte], error) {
		return window.Allocate[byte](ctx, w.Team(), 1<<20)
	}
	pgastest.OverPaths(b, made, func(b *testing.B, win *window.Window[byte]) {
		buf := make([]byte, 1<<20)
		for _, size := range []int{64, 4 << 10, 64 << 10, 1 << 20} {
			for op, call := range map[string]func(int, int, []byte) error{"put": win.Put, "get": win.Get} {
				b.Run(fmt.Sprintf("%s %d", op, size), func(b *testing.B) {
					pgastest.Loop(b, size, func() error { return call(1, 0, buf[:size]) })
				})
			}
		}
		if err := win.FlushAll(); err != nil {
			b.Error(err)
		}
	})
}
