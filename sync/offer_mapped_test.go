package pgsync_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/window"
)

// TestOfferMappedBySome: memory that only some members of a team have mapped is not offered to it, and memory that all of a world have is offered to any of its teams; what calls bring is
// right whosever memory it is.
func TestOfferMappedBySome(t *testing.T) {
	c := pgastest.Config{TimeLimit: 30 * time.Second}
	pgastest.RunConfig(t, 4, c, func(ctx context.Context, w *pgas.World) error {
		half, err := w.Team().Split(ctx, w.Rank()%2, 0)
		if err != nil {
			return err
		}
		mapped := pgastest.Named{Config: c}
		ofAll, err := offeredOf(ctx, mapped, w.Team(), 4)
		if err != nil {
			return err
		}
		ofHalf, err := offeredOf(ctx, mapped, half, 4)
		if err != nil {
			return err
		}
		for seed := range 3 {
			before := half.Barriers()
			if err := ofAll.of(half).gather(ctx, half, seed); err != nil {
				return err
			}
			if turns := half.Barriers() - before; turns != 2 {
				return fmt.Errorf("a gather of memory that more have mapped takes %d turns, not 2", turns)
			}
			err := errors.Join(ofHalf.of(half).gather(ctx, half, seed), ofHalf.gather(ctx, w.Team(), seed), ofAll.gather(ctx, w.Team(), seed))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// TestOfferMappedAgain: memory that is freed and allocated again, at the same place or another, is the new memory to all who read it.
func TestOfferMappedAgain(t *testing.T) {
	pgastest.Run(t, 3, func(ctx context.Context, w *pgas.World) error {
		team, err := w.Team().Split(ctx, 0, 0) // with a heap of its own, which gives back what is free
		if err != nil {
			return err
		}
		places := map[*float64]int{}
		for round := range 6 {
			arr, err := pgas.Alloc[float64](ctx, team, offeredElems*(5+round%2))
			if err != nil {
				return err
			}
			whole, _ := arr.Local()
			places[&whole[0]]++
			o := &offered{whole[:offeredElems], whole[offeredElems : 2*offeredElems], whole[2*offeredElems : 5*offeredElems]}
			if err := o.gather(ctx, team, round); err != nil {
				return err
			}
			if err := arr.Free(ctx); err != nil {
				return err
			}
		}
		require.NotEmpty(t, places)
		return nil
	})
}

// TestOfferMappedWithWindow: memory of a window is offered as before where another one was to be made of it, and could not.
func TestOfferMappedWithWindow(t *testing.T) {
	pgastest.Run(t, 3, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[float64](ctx, w.Team(), offeredElems*5)
		if err != nil {
			return err
		}
		whole := win.Local()
		if _, err := window.Create(ctx, w.Team(), whole); err == nil {
			return errors.New("memory of a slice is mapped")
		}
		o := &offered{whole[:offeredElems], whole[offeredElems : 2*offeredElems], whole[2*offeredElems:]}
		before := w.Team().Barriers()
		if err := o.gather(ctx, w.Team(), 1); err != nil {
			return err
		}
		if turns := w.Team().Barriers() - before; turns != 2 {
			return fmt.Errorf("a gather takes %d turns, not 2", turns)
		}
		return nil
	})
}
