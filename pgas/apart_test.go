package pgas_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
)

// TestPutOfOwnPart: a rank puts its own part to a range of several owners, itself one of them, and gets such a range into its own part: what arrives is what was there before, wherever the range
// begins.
func TestPutOfOwnPart(t *testing.T) {
	const n = 30
	for _, c := range []pgastest.Config{{}, {NIC: true}} {
		pgastest.RunConfig(t, 3, c, func(ctx context.Context, w *pgas.World) error {
			for _, layout := range []pgas.Layout{pgas.Block(), pgas.Cyclic(), pgas.BlockCyclic(3)} {
				x, err := pgas.NewArray[int](ctx, w.Team(), n, layout)
				if err != nil {
					return err
				}
				own := x.Local()
				for lo := range n - 11 { // no part has more than 12
					for _, put := range []bool{true, false} {
						want := make([]int, n)
						for i := range want {
							want[i] = 100*lo + i
						}
						for disp := range own {
							own[disp] = want[x.Index(w.Rank(), disp)]
						}
						if err := x.Fence(ctx); err != nil {
							return err
						}
						if w.Rank() == 1 {
							before := append([]int(nil), want...)
							for k := range own {
								if mine := x.Index(1, k); put {
									want[lo+k] = before[mine]
								} else {
									want[mine] = before[lo+k]
								}
							}
							if put {
								err = x.Put(lo, own)
							} else {
								err = x.Get(lo, own)
							}
							err = errors.Join(err, x.Flush())
							got := make([]int, n)
							require.NoError(t, errors.Join(err, x.Get(0, got)))
							require.Equal(t, want, got, "%s, from %d, put %v", layout, lo, put)
						}
						if err := x.Fence(ctx); err != nil {
							return err
						}
					}
				}
				if err := x.Free(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
}
