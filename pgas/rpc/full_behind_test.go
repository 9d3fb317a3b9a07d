package rpc_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/pgas/rpc"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// TestRoomBehindAFailedPut: who takes messages tells their sender that there is room again, also where a put of his to that rank has failed, and something else that the sender's CPU performs is under
// way: the sender would wait for ever. Over soft alone: over tcp a world in which two puts break the connection beside such messages does not end, in one run of some forty, for a
// reason that has not been found.
func TestRoomBehindAFailedPut(t *testing.T) {
	for _, over := range []string{"soft"} {
		t.Run(over, func(t *testing.T) {
			pgastest.RunConfig(t, 2, pgastest.Config{NIC: true, Over: over, TimeLimit: 20 * time.Second}, func(ctx context.Context, w *pgas.World) error {
				d, err := window.NewDynamic[int](ctx, w.Team())
				if err != nil {
					return err
				}
				refs, err := window.Allocate[window.Ref](ctx, w.Team(), 1)
				if err != nil {
					return err
				}
				sums, err := window.Allocate[int](ctx, w.Team(), 1)
				if err != nil {
					return err
				}
				var gone *window.Window[int]
				s := rpc.New(w.Team())
				taken := 0
				take := rpc.HandleInTurn(s, "take", func(_ context.Context, from int, _ []byte) (struct{}, error) {
					if taken++; taken != 2 && taken != 4 { // behind these two there is something to tell; each breaks the connection
						return struct{}{}, nil
					}
					return struct{}{}, errors.Join(gone.Put(from, 0, make([]int, 100)), refs.Get(from, 0, make([]window.Ref, 1)), // it comes back when the put has failed
						window.Accumulate(sums, from, 0, []int{7}, pgsync.Max))
				})
				if err := s.Start(ctx); err != nil {
					return err
				}
				var ref window.Ref
				if w.Rank() == 1 {
					if ref, err = d.Alloc(100); err == nil {
						err = errors.Join(refs.Put(0, 0, []window.Ref{ref}), refs.Flush(0))
					}
				}
				if err := errors.Join(err, w.Barrier(ctx)); err != nil {
					return err
				}
				if w.Rank() == 0 {
					gone, err = d.Reach(refs.Local()[0])
				}
				if err := errors.Join(err, w.Barrier(ctx)); err != nil {
					return err
				}
				if w.Rank() == 1 {
					err = d.Detach(ref)
				}
				if err := errors.Join(err, w.Barrier(ctx)); err != nil {
					return err
				}
				if w.Rank() == 1 {
					for range 12 {
						require.NoError(t, take.Send(ctx, 0, make([]byte, 65_000)))
					}
					require.NoError(t, s.Flush(ctx, 0))
				}
				if err := w.Barrier(ctx); err != nil {
					return err
				}
				if w.Rank() == 0 {
					require.ErrorContains(t, gone.Flush(1), "refused the access")
					require.NoError(t, errors.Join(sums.Flush(1), gone.Free(ctx)))
				}
				return errors.Join(s.Close(ctx), sums.Free(ctx), refs.Free(ctx), d.Free(ctx))
			})
		})
	}
}
