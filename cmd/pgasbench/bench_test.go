package main

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/window"
)

// TestRowEndsWithItsContext: who presses Ctrl-C waits for the repeat that is under way at most, and not for all of the row.
func TestRowEndsWithItsContext(t *testing.T) {
	for name, c := range map[string]struct {
		target time.Duration
		at     int // the call in which it is pressed
	}{
		"finding out how many": {time.Hour, 2},
		"in the repeats":       {1, 3},
	} {
		t.Run(name, func(t *testing.T) {
			pgastest.RunConfig(t, 1, pgastest.Config{}, func(_ context.Context, w *pgas.World) error {
				ctx, cancel := context.WithCancelCause(t.Context())
				pressed := errors.New("pressed")
				set, calls := quick, 0
				set.target, set.reps = c.target, 100
				_, _, err := newBench(w, set, new(bytes.Buffer)).alone(ctx, new(row), 1, 8, func(int) error {
					if calls++; calls == c.at {
						cancel(pressed)
					} else if calls > c.at {
						return errors.New("it goes on")
					}
					return nil
				})
				require.ErrorIs(t, err, pressed)
				require.NotContains(t, err.Error(), "it goes on")
				return nil
			})
		})
	}
}

// TestPassiveRowOfADeadRank: the target computes until it is told, and no longer when whoever tells it is gone.
func TestPassiveRowOfADeadRank(t *testing.T) {
	errs := pgastest.Errors(t, 2, pgastest.Config{}, func(ctx context.Context, w *pgas.World) error {
		if w.Rank() == 0 { // comes as far as the operations
			_, err := window.AllocateConfig[int64](ctx, w.Team(), passiveWords, window.Config{Epochs: true})
			return errors.Join(err, w.Barrier(ctx), errors.New("made up"))
		}
		_, _, err := measurePassive(false, nil, 0.5)(ctx, newBench(w, quick, new(bytes.Buffer)), new(row))
		return err
	})
	require.ErrorContains(t, errs[0], "made up")
	require.ErrorIs(t, errs[1], pgas.ErrPeerGone)
}
