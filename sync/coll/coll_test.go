package coll_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/sync/coll"
)

// lengths are empty, odd, and longer than an outbox or not; long ones are left to small worlds.
func lengths(n int) []int {
	if n > 17 {
		return []int{0, 1, 3, 301}
	}
	return []int{0, 1, 3, 301, 5001}
}

// element is what member m has at place i.
func element(m, i int) int32 { return int32(m*100_000 + i) }

func elements(m, n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = element(m, i)
	}
	return out
}

// same compares what a member has got with a plain slice.
func same[T comparable](what string, got, want []T) error {
	if slices.Equal(got, want) {
		return nil
	}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			return fmt.Errorf("%s: %d elements of %d, differ from %d on", what, len(got), len(want), i)
		}
	}
	return fmt.Errorf("%s: %d elements, want %d", what, len(got), len(want))
}

func roots(n int) []int { return slices.Compact([]int{0, n / 2, n - 1}) }

func TestGather(t *testing.T) {
	everywhere(t, func(ctx context.Context, w *pgas.World) error {
		n := w.Size()
		for _, k := range lengths(n) {
			for _, root := range roots(n) {
				var dst, want []int32
				if w.Rank() == root {
					dst = make([]int32, n*k)
					for m := range n {
						want = append(want, elements(m, k)...)
					}
				}
				if err := coll.Gather(ctx, w.Team(), dst, elements(w.Rank(), k), root); err != nil {
					return err
				}
				if err := same(fmt.Sprintf("gather of %d to %d", k, root), dst, want); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func TestScatter(t *testing.T) {
	everywhere(t, func(ctx context.Context, w *pgas.World) error {
		n := w.Size()
		for _, k := range lengths(n) {
			for _, root := range roots(n) {
				var src []int32
				for m := range n {
					if w.Rank() == root {
						src = append(src, elements(m, k)...)
					}
				}
				dst := make([]int32, k)
				if err := coll.Scatter(ctx, w.Team(), dst, src, root); err != nil {
					return err
				}
				if err := same(fmt.Sprintf("scatter of %d from %d", k, root), dst, elements(w.Rank(), k)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// count is how many elements member from has for member to: some none, some many.
func count(from, to, k int) int {
	if (from+2*to)%5 == 0 {
		return 0
	}
	return (from*3 + to*7) % (k + 1)
}

func TestGatherVAndScatterV(t *testing.T) {
	everywhere(t, func(ctx context.Context, w *pgas.World) error {
		n, me := w.Size(), w.Rank()
		for _, k := range lengths(n) {
			for _, root := range roots(n) {
				var counts []int
				var all, dst []int32
				if me == root {
					for m := range n {
						counts = append(counts, count(m, root, k))
						all = append(all, elements(m, count(m, root, k))...)
					}
					dst = make([]int32, len(all))
				}
				mine := elements(me, count(me, root, k))
				if err := coll.GatherV(ctx, w.Team(), dst, counts, mine, root); err != nil {
					return err
				}
				if err := same(fmt.Sprintf("gatherv of %d to %d", k, root), dst, all); err != nil {
					return err
				}
				back := make([]int32, len(mine))
				if err := coll.ScatterV(ctx, w.Team(), back, all, counts, root); err != nil {
					return err
				}
				if err := same(fmt.Sprintf("scatterv of %d from %d", k, root), back, mine); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func TestAllGatherV(t *testing.T) {
	everywhere(t, func(ctx context.Context, w *pgas.World) error {
		n := w.Size()
		for _, k := range lengths(n) {
			var counts []int
			var want []int32
			for m := range n {
				counts = append(counts, count(m, 1, k))
				want = append(want, elements(m, count(m, 1, k))...)
			}
			dst := make([]int32, len(want))
			if err := coll.AllGatherV(ctx, w.Team(), dst, counts, elements(w.Rank(), counts[w.Rank()])); err != nil {
				return err
			}
			if err := same(fmt.Sprintf("allgatherv of %d", k), dst, want); err != nil {
				return err
			}
		}
		return nil
	})
}

// pair is what member from has for member to, at place i.
func pair(from, to, n int) [][3]uint16 {
	out := make([][3]uint16, n)
	for i := range out {
		out[i] = [3]uint16{uint16(from), uint16(to), uint16(i)}
	}
	return out
}

func TestAllToAll(t *testing.T) {
	everywhere(t, func(ctx context.Context, w *pgas.World) error {
		n, me := w.Size(), w.Rank()
		for _, k := range lengths(n) {
			if n > 9 {
				k = min(k, 301)
			}
			var src, want [][3]uint16
			for m := range n {
				src = append(src, pair(me, m, k)...)
				want = append(want, pair(m, me, k)...)
			}
			dst := make([][3]uint16, len(src))
			if err := coll.AllToAll(ctx, w.Team(), dst, src); err != nil {
				return err
			}
			if err := same(fmt.Sprintf("alltoall of %d", k), dst, want); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestAllToAllV(t *testing.T) {
	everywhere(t, func(ctx context.Context, w *pgas.World) error {
		n, me := w.Size(), w.Rank()
		for _, k := range lengths(n) {
			if n > 9 {
				k = min(k, 301)
			}
			var src, want [][3]uint16
			var send, recv []int
			for m := range n {
				send, recv = append(send, count(me, m, k)), append(recv, count(m, me, k))
				src = append(src, pair(me, m, send[m])...)
				want = append(want, pair(m, me, recv[m])...)
			}
			dst := make([][3]uint16, len(want))
			if err := coll.AllToAllV(ctx, w.Team(), dst, recv, src, send); err != nil {
				return err
			}
			if err := same(fmt.Sprintf("alltoallv of %d", k), dst, want); err != nil {
				return err
			}
		}
		return nil
	})
}

// number is a member's element of a prefix sum: sums of such depend on the order.
func number(m, i int) float64 { return []float64{1e16, 1, -1e16, 0.1, 3}[(m+i)%5] * float64(1+i%7) }

func TestScan(t *testing.T) {
	everywhere(t, func(ctx context.Context, w *pgas.World) error {
		n, me := w.Size(), w.Rank()
		for _, k := range lengths(n) {
			sum, top := make([]float64, k), make([]int64, k) // what the members before have
			src, whole := make([]float64, k), make([]int64, k)
			for i := range k {
				src[i], whole[i] = number(me, i), int64(number(me, i))
				for m := range me {
					if m == 0 {
						sum[i], top[i] = number(m, i), int64(number(m, i))
						continue
					}
					sum[i] += number(m, i)
					top[i] = max(top[i], int64(number(m, i)))
				}
			}
			dst := make([]float64, k)
			if err := coll.ExScan(ctx, w.Team(), dst, src, pgsync.Sum); err != nil {
				return err
			}
			if err := same(fmt.Sprintf("exscan of %d", k), dst, sum); err != nil {
				return err
			}
			before := make([]int64, k)
			if err := coll.ExScan(ctx, w.Team(), before, whole, pgsync.Max); err != nil {
				return err
			}
			if err := same(fmt.Sprintf("exscan of %d maxima", k), before, top); err != nil {
				return err
			}
			for i := range sum {
				if me == 0 {
					sum[i], top[i] = src[i], whole[i]
				} else {
					sum[i] += src[i]
					top[i] = max(top[i], whole[i])
				}
			}
			if err := coll.Scan(ctx, w.Team(), src, src, pgsync.Sum); err != nil { // in place
				return err
			}
			if err := coll.Scan(ctx, w.Team(), whole, whole, pgsync.Max); err != nil {
				return err
			}
			if err := errors.Join(same("scan", src, sum), same("scan of maxima", whole, top)); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestExScanLeavesTheFirst: member 0 has nothing before it.
func TestExScanLeavesTheFirst(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		for _, k := range []int{1, 5000} {
			dst := make([]int, k)
			dst[k-1] = 42
			if err := coll.ExScan(ctx, w.Team(), dst, make([]int, k), pgsync.Sum); err != nil {
				return err
			}
			if w.Rank() == 0 {
				require.Equal(t, 42, dst[k-1])
			} else {
				require.Zero(t, dst[k-1])
			}
		}
		return nil
	}, 1, 3)
}
