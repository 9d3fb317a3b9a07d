package pgas_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
)

// dealtLayouts are some of which what an owner has of a range is packed, and some of which it is not.
var dealtLayouts = []pgas.Layout{pgas.Block(), pgas.Cyclic(), pgas.BlockCyclic(3), pgas.BlockCyclic(300)}

// TestManyDealtElements: what is more than is packed at once gets where it belongs, from any layout to any other, in ranges, and by each iteration.
func TestManyDealtElements(t *testing.T) {
	const n = 140_003 // more than 1 MiB
	for _, c := range []pgastest.Config{{}, {NIC: true}} {
		pgastest.RunConfig(t, 3, c, func(ctx context.Context, w *pgas.World) error {
			rng := rand.New(rand.NewPCG(1, 2)) // equal on all ranks
			for _, from := range dealtLayouts {
				x, err := pgas.NewArray[int64](ctx, w.Team(), n, from)
				if err != nil {
					return err
				}
				want, buf := make([]int64, n), make([]int64, n)
				for i := range want {
					want[i] = rng.Int64()
				}
				if w.Rank() == 1 {
					lo := rng.IntN(n)
					err = errors.Join(x.Put(0, want[:lo]), x.Put(lo, want[lo:]))
				} else {
					_ = rng.IntN(n)
				}
				if err := errors.Join(err, x.Fence(ctx)); err != nil {
					return err
				}
				for range 5 {
					lo := rng.IntN(n)
					hi := lo + rng.IntN(n-lo+1)
					if err := x.Get(lo, buf[lo:hi]); err != nil {
						return err
					}
					require.True(t, slices.Equal(want[lo:hi], buf[lo:hi]), "%s: [%d, %d)", from, lo, hi)
				}
				at := 0
				for v, err := range x.All(ctx, 0, n) {
					require.NoError(t, err)
					if v != want[at] {
						require.Equal(t, want[at], v, "%s: element %d", from, at)
					}
					at++
				}
				require.Equal(t, n, at)
				if err := errors.Join(toOthers(ctx, t, w, x, want), x.Free(ctx)); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// toOthers copies x, which holds want, to all layouts and lengths, and accumulates.
func toOthers(ctx context.Context, t *testing.T, w *pgas.World, x *pgas.Array[int64], want []int64) error {
	n := len(want)
	for _, to := range dealtLayouts {
		y, err := pgas.NewArray[int64](ctx, w.Team(), n, to)
		if err != nil {
			return err
		}
		if err := y.CopyFrom(ctx, x); err != nil {
			return err
		}
		have, err := whole(ctx, y)
		if err != nil {
			return err
		}
		require.True(t, slices.Equal(want, have), "%s", to)
		const k = 1_234 // of each, in all
		if err := errors.Join(pgas.Accumulate(y, n/2-k/2, want[:k], pgsync.Sum), y.Fence(ctx)); err != nil {
			return err
		}
		for _, length := range []int{n / 3, n} {
			if err := y.Resize(ctx, length, dealtLayouts[(length+1)%len(dealtLayouts)]); err != nil {
				return err
			}
			if have, err = whole(ctx, y); err != nil {
				return err
			}
			for i, v := range have {
				sum := int64(0)
				if i < n/3 {
					sum = want[i]
				}
				if v != sum {
					require.Equal(t, sum, v, "%s, of %d elements: element %d", to, length, i)
				}
			}
		}
		if err := y.Free(ctx); err != nil {
			return err
		}
	}
	return nil
}

// TestLongPutsOfShortBlocksTravelTogether counts what goes over the NIC of a PutNB of more than is packed at once, and of more than there may be copies of: it is no operation for each block.
func TestLongPutsOfShortBlocksTravelTogether(t *testing.T) {
	for _, n := range []int{200_003, 2_300_003} {
		for _, l := range dealtLayouts[1:3] {
			pgastest.RunConfig(t, 2, pgastest.Config{NIC: true}, func(ctx context.Context, w *pgas.World) error {
				a, err := pgas.NewArray[int64](ctx, w.Team(), n, l)
				if err != nil {
					return err
				}
				if w.Rank() == 1 {
					src := make([]int64, n-3)
					for i := range src {
						src[i] = int64(i + 4)
					}
					before := operations(w)
					hs, err := a.PutNB(3, src)
					if err := errors.Join(err, hs.Wait(ctx), a.Flush()); err != nil {
						return err
					}
					require.Less(t, operations(w)-before, uint64(n/100), "%v", l)
				}
				if err := a.Fence(ctx); err != nil {
					return err
				}
				for i, v := range a.Mine() {
					if i > 2 && *v != int64(i+1) || i < 3 && *v != 0 {
						require.Equal(t, int64(i+1), *v, "element %d", i)
					}
				}
				return a.Free(ctx)
			})
		}
	}
}
