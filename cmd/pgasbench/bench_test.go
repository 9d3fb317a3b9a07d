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
