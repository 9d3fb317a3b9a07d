package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// heat diffuses a square of columns×rows cells, whole rows to each rank, for some steps: each step puts a rank's edge
// rows into its neighbours' halo, fences, and computes. The heat at the end must be what one process computes.
type heat struct {
	columns, rowsEach, steps int
	cell                     time.Duration // virtual time to compute one cell
	want                     []float64     // of all cells at the end; nil: not checked
}

// on returns h with what is wanted of it on so many ranks.
func (h heat) on(ranks int) heat {
	h.want = h.alone(ranks)
	return h
}

func (h heat) run(ctx context.Context, w *pgas.World) error {
	me, n, c := w.Rank(), w.Size(), h.columns
	// Two halves, so that a step's puts do not meet the reading of the one before: above and below in each.
	halo, err := window.Allocate[float64](ctx, w.Team(), 4*c)
	if err != nil {
		return err
	}
	field := make([]float64, h.rowsEach*c)
	next := make([]float64, len(field))
	for i := range field {
		field[i] = h.start(me*h.rowsEach+i/c, i%c)
	}
	for step := range h.steps {
		half := step % 2 * 2 * c
		if me > 0 {
			if err := halo.Put(me-1, half+c, field[:c]); err != nil {
				return err
			}
		}
		if me < n-1 {
			if err := halo.Put(me+1, half, field[len(field)-c:]); err != nil {
				return err
			}
		}
		if err := halo.Fence(ctx); err != nil {
			return err
		}
		edge := halo.Local()[half : half+2*c]
		h.step(next, field, edge[:c], edge[c:])
		pgastest.Compute(w, time.Duration(len(field))*h.cell)
		field, next = next, field
	}
	sum := []float64{0}
	for _, v := range field {
		sum[0] += v
	}
	if err := pgsync.AllReduce(ctx, w.Team(), sum, sum, pgsync.Sum); err != nil {
		return err
	}
	if h.want != nil {
		total := 0.0
		for _, v := range h.want {
			total += v
		}
		if math.Abs(sum[0]-total) > 1e-9*total {
			return fmt.Errorf("the heat is %v, not %v", sum[0], total)
		}
		if mine := h.want[me*len(field):][:len(field)]; !slices.Equal(field, mine) { // the same sums in the same order
			return errors.New("the cells of this rank are not those of one process")
		}
	}
	return halo.Free(ctx)
}

func (heat) start(row, column int) float64 { return float64((row*31+column*17)%101) + 1 }

// step averages each cell with the four beside it; those at the edges of the square see zeroes beyond.
func (h heat) step(next, field, above, below []float64) {
	c := h.columns
	at := func(row, column int) float64 {
		switch {
		case column < 0 || column == c:
			return 0
		case row < 0:
			return above[column]
		case row == h.rowsEach:
			return below[column]
		default:
			return field[row*c+column]
		}
	}
	for row := range h.rowsEach {
		for column := range c {
			next[row*c+column] = (at(row-1, column) + at(row, column-1) + 4*at(row, column) + at(row, column+1) + at(row+1, column)) / 8
		}
	}
}

// alone computes the same on one rank.
func (h heat) alone(ranks int) []float64 {
	rows := ranks * h.rowsEach
	one := heat{columns: h.columns, rowsEach: rows}
	field, zero := make([]float64, rows*h.columns), make([]float64, h.columns)
	next := make([]float64, len(field))
	for i := range field {
		field[i] = h.start(i/h.columns, i%h.columns)
	}
	for range h.steps {
		one.step(next, field, zero, zero)
		field, next = next, field
	}
	return field
}

// isx sorts integers as the ISx benchmark does: every rank makes keys, hands each to the rank in whose bucket, a range of values, it
// lies, and where room for it is claimed by a fetch-and-add; each rank sorts what it has received.
type isx struct {
	keysEach, buckets int // buckets: how many ranks each rank's keys go to
	key               time.Duration
}

// isxWidth is how many values a bucket has: rank r's are those from r*isxWidth on.
const isxWidth = 1 << 16

func (x isx) run(ctx context.Context, w *pgas.World) error {
	me, n := w.Rank(), w.Size()
	spread := min(x.buckets, n)
	room := 4 * x.keysEach
	keys, err := window.Allocate[uint32](ctx, w.Team(), room)
	if err != nil {
		return err
	}
	fill, err := pgas.NewArray[int64](ctx, w.Team(), n, pgas.Block())
	if err != nil {
		return err
	}
	mine := make([][]uint32, n) // by bucket
	rng := uint32(me)*2654435761 + 1
	var sent uint64
	for range x.keysEach {
		rng ^= rng << 13
		rng ^= rng >> 17
		rng ^= rng << 5
		near := (me + 1 + int(rng)%spread*(n/spread)) % n // one of few ranks, so that there are not n*n transfers
		key := uint32(near)*isxWidth + rng/uint32(spread)%isxWidth
		mine[key/isxWidth] = append(mine[key/isxWidth], key)
		sent += square(key)
	}
	pgastest.Compute(w, time.Duration(x.keysEach)*x.key)
	for b := range spread {
		to := (me + 1 + b*(n/spread)) % n
		ks := mine[to]
		at, err := pgas.FetchAdd(fill, to, int64(len(ks)))
		if err != nil {
			return err
		}
		if int(at)+len(ks) > room {
			return fmt.Errorf("rank %d has no room for %d keys behind %d", to, len(ks), at)
		}
		if err := keys.Put(to, int(at), ks); err != nil {
			return err
		}
	}
	if err := keys.Fence(ctx); err != nil {
		return err
	}
	got := fill.Local()[0]
	bucket := keys.Local()[:got]
	slices.Sort(bucket)
	var received uint64
	for _, k := range bucket {
		received += square(k)
	}
	pgastest.Compute(w, time.Duration(got)*x.key)
	if got > 0 && (bucket[0]/isxWidth != uint32(me) || bucket[got-1]/isxWidth != uint32(me)) {
		return fmt.Errorf("keys from %d to %d are in the bucket of rank %d", bucket[0], bucket[got-1], me)
	}
	sums := []uint64{sent, received, uint64(got)}
	if err := pgsync.AllReduce(ctx, w.Team(), sums, sums, pgsync.Sum); err != nil {
		return err
	}
	if sums[0] != sums[1] || sums[2] != uint64(n*x.keysEach) {
		return fmt.Errorf("%d keys arrived of %d, with the sum of squares %d and not %d", sums[2], n*x.keysEach, sums[1], sums[0])
	}
	if err := fill.Free(ctx); err != nil {
		return err
	}
	return keys.Free(ctx)
}

// square of a key: no lost or changed key leaves the sum of all as it was.
func square(key uint32) uint64 { return uint64(key) * uint64(key) }
