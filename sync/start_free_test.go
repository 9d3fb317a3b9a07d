package pgsync_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// TestAllocationWhileAStartedCallFrees: a started call goes on with a Free that was left, and the program makes the next object meanwhile. That lies where the others have it, which
// have given that memory back before.
func TestAllocationWhileAStartedCallFrees(t *testing.T) {
	type object struct {
		use, free func(ctx context.Context) error
	}
	for name, make := range map[string]func(ctx context.Context, w *pgas.World) (object, error){
		"signals": func(ctx context.Context, w *pgas.World) (object, error) {
			s, err := pgsync.NewSignals(ctx, w.Team(), 2)
			return object{func(ctx context.Context) error {
				if err := s.Signal(1).Add((w.Rank()+1)%w.Size(), 5); err != nil {
					return err
				}
				_, err := s.Signal(1).WaitUntil(ctx, pgsync.Equal, 5)
				return err
			}, s.Free}, err
		},
		"window": func(ctx context.Context, w *pgas.World) (object, error) {
			win, err := window.Allocate[int](ctx, w.Team(), 9)
			return object{func(ctx context.Context) error {
				if err := errors.Join(win.Put((w.Rank()+1)%w.Size(), 3, []int{w.Rank() + 1}), win.Fence(ctx)); err != nil {
					return err
				}
				if have, want := win.Local()[3], (w.Rank()+w.Size()-1)%w.Size()+1; have != want {
					return fmt.Errorf("the window has %d, and should have %d", have, want)
				}
				return nil
			}, func(ctx context.Context) error { return win.Free(ctx) }}, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(ctx context.Context, w *pgas.World, _ *testing.T) error {
				gate, err := pgsync.NewSignals(ctx, w.Team(), 1)
				if err != nil {
					return err
				}
				for round := range uint64(3) {
					old, err := make(ctx, w)
					if err != nil {
						return err
					}
					opened := chanOf(func() error { return nil })
					if w.Rank() == 0 {
						short, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
						err = old.free(short)
						cancel()
						if !errors.Is(err, context.DeadlineExceeded) {
							return fmt.Errorf("the free was not left: %w", err)
						}
						opened = chanOf(func() error { // the others come when this rank is at the next object
							time.Sleep(20 * time.Millisecond)
							for m := 1; m < w.Size(); m++ {
								if err := gate.Signal(0).Set(m, round+1); err != nil {
									return err
								}
							}
							return nil
						})
					} else {
						if _, err := gate.Signal(0).WaitUntil(ctx, pgsync.Greater, round); err != nil {
							return err
						}
						if err := old.free(ctx); err != nil {
							return err
						}
					}
					r := w.Team().Start(func(context.Context, *pgsync.Team) error { return nil })
					next, err := make(ctx, w)
					if err != nil {
						return err
					}
					if err := errors.Join(next.use(ctx), r.Wait(ctx), <-opened, next.free(ctx)); err != nil {
						return err
					}
				}
				return gate.Free(ctx)
			}, 2, 3)
		})
	}
}

// chanOf runs f in a goroutine of its own, and returns what it returns.
func chanOf(f func() error) <-chan error {
	c := make(chan error, 1)
	go func() { c <- f() }()
	return c
}
