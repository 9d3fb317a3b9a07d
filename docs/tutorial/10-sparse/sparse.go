package main

import (
	"cmp"
	"context"
	"slices"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// Entry is an element of the matrix that is not 0. It holds no pointers, so it can be an element of a window.
type Entry struct {
	Row, Col int
	Value    float64
}

// Sparse is the part of a square matrix that this rank has: the rows whose elements of a vector are its own.
type Sparse struct {
	start []int     // the entries of row i are [start[i], start[i+1])
	place []int     // of each entry: where in the vector to multiply with its element stands
	value []float64 // of each entry
	need  []int     // elements of the vector that other ranks own; in that vector they follow this rank's own
}

// NewSparse makes a matrix of n by n of the entries that all ranks bring, whichever rows they are of. Entries of the same
// place add up. Collective.
func NewSparse(ctx context.Context, t *pgas.Team, n int, entries []Entry) (*Sparse, error) {
	rows, err := pgas.NewArray[float64](ctx, t, n, pgas.Block()) // who owns which row: as in every array of length n
	if err != nil {
		return nil, err
	}
	defer rows.Free(ctx)
	mine, err := exchange(ctx, t, rows, entries)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(mine, func(a, b Entry) int { return cmp.Or(a.Row-b.Row, a.Col-b.Col) })
	lo, hi := rows.Range(t.Rank())
	m, at := &Sparse{start: []int{0}}, map[int]int{}
	for row, k := lo, 0; row < hi; row++ {
		for ; k < len(mine) && mine[k].Row == row; k++ {
			col := mine[k].Col
			place, known := col-lo, col >= lo && col < hi
			if !known {
				if place, known = at[col]; !known {
					place = hi - lo + len(m.need)
					at[col], m.need = place, append(m.need, col)
				}
			}
			m.place, m.value = append(m.place, place), append(m.value, mine[k].Value)
		}
		m.start = append(m.start, len(m.value))
	}
	return m, nil
}

// exchange sends each entry to the owner of its row and returns those that this rank was sent. First all ranks say how many
// they have for whom; the sum is the room that each must make. An atomic add hands out places in it.
func exchange(ctx context.Context, t *pgas.Team, rows *pgas.Array[float64], entries []Entry) ([]Entry, error) {
	to := make([][]Entry, t.Size())
	for _, e := range entries {
		owner, _ := rows.Owner(e.Row)
		to[owner] = append(to[owner], e)
	}
	count := make([]int, t.Size())
	for r := range to {
		count[r] = len(to[r])
	}
	if err := pgsync.AllReduce(ctx, t, count, count, pgsync.Sum); err != nil {
		return nil, err
	}
	boxes, err := window.Allocate[Entry](ctx, t, max(1, slices.Max(count)))
	if err != nil {
		return nil, err
	}
	defer boxes.Free(ctx)
	filled, err := window.Allocate[int](ctx, t, 1)
	if err != nil {
		return nil, err
	}
	defer filled.Free(ctx)
	for r := range to {
		at, err := window.FetchAdd(filled, r, 0, len(to[r]))
		if err != nil {
			return nil, err
		}
		if err := boxes.Put(r, at, to[r]); err != nil {
			return nil, err
		}
	}
	if err := boxes.Fence(ctx); err != nil {
		return nil, err
	}
	return slices.Clone(boxes.Local()[:count[t.Rank()]]), nil
}

// Times sets y to the matrix times x; both are arrays in blocks, as long as the matrix. Collective.
func (m *Sparse) Times(ctx context.Context, y, x *pgas.Array[float64]) error {
	if err := x.Fence(ctx); err != nil { // all of x is written
		return err
	}
	own := len(m.start) - 1
	v := make([]float64, own+len(m.need))
	copy(v, x.Local())
	if err := x.Gather(v[own:], m.need); err != nil {
		return err
	}
	out := y.Local()
	for i := range own {
		sum := 0.0
		for k := m.start[i]; k < m.start[i+1]; k++ {
			sum += m.value[k] * v[m.place[k]]
		}
		out[i] = sum
	}
	return y.Fence(ctx) // all of y is written, and all of x read
}
