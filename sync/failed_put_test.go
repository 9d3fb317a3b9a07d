package pgsync_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// TestNoSignalBehindAFailedPut: who sees a signal sees what was put before it. Where that put is known to have failed, or fails while the signal is under
// way, there is none, but its error, once.
func TestNoSignalBehindAFailedPut(t *testing.T) {
	for name, tell := range map[string]func(s pgsync.Signal, e *pgsync.Event) error{
		"set":  func(s pgsync.Signal, _ *pgsync.Event) error { return s.Set(1, 1) },
		"add":  func(s pgsync.Signal, _ *pgsync.Event) error { return s.Add(1, 1) },
		"post": func(_ pgsync.Signal, e *pgsync.Event) error { return e.Post(1, 1) },
	} {
		paths := slices.DeleteFunc(pgastest.PathsOf(t), func(p pgastest.Named) bool { return !p.NIC || p.Nodes != nil }) // a store does not fail
		for i, p := range slices.Repeat(paths, 2) {
			known := i < len(paths)
			t.Run(fmt.Sprintf("%s %s known=%t", name, p.Name, known), func(t *testing.T) {
				pgastest.RunConfig(t, 2, p.Config, func(ctx context.Context, w *pgas.World) error {
					d, err := window.NewDynamic[int](ctx, w.Team())
					if err != nil {
						return err
					}
					refs, err := window.Allocate[window.Ref](ctx, w.Team(), 1)
					if err != nil {
						return err
					}
					s, err := pgsync.NewSignals(ctx, w.Team(), 1)
					if err != nil {
						return err
					}
					e, err := pgsync.NewEvent(ctx, w.Team())
					if err != nil {
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
					var gone *window.Window[int]
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
					if w.Rank() == 0 {
						require.NoError(t, gone.Put(1, 0, make([]int, 100)))
						if known {
							require.NoError(t, refs.Get(1, 0, make([]window.Ref, 1)), "it comes back when the put has failed")
							require.ErrorContains(t, tell(s.Signal(0), e), "refused the access")
						} else {
							err := tell(s.Signal(0), e) // which may be late enough to know it
							require.NoError(t, refs.Get(1, 0, make([]window.Ref, 1)), "what is no signal goes behind it")
							require.ErrorContains(t, errors.Join(err, gone.Flush(1)), "refused the access")
						}
					}
					if err := w.Barrier(ctx); err != nil {
						return err
					}
					require.Zero(t, s.Signal(0).Load())
					require.Zero(t, e.Count())
					if err := w.Barrier(ctx); err != nil {
						return err
					}
					if w.Rank() == 0 {
						require.NoError(t, tell(s.Signal(0), e), "it was told")
						require.NoError(t, gone.Flush(1))
						err = gone.Free(ctx)
					}
					if err := errors.Join(err, w.Barrier(ctx)); err != nil {
						return err
					}
					require.EqualValues(t, w.Rank(), s.Signal(0).Load()+e.Count())
					return errors.Join(e.Free(ctx), s.Free(ctx), refs.Free(ctx), d.Free(ctx))
				})
			})
		}
	}
}
