//go:build !race

package pgsync_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
)

// What is here writes where another rank reads, on purpose.

// TestOfferReadBehindTheEnd: a member that reads what another one offers when that one has left, and has used his memory for something else, does not take that for
// the result, though he has all flags.
func TestOfferReadBehindTheEnd(t *testing.T) {
	alike(t, func(t *testing.T, p pgastest.Named) {
		if p.Fabric.MaxPinned != 0 {
			return // nothing is offered for want of room
		}
		scribbled := make(chan struct{})
		pgastest.RunConfig(t, 2, p.Config, func(ctx context.Context, w *pgas.World) error {
			team, err := w.Team().Split(ctx, 0, 0)
			if err != nil {
				return err
			}
			o, err := offeredOf(ctx, p, w.Team(), 2)
			if err != nil {
				return err
			}
			src, dst := o.mine, o.sum
			reads := func(ctx context.Context, before func()) (done bool, err error) { // member 1 reads what 0 has
				c, err := team.Collective(ctx, "gather")
				if err != nil {
					return false, err
				}
				bytes := 8 * offeredElems
				done, err = c.Offered(ctx, 8, offeredElems, 0, bytes, c.Part(true), nil, mem.Of(src), mem.Of(dst), func(m int) (from, to, n int) {
					if w.Rank() == 0 || m == 1 {
						return 0, 0, 0
					}
					before()
					return 0, 0, bytes
				})
				return done, c.End(err)
			}
			for done := false; !done; {
				if done, err = reads(ctx, func() {}); err != nil {
					return err
				}
			}
			if err := w.Team().Barrier(ctx); err != nil {
				return err
			}
			if w.Rank() == 0 {
				short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
				defer cancel()
				_, err = reads(short, func() {})
				src[0] = 1
				close(scribbled)
				require.ErrorIs(t, err, context.DeadlineExceeded)
			} else {
				_, err = reads(ctx, func() { <-scribbled })
				require.ErrorIs(t, err, pgsync.ErrAbandoned)
				require.EqualValues(t, 1, dst[0], "it has read too late")
			}
			return w.Team().Barrier(ctx)
		})
	})
}
