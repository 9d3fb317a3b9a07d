package pgas_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
)

// dataPath returns every data-path call of arrays and global pointers, on elements of both members of a team of two.
func dataPath(ctx context.Context, w *pgas.World) ([]pgastest.Call, error) {
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
	calls := []pgastest.Call{
		{Name: "Ptr.Load", Call: func() error { _, err := p.Load(); return err }},
		{Name: "Ptr.Store", Call: func() error { return p.Store(1) }},
		{Name: "Ptr.Put", Call: func() error { return p.Add(2).Put(buf[:4]) }},
		{Name: "Ptr.Get", Call: func() error { return p.Add(2).Get(buf[:4]) }},
	}
	dealt, err := pgas.NewArray[int64](ctx, w.Team(), 100, pgas.BlockCyclic(7))
	if err != nil {
		return nil, err
	}
	ranges, err := pgas.NewArray[int64](ctx, w.Team(), 100, pgas.Irregular(71, 29))
	if err != nil {
		return nil, err
	}
	m, err := pgas.NewMatrix[int64](ctx, w.Team(), 12, 12, pgas.Grid{Ghost: 1})
	if err != nil {
		return nil, err
	}
	area := pgas.Area{Row: 3, Col: 4, Rows: 5, Cols: 4}
	at := []int{71, 3, 99, 50}
	calls = append(calls,
		pgastest.Call{Name: "Matrix.At", Call: func() error { _, err := m.At(11, 11); return err }},
		pgastest.Call{Name: "Matrix.Set", Call: func() error { return m.Set(11, 11, 1) }},
		pgastest.Call{Name: "Matrix.Put", Call: func() error { return m.Put(area, buf) }},
		pgastest.Call{Name: "Matrix.Get", Call: func() error { return m.Get(area, buf) }})
	for name, a := range map[string]*pgas.Array[int64]{
		"block": block, "cyclic": cyclic, "block-cyclic": dealt, "irregular": ranges,
	} {
		calls = append(calls,
			pgastest.Call{Name: "At " + name, Call: func() error { _, err := a.At(71); return err }},
			pgastest.Call{Name: "Set " + name, Call: func() error { return a.Set(71, 1) }},
			pgastest.Call{Name: "Put across owners " + name, Call: func() error { return a.Put(40, buf) }},
			pgastest.Call{Name: "Get across owners " + name, Call: func() error { return a.Get(40, buf) }},
			pgastest.Call{Name: "Load " + name, Call: func() error { _, err := pgas.Load(a, 71); return err }},
			pgastest.Call{Name: "Store " + name, Call: func() error { return pgas.Store(a, 71, 1) }},
			pgastest.Call{Name: "SwapNB " + name, Call: func() error {
				h, err := pgas.SwapNB(a, 71, 1, &buf[0])
				return errors.Join(err, h.Wait(ctx))
			}},
			pgastest.Call{Name: "CompareSwapNB " + name, Call: func() error {
				h, err := pgas.CompareSwapNB(a, 71, 1, 2, &buf[0])
				return errors.Join(err, h.Wait(ctx))
			}},
			pgastest.Call{Name: "FetchAdd " + name, Call: func() error { _, err := pgas.FetchAdd(a, 71, 1); return err }},
			pgastest.Call{Name: "Swap " + name, Call: func() error { _, err := pgas.Swap(a, 71, 1); return err }},
			pgastest.Call{Name: "CompareSwap " + name, Call: func() error { _, err := pgas.CompareSwap(a, 71, 1, 2); return err }},
			pgastest.Call{Name: "FetchXor " + name, Call: func() error { _, err := pgas.FetchXor(a, 71, 1); return err }},
			pgastest.Call{Name: "Gather " + name, Call: func() error { return a.Gather(buf[:4], at) }},
			pgastest.Call{Name: "Scatter " + name, Call: func() error { return a.Scatter(buf[:4], at) }},
			pgastest.Call{Name: "GetStrided " + name, Call: func() error { return a.GetStrided(90, -9, buf[:8]) }},
			pgastest.Call{Name: "PutStrided " + name, Call: func() error { return a.PutStrided(90, -9, buf[:8]) }},
			pgastest.Call{Name: "Accumulate " + name, Call: func() error { return pgas.Accumulate(a, 40, buf, pgsync.Sum) }},
			pgastest.Call{Name: "Flush " + name, Call: a.Flush})
	}
	return calls, nil
}

func TestDataPathAllocatesNothing(t *testing.T) { pgastest.Calls(dataPath).AllocateNothing(t) }

// TestMillionCallsAllocateNothing sees what an average rounds away.
func TestMillionCallsAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	pgastest.Calls(dataPath).AllocateNothingOften(t)
}

func BenchmarkDataPath(b *testing.B) { pgastest.Calls(dataPath).Benchmark(b) }

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
