package pgas_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/transport/transporttest"
)

// TestAllOfTheDead: an iteration over the elements of a rank that dies ends with an error, and gives no value that was not there.
func TestAllOfTheDead(t *testing.T) {
	const each = 20_000 // several pieces
	for round := range 20 {
		var fabric *transporttest.Fabric
		over := make(chan struct{})
		c := pgastest.Config{NIC: true, TimeLimit: 10 * time.Second, Made: func(f *transporttest.Fabric) { fabric = f }}
		errs := pgastest.Errors(t, 2, c, func(ctx context.Context, w *pgas.World) error {
			a, err := pgas.NewArray[int64](ctx, w.Team(), 2*each, pgas.Block())
			if err != nil {
				return err
			}
			for i := range a.Local() {
				a.Local()[i] = 7
			}
			if err := a.Fence(ctx); err != nil {
				return err
			}
			if w.Rank() == 1 {
				<-over // its NIC is killed
				return nil
			}
			defer close(over)
			time.AfterFunc(time.Duration(round*20)*time.Microsecond, func() { fabric.Kill(1) })
			for wrong := 0; ; {
				for x, err := range a.All(ctx, each, 2*each) {
					if err != nil {
						require.Zero(t, wrong, "values that nobody wrote")
						return err
					}
					if x != 7 {
						wrong++
					}
				}
			}
		})
		require.ErrorIs(t, errs[0], pgas.ErrPeerGone)
	}
}
