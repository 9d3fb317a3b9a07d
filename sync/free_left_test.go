package pgsync_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// TestFreeThatWasLeft: where the context of a Free ends before the others come, the next call of the team, whatever it is, gives the memory back at the place in the
// order of calls at which the others do, so that what is made then lies at the same place on all members.
func TestFreeThatWasLeft(t *testing.T) {
	type object struct {
		free func(ctx context.Context) error
		used func(ctx context.Context) error // by all
	}
	signals := func(ctx context.Context, w *pgas.World) (object, error) {
		s, err := pgsync.NewSignals(ctx, w.Team(), 1)
		if err != nil {
			return object{}, err
		}
		return object{s.Free, func(ctx context.Context) error {
			if err := s.Signal(0).Add((w.Rank()+1)%w.Size(), 5); err != nil {
				return err
			}
			_, err := s.Signal(0).WaitUntil(ctx, pgsync.Equal, 5)
			return err
		}}, nil
	}
	rwlock := func(ctx context.Context, w *pgas.World) (object, error) {
		l, err := pgsync.NewRWLock(ctx, w.Team())
		if err != nil {
			return object{}, err
		}
		return object{l.Free, func(ctx context.Context) error { return errors.Join(l.Lock(ctx), l.Unlock(), w.Barrier(ctx)) }}, nil
	}
	windows := func(ctx context.Context, w *pgas.World) (object, error) {
		win, err := window.Allocate[int](ctx, w.Team(), 9)
		if err != nil {
			return object{}, err
		}
		return object{win.Free, func(ctx context.Context) error {
			if err := errors.Join(win.Put((w.Rank()+1)%w.Size(), 3, []int{w.Rank() + 1}), win.Fence(ctx)); err != nil {
				return err
			}
			if have, want := win.Local()[3], (w.Rank()+w.Size()-1)%w.Size()+1; have != want {
				return fmt.Errorf("the window has %d, and should have %d", have, want)
			}
			return nil
		}}, nil
	}
	for name, make := range map[string]func(ctx context.Context, w *pgas.World) (object, error){"signals": signals, "rwlock": rwlock, "window": windows} {
		t.Run(name, func(t *testing.T) {
			each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
				gate, err := pgsync.NewSignals(ctx, w.Team(), 1)
				if err != nil {
					return err
				}
				_, before := w.HeapUsage()
				var two [2]object // alike
				for i := range two {
					if two[i], err = make(ctx, w); err != nil {
						return err
					}
				}
				if w.Rank() == 0 {
					short, cancel := context.WithTimeout(ctx, 50*time.Millisecond) // long enough to come to the wait for the others
					err := two[0].free(short)
					cancel()
					if !errors.Is(err, context.DeadlineExceeded) {
						return fmt.Errorf("the first was not left: %w", err)
					}
					for m := 1; m < w.Size(); m++ {
						if err := gate.Signal(0).Set(m, 1); err != nil {
							return err
						}
					}
				} else {
					if _, err := gate.Signal(0).WaitUntil(ctx, pgsync.Equal, 1); err != nil {
						return err
					}
					if err := two[0].free(ctx); err != nil {
						return err
					}
				}
				if err := two[1].free(ctx); err != nil {
					return err
				}
				if _, after := w.HeapUsage(); after != before {
					return fmt.Errorf("%d bytes of the heap were in use, %d are", before, after)
				}
				third, err := make(ctx, w)
				if err != nil {
					return err
				}
				return errors.Join(third.used(ctx), third.free(ctx), gate.Free(ctx))
			}, 2, 3)
		})
	}
}

// TestAllocationBehindAFreeThatWasLeft: what is made right behind it lies where the others, which have freed that before, have it. Where the context is the one that has ended
// it is made when it is asked for again.
func TestAllocationBehindAFreeThatWasLeft(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, _ *testing.T) error {
		gate, err := pgsync.NewSignals(ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		old, err := pgsync.NewSignals(ctx, w.Team(), 2)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			short, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
			defer cancel()
			if err := old.Free(short); !errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("the free was not left: %w", err)
			}
			if _, err := pgsync.NewSignals(short, w.Team(), 2); !errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("the first was not left: %w", err)
			}
			for m := 1; m < w.Size(); m++ {
				if err := gate.Signal(0).Set(m, 1); err != nil {
					return err
				}
			}
		} else {
			if _, err := gate.Signal(0).WaitUntil(ctx, pgsync.Equal, 1); err != nil {
				return err
			}
			if err := old.Free(ctx); err != nil {
				return err
			}
		}
		s, err := pgsync.NewSignals(ctx, w.Team(), 2)
		if err != nil {
			return err
		}
		return errors.Join(passedOn(ctx, w, s.Signal(1)), s.Free(ctx), gate.Free(ctx))
	}, 2, 3)
}

// TestAllocationThatWasLeft: who asks again for what he could not wait for gets what the others have got.
func TestAllocationThatWasLeft(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, _ *testing.T) error {
		gate, err := pgsync.NewSignals(ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			for range 2 {
				short, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
				_, err := pgsync.NewSignals(short, w.Team(), 3)
				cancel()
				if !errors.Is(err, context.DeadlineExceeded) {
					return fmt.Errorf("the first was not left: %w", err)
				}
			}
			for m := 1; m < w.Size(); m++ {
				if err := gate.Signal(0).Set(m, 1); err != nil {
					return err
				}
			}
		} else if _, err := gate.Signal(0).WaitUntil(ctx, pgsync.Equal, 1); err != nil {
			return err
		}
		s, err := pgsync.NewSignals(ctx, w.Team(), 3)
		if err != nil {
			return err
		}
		return errors.Join(passedOn(ctx, w, s.Signal(2)), s.Free(ctx), gate.Free(ctx))
	}, 2, 3)
}

// TestTeamFreeThatWasLeft: a Free of a team whose context ends, wherever that is, is called again. Where races are looked for the members meet twice in it, and the others may
// be in the first meeting still when this one has left the second.
func TestTeamFreeThatWasLeft(t *testing.T) {
	for _, check := range []string{"", "races"} {
		t.Run("check "+check, func(t *testing.T) {
			c := pgastest.Config{Check: check, TimeLimit: 20 * time.Second}
			pgastest.RunConfig(t, 2, c, func(ctx context.Context, w *pgas.World) error {
				gate, err := pgsync.NewSignals(ctx, w.Team(), 1)
				if err != nil {
					return err
				}
				team, err := w.Team().Split(ctx, 0, w.Rank())
				if err != nil {
					return err
				}
				short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
				defer cancel()
				if w.Rank() == 0 { // once the other one has told that it is in the first meeting, and left
					if _, err := gate.Signal(0).WaitUntil(ctx, pgsync.Equal, 1); err != nil {
						return err
					}
				}
				left := team.Free(short)
				if left != nil && !errors.Is(left, context.DeadlineExceeded) {
					return left
				}
				if w.Rank() == 1 {
					if err := gate.Signal(0).Set(0, 1); err != nil {
						return err
					}
					if _, err := gate.Signal(0).WaitUntil(ctx, pgsync.Equal, 1); err != nil {
						return err
					}
				} else if err := gate.Signal(0).Set(1, 1); err != nil {
					return err
				}
				if left != nil {
					if err := team.Free(ctx); err != nil {
						return fmt.Errorf("called again: %w", err)
					}
				}
				return gate.Free(ctx)
			})
		})
	}
}

// passedOn has each rank add to the next one's signal, which lies where all think that it lies.
func passedOn(ctx context.Context, w *pgas.World, s pgsync.Signal) error {
	if err := s.Add((w.Rank()+1)%w.Size(), 5); err != nil {
		return err
	}
	_, err := s.WaitUntil(ctx, pgsync.Equal, 5)
	return err
}
