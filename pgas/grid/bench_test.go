package grid_test

import (
	"context"
	"testing"

	"gopgas/pgas"
	"gopgas/pgas/grid"
	"gopgas/pgas/pgastest"
)

// dataPath are calls of the data path, and beside them the same of a matrix.
var dataPath = pgastest.Calls(func(ctx context.Context, w *pgas.World) ([]pgastest.Call, error) {
	a, err := grid.New[int64](ctx, w.Team(), []int{8, 8, 8}, grid.Config{Parts: []int{1, 2, 1}, Ghost: []int{1, 1, 1}})
	if err != nil {
		return nil, err
	}
	flat, err := grid.New[int64](ctx, w.Team(), []int{32, 32}, grid.Config{Parts: []int{1, 2}})
	if err != nil {
		return nil, err
	}
	m, err := pgas.NewMatrix[int64](ctx, w.Team(), 32, 32, pgas.Grid{Rows: 1, Cols: 2})
	if err != nil {
		return nil, err
	}
	b, square := grid.Box{Lo: []int{1, 2, 3}, Hi: []int{3, 6, 5}}, grid.Box{Lo: []int{4, 12}, Hi: []int{12, 20}}
	buf, area := make([]int64, b.Len()), pgas.Area{Row: 4, Col: 12, Rows: 8, Cols: 8}
	plane := make([]int64, square.Len())
	return []pgastest.Call{
		{Name: "At", Call: func() error { _, err := a.At(0, 7, 0); return err }},
		{Name: "Set", Call: func() error { return a.Set(1, 0, 7, 0) }},
		{Name: "FetchAdd", Call: func() error { _, err := grid.FetchAdd(a, 1, 0, 7, 0); return err }},
		{Name: "Put", Call: func() error { return a.Put(b, buf) }},
		{Name: "Get", Call: func() error { return a.Get(b, buf) }},
		{Name: "Row", Call: func() error { _ = a.Row(0, 0); return nil }},
		{Name: "Get flat", Call: func() error { return flat.Get(square, plane) }},
		{Name: "Get flat of Matrix", Call: func() error { return m.Get(area, plane) }},
	}, nil
})

func TestDataPathAllocatesNothing(t *testing.T) { dataPath.AllocateNothing(t) }

func BenchmarkDataPath(b *testing.B) { dataPath.Benchmark(b) }
