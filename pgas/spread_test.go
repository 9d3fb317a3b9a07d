package pgas_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// layouts are layouts of n elements over p ranks, one of each kind and more.
func layouts(n, p int) []pgas.Layout {
	counts := make([]int, p)
	for i := range n {
		counts[(i*i)%p/(1+i%2)]++
	}
	return []pgas.Layout{pgas.Block(), pgas.Cyclic(), pgas.BlockCyclic(3), pgas.BlockCyclic(200), pgas.Irregular(counts...)}
}

// eachLayout runs f on an array of int32 with each layout. All members work on an array, each on its own share of the
// indices: those that leave its rank when divided by the number of ranks.
func eachLayout(t *testing.T, n int, f func(ctx context.Context, t *testing.T, w *pgas.World, a *pgas.Array[int32]) error) {
	worlds(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		for _, l := range layouts(n, w.Size()) {
			a, err := pgas.NewArray[int32](ctx, w.Team(), n, l)
			if err != nil {
				return err
			}
			if err := f(ctx, t, w, a); err != nil {
				return err
			}
			if err := a.Free(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// whole gets all of an array after a fence, and fences again so that nobody changes it before all have.
func whole[T any](ctx context.Context, a *pgas.Array[T]) ([]T, error) {
	all := make([]T, a.Len())
	return all, errors.Join(a.Fence(ctx), a.Get(0, all), a.Fence(ctx))
}

// holds wants the array to be want.
func holds[T any](ctx context.Context, t *testing.T, a *pgas.Array[T], want []T, text ...any) error {
	have, err := whole(ctx, a)
	if err != nil {
		return err
	}
	require.Equal(t, want, have, text...)
	return nil
}

func TestScatterAndGatherByIndex(t *testing.T) {
	const n = 97
	eachLayout(t, n, func(ctx context.Context, t *testing.T, w *pgas.World, a *pgas.Array[int32]) error {
		rng := rand.New(rand.NewPCG(4, uint64(w.Rank())))
		want := make([]int32, n)
		var at []int
		for _, i := range rng.Perm(n) {
			want[i] = int32(1000 + i)
			if i%w.Size() == w.Rank() {
				at = append(at, i)
			}
		}
		src := make([]int32, len(at))
		for k, i := range at {
			src[k] = int32(1000 + i)
		}
		if err := errors.Join(a.Scatter(src, at), holds(ctx, t, a, want)); err != nil {
			return err
		}
		at = at[:0]
		for range 150 { // with repetitions
			at = append(at, rng.IntN(n))
		}
		dst := make([]int32, len(at))
		if err := a.Gather(dst, at); err != nil {
			return err
		}
		for k, i := range at {
			require.Equal(t, want[i], dst[k])
		}
		for _, bad := range []int{-1, n} {
			require.ErrorIs(t, a.Gather(make([]int32, 2), []int{0, bad}), pgas.ErrRange)
			require.ErrorIs(t, a.Scatter(make([]int32, 2), []int{0, bad}), pgas.ErrRange)
		}
		require.ErrorIs(t, a.Gather(make([]int32, 2), []int{0}), pgas.ErrRange)
		require.NoError(t, a.Scatter(nil, nil))
		return holds(ctx, t, a, want, "refused calls moved something")
	})
}

func TestStridedAcrossOwners(t *testing.T) {
	const n = 60
	eachLayout(t, n, func(ctx context.Context, t *testing.T, w *pgas.World, a *pgas.Array[int32]) error {
		want := make([]int32, n)
		for i := range want {
			want[i] = int32(i + 5)
		}
		src := make([]int32, 0, n)
		for i := w.Rank(); i < n; i += w.Size() {
			src = append(src, want[i])
		}
		if err := errors.Join(a.PutStrided(w.Rank(), w.Size(), src), holds(ctx, t, a, want)); err != nil {
			return err
		}
		const most = int(^uint(0) >> 1)
		for _, lo := range []int{-1, 0, 7, n - 1, n} {
			for _, step := range []int{1, 2, 7, 59, 60, -1, -3, -7, most, -most - 1, 0} {
				for _, count := range []int{0, 1, 2, 3, 9, 61} {
					dst := make([]int32, count)
					err := a.GetStrided(lo, step, dst)
					ok := lo >= 0 && lo <= n
					if count > 0 {
						last := lo
						for range count - 1 {
							if ok = ok && (step > 0 && last < n-step || step < 0 && last >= -step && -step > 0); ok {
								last += step
							}
						}
						ok = ok && lo < n && step != 0
					}
					if !ok {
						require.ErrorIs(t, err, pgas.ErrRange, "%d elements from %d on by %d", count, lo, step)
						require.ErrorIs(t, a.PutStrided(lo, step, dst), pgas.ErrRange)
						continue
					}
					require.NoError(t, err, "%d elements from %d on by %d", count, lo, step)
					for k, v := range dst {
						require.Equal(t, want[lo+k*step], v)
					}
				}
			}
		}
		return a.Fence(ctx)
	})
}

func TestAccumulateAcrossOwners(t *testing.T) {
	const n = 50
	eachLayout(t, n, func(ctx context.Context, t *testing.T, w *pgas.World, a *pgas.Array[int32]) error {
		src := make([]int32, n-8)
		want := make([]int32, n)
		for k := range src {
			src[k] = int32((w.Rank() + 1) * k)
			want[4+k] = int32(w.Size() * (w.Size() + 1) / 2 * k)
		}
		if err := errors.Join(pgas.Accumulate(a, 4, src, pgsync.Sum), holds(ctx, t, a, want)); err != nil {
			return err
		}
		require.ErrorIs(t, pgas.Accumulate(a, n-1, src, pgsync.Sum), pgas.ErrRange)
		p, first := a.Ptr(7), a.Ptr(0)
		v, err := p.Load()
		require.NoError(t, err)
		require.Equal(t, want[7], v)
		if p.Member() == first.Member() {
			require.Equal(t, p, first.Add(p.Sub(first)))
		} else {
			require.Panics(t, func() { p.Sub(first) })
		}
		require.Panics(t, func() { a.Ptr(n) })
		return a.Fence(ctx)
	})
}

// TestDealtElementsAreAccumulatedTogether counts what goes over the NIC: elements that are dealt out in short runs travel together, and not one after
// the other; an owner's long run goes as one.
func TestDealtElementsAreAccumulatedTogether(t *testing.T) {
	const n, fewest = 4096, 60
	pgastest.RunConfig(t, 2, pgastest.Config{NIC: true}, func(ctx context.Context, w *pgas.World) error {
		for _, l := range []pgas.Layout{pgas.Block(), pgas.Cyclic(), pgas.BlockCyclic(16), pgas.BlockCyclic(256)} {
			a, err := pgas.NewArray[int32](ctx, w.Team(), n, l)
			if err != nil {
				return err
			}
			ones := make([]int32, n)
			for i := range ones {
				ones[i] = 1
			}
			if w.Rank() == 0 {
				before := operations(w)
				if err := errors.Join(pgas.Accumulate(a, 0, ones, pgsync.Sum), a.Flush()); err != nil {
					return err
				}
				require.Less(t, operations(w)-before, uint64(fewest), "%v", l)
			}
			if err := errors.Join(holds(ctx, t, a, ones), a.Free(ctx)); err != nil {
				return err
			}
		}
		return nil
	})
}

// operations is how many operations of this rank have gone over the loop-back NIC.
func operations(w *pgas.World) (n uint64) {
	for _, path := range w.Stats()["loopback"] {
		n += path.Ops
	}
	return n
}

// TestAccumulatesByIndex: all members count at random indices of all owners, each old value is seen once, and an atomic for each
// element is under way at once.
func TestAccumulatesByIndex(t *testing.T) {
	const n, count = 23, 160
	eachLayout(t, n, func(ctx context.Context, t *testing.T, w *pgas.World, a *pgas.Array[int32]) error {
		at, ones, old := make([]int, count), make([]int32, count), make([]int32, count)
		rng := rand.New(rand.NewPCG(3, 4)) // equal on all ranks
		want, met := make([]int32, n), make([]int32, n)
		for i := range at {
			at[i], ones[i] = rng.IntN(n), 1
			want[at[i]] += int32(2 * w.Size())
			met[at[i]]++
		}
		if err := pgas.GatherAccumulate(a, at, ones, old, pgsync.Sum); err != nil {
			return err
		}
		seen := map[[2]int32]bool{}
		for i, v := range old {
			key := [2]int32{int32(at[i]), v}
			require.False(t, seen[key], "element %d was %d twice", at[i], v)
			seen[key] = true
		}
		if err := pgas.ScatterAccumulate(a, at, ones, pgsync.Sum); err != nil {
			return err
		}
		hs := make(window.Handles, n)
		for i := range hs {
			var err error
			if hs[i], err = pgas.FetchAddNB(a, i, 100, &old[i]); err != nil {
				return err
			}
			want[i] += int32(100 * w.Size())
		}
		if err := hs.Wait(ctx); err != nil {
			return err
		}
		for i, v := range old[:n] {
			require.GreaterOrEqual(t, v, 2*met[i], "element %d: what this rank has counted itself", i)
		}
		require.ErrorIs(t, pgas.ScatterAccumulate(a, []int{0, n}, ones[:2], pgsync.Sum), pgas.ErrRange)
		require.ErrorIs(t, pgas.GatherAccumulate(a, []int{0}, ones[:2], old[:2], pgsync.Sum), pgas.ErrRange)
		require.ErrorIs(t, pgas.GatherAccumulate(a, []int{0}, ones[:1], old[:2], pgsync.Sum), pgas.ErrRange)
		_, err := pgas.FetchAddNB(a, -1, 1, &old[0])
		require.ErrorIs(t, err, pgas.ErrRange)
		return holds(ctx, t, a, want)
	})
}
