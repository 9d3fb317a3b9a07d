package pgas_test

import (
	"context"
	"errors"
	"fmt"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
)

// What a program does stands in the function that Main is given; here ranks are goroutines.
func ExampleWorld() {
	pgastest.Example(3, func(ctx context.Context, w *pgas.World) error {
		sum := []int{w.Rank()}
		if err := pgsync.AllReduce(ctx, w.Team(), sum, sum, pgsync.Sum); err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Println("the ranks of", w.Size(), "add up to", sum[0])
		}
		return nil
	})
	// Output: the ranks of 3 add up to 3
}

// Each rank fills its part, and one of them reads across all.
func ExampleArray() {
	pgastest.Example(3, func(ctx context.Context, w *pgas.World) error {
		a, err := pgas.NewArray[int](ctx, w.Team(), 8, pgas.Block())
		if err != nil {
			return err
		}
		for i, x := range a.Mine() {
			*x = i * i
		}
		if err := a.Fence(ctx); err != nil {
			return err
		}
		if w.Rank() == 2 {
			all := make([]int, 8)
			if err := a.Get(0, all); err != nil {
				return err
			}
			fmt.Println(all)
		}
		return a.Free(ctx)
	})
	// Output: [0 1 4 9 16 25 36 49]
}

// Who owns what of ten elements on three ranks.
func ExampleLayout() {
	pgastest.Example(3, func(ctx context.Context, w *pgas.World) error {
		for _, l := range []pgas.Layout{pgas.Block(), pgas.Cyclic(), pgas.BlockCyclic(2), pgas.Irregular(1, 6, 3)} {
			a, err := pgas.NewArray[int8](ctx, w.Team(), 10, l)
			if err != nil {
				return err
			}
			if w.Rank() == 0 {
				for i := range a.Len() {
					owner, _ := a.Owner(i)
					fmt.Print(owner, " ")
				}
				fmt.Println(l)
			}
			if err := a.Free(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	// Output:
	// 0 0 0 0 1 1 1 2 2 2 block
	// 0 1 2 0 1 2 0 1 2 0 cyclic
	// 0 0 1 1 2 2 0 0 1 1 blocks of 2 dealt out
	// 0 1 1 1 1 1 1 2 2 2 irregular [1 6 3]
}

func ExampleArray_Gather() {
	pgastest.Example(2, func(ctx context.Context, w *pgas.World) error {
		a, err := pgas.NewArray[int](ctx, w.Team(), 100, pgas.Cyclic())
		if err != nil {
			return err
		}
		if err := a.Apply(ctx, func(i, _ int) int { return 10 * i }); err != nil {
			return err
		}
		if w.Rank() == 1 {
			got := make([]int, 4)
			if err := a.Gather(got, []int{99, 0, 5, 5}); err != nil {
				return err
			}
			fmt.Println(got)
		}
		return a.Free(ctx)
	})
	// Output: [990 0 50 50]
}

func ExampleReduce() {
	pgastest.Example(4, func(ctx context.Context, w *pgas.World) error {
		a, err := pgas.NewArray[float64](ctx, w.Team(), 1000, pgas.Block())
		if err != nil {
			return err
		}
		if err := a.Fill(ctx, 0.5); err != nil {
			return err
		}
		sum, err := pgas.Reduce(ctx, a, pgsync.Sum)
		if err != nil {
			return err
		}
		if w.Rank() == 3 {
			fmt.Println(sum)
		}
		return a.Free(ctx)
	})
	// Output: 500
}

// Where rows of a sparse matrix begin, from their lengths: an array that is dealt out is as good as any.
func ExampleScan() {
	pgastest.Example(3, func(ctx context.Context, w *pgas.World) error {
		ends, err := pgas.NewArray[int](ctx, w.Team(), 7, pgas.Cyclic())
		if err != nil {
			return err
		}
		if err := ends.Apply(ctx, func(i, _ int) int { return i % 3 }); err != nil {
			return err
		}
		if err := pgas.Scan(ctx, ends, pgsync.Sum); err != nil {
			return err
		}
		if w.Rank() == 2 {
			for end, err := range ends.All(ctx, 0, ends.Len()) {
				if err != nil {
					return err
				}
				fmt.Print(end, " ")
			}
			fmt.Println()
		}
		return ends.Free(ctx)
	})
	// Output: 0 1 3 3 4 6 6
}

// One step of a stencil: every element becomes the sum of its four neighbours, around the edges.
func ExampleMatrix() {
	pgastest.Example(4, func(ctx context.Context, w *pgas.World) error {
		g := pgas.Grid{Ghost: 1, PeriodicRows: true, PeriodicCols: true}
		var m [2]*pgas.Matrix[int]
		for k := range m {
			var err error
			if m[k], err = pgas.NewMatrix[int](ctx, w.Team(), 4, 6, g); err != nil {
				return err
			}
		}
		if w.Rank() == 0 {
			if err := m[0].Set(0, 0, 1); err != nil {
				return err
			}
		}
		if err := m[0].UpdateGhosts(ctx); err != nil {
			return err
		}
		b := m[0].Block(w.Rank())
		for i := range b.Rows {
			above, row, below, to := m[0].Row(i-1), m[0].Row(i), m[0].Row(i+1), m[1].Row(i)
			for j := 1; j <= b.Cols; j++ {
				to[j] = above[j] + row[j-1] + row[j+1] + below[j]
			}
		}
		if err := m[1].Fence(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			all := make([]int, 4*6)
			if err := m[1].Get(pgas.Area{Rows: 4, Cols: 6}, all); err != nil {
				return err
			}
			for i := range 4 {
				fmt.Println(all[i*6 : (i+1)*6])
			}
		}
		return errors.Join(m[0].Free(ctx), m[1].Free(ctx))
	})
	// Output:
	// [0 1 0 0 0 1]
	// [1 0 0 0 0 0]
	// [0 0 0 0 0 0]
	// [1 0 0 0 0 0]
}

// How a grid of twelve members is laid over matrices of two shapes.
func ExampleGrid() {
	pgastest.Example(12, func(ctx context.Context, w *pgas.World) error {
		for _, size := range [][2]int{{600, 600}, {6000, 60}} {
			m, err := pgas.NewMatrix[int8](ctx, w.Team(), size[0], size[1], pgas.Grid{})
			if err != nil {
				return err
			}
			if w.Rank() == 0 {
				b := m.Block(0)
				fmt.Printf("%d by %d: %d by %d blocks of %d by %d\n", size[0], size[1], m.Grid().Rows, m.Grid().Cols, b.Rows, b.Cols)
			}
			if err := m.Free(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	// Output:
	// 600 by 600: 3 by 4 blocks of 200 by 150
	// 6000 by 60: 12 by 1 blocks of 500 by 60
}

// Every third element of every second row, whoever owns them.
func ExampleArea() {
	pgastest.Example(3, func(ctx context.Context, w *pgas.World) error {
		m, err := pgas.NewMatrix[int](ctx, w.Team(), 5, 10, pgas.Grid{Rows: 3})
		if err != nil {
			return err
		}
		if err := m.Apply(ctx, func(i, j, _ int) int { return 10*i + j }); err != nil {
			return err
		}
		if w.Rank() == 1 {
			got := make([]int, 6)
			if err := m.Get(pgas.Area{Row: 1, Rows: 2, RowStep: 2, Col: 2, Cols: 3, ColStep: 3}, got); err != nil {
				return err
			}
			fmt.Println(got)
		}
		return m.Free(ctx)
	})
	// Output: [12 15 18 32 35 38]
}

// All ranks add to the middle of a matrix, and one of them looks at a diagonal.
func ExampleAccumulateArea() {
	pgastest.Example(4, func(ctx context.Context, w *pgas.World) error {
		m, err := pgas.NewMatrix[int](ctx, w.Team(), 4, 4, pgas.Grid{})
		if err != nil {
			return err
		}
		if err := pgas.AccumulateArea(m, pgas.Area{Row: 1, Rows: 2, Col: 1, Cols: 2}, []int{1, 2, 3, 4}, pgsync.Sum); err != nil {
			return err
		}
		if err := m.Fence(ctx); err != nil {
			return err
		}
		if w.Rank() == 3 {
			got := make([]int, 4)
			if err := m.Gather(got, [][2]int{{0, 0}, {1, 1}, {2, 2}, {3, 3}}); err != nil {
				return err
			}
			fmt.Println(got)
		}
		return m.Free(ctx)
	})
	// Output: [0 4 16 0]
}

// An element that others may change by atomics meanwhile is loaded and stored by atomics too.
func ExampleLoad() {
	pgastest.Example(2, func(ctx context.Context, w *pgas.World) error {
		a, err := pgas.NewArray[float64](ctx, w.Team(), 6, pgas.Block())
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			if err := errors.Join(pgas.Store(a, 5, 2.5), a.Flush()); err != nil {
				return err
			}
			v, err := pgas.Load(a, 5)
			if err != nil {
				return err
			}
			fmt.Println(v)
		}
		return a.Free(ctx)
	})
	// Output: 2.5
}

// A pointer to the same element of another rank.
func ExamplePtr() {
	pgastest.Example(2, func(ctx context.Context, w *pgas.World) error {
		p, err := pgas.Alloc[int](ctx, w.Team(), 10)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			q := p.On(1).Add(3)
			if err := errors.Join(q.Store(42), p.Window().Flush(1)); err != nil {
				return err
			}
			v, err := q.Load()
			fmt.Println(v, q.Member(), q.Sub(p.On(1)), err)
		}
		return p.Free(ctx)
	})
	// Output: 42 1 3 <nil>
}

// An error says which operation it was, and which rank it was about.
func ExampleOpError() {
	pgastest.Example(1, func(ctx context.Context, w *pgas.World) error {
		a, err := pgas.NewArray[int](ctx, w.Team(), 10, pgas.Block())
		if err != nil {
			return err
		}
		err = a.Put(8, []int{1, 2, 3})
		var oe *pgas.OpError
		fmt.Println(errors.As(err, &oe), oe.Op, errors.Is(err, pgas.ErrRange))
		fmt.Println(err)
		return a.Free(ctx)
	})
	// Output:
	// true put true
	// put: out of range: elements [8, 11) of an array of 10
}
