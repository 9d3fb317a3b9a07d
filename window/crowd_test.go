package window_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/window"
)

// TestManyGoroutines: many goroutines of each rank put, flush, get and count at the same time. Each finds what it has put, behind its own flush, and no count is lost.
func TestManyGoroutines(t *testing.T) {
	const goroutines = 12
	rounds := 60
	if raceEnabled || testing.Short() {
		rounds = 20
	}
	for _, p := range pgastest.PathsOf(t) {
		t.Run(p.Name, func(t *testing.T) {
			n := p.Worlds([]int{2})[0]
			pgastest.RunConfig(t, n, p.Config, func(ctx context.Context, w *pgas.World) error {
				win, err := window.Allocate[uint64](ctx, w.Team(), n*goroutines+1)
				if err != nil {
					return err
				}
				to, ended := (w.Rank()+1)%n, make(chan error, goroutines)
				for g := range goroutines {
					go func() {
						at, there := w.Rank()*goroutines+g, make([]uint64, 1)
						for k := range uint64(rounds) {
							err := errors.Join(win.Put(to, at, []uint64{k + 1}), win.Flush(to), win.Get(to, at, there))
							if err == nil && there[0] != k+1 {
								err = fmt.Errorf("goroutine %d of rank %d has put %d and finds %d behind its flush", g, w.Rank(), k+1, there[0])
							}
							if err == nil && k%4 == 0 {
								_, err = window.FetchAdd(win, to, n*goroutines, 1)
							}
							if err != nil {
								ended <- err
								return
							}
						}
						ended <- nil
					}()
				}
				var all error
				for range goroutines {
					all = errors.Join(all, <-ended)
				}
				if err := errors.Join(all, win.Fence(ctx)); err != nil {
					return err
				}
				if have, want := win.Local()[n*goroutines], uint64((rounds+3)/4*goroutines); have != want {
					return fmt.Errorf("rank %d was counted up to %d, not %d", w.Rank(), have, want)
				}
				return win.Free(ctx)
			})
		})
	}
}
