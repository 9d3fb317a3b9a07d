package pgsync_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
)

// TestOutboxOfACallThatWasLeft: a started call is left on one member when another one has not read yet what that has written. The call that waits for the lane there begins no more, and
// writes over nothing.
func TestOutboxOfACallThatWasLeft(t *testing.T) {
	const bytes = 64
	for _, p := range pgastest.PathsOf(t) {
		t.Run(p.Name, func(t *testing.T) {
			p.TimeLimit = 20 * time.Second
			waits, gone := make(chan struct{}), make(chan struct{})
			pgastest.RunConfig(t, 2, p.Config, func(ctx context.Context, w *pgas.World) error {
				team, err := w.Team().Split(ctx, 0, w.Rank())
				if err != nil {
					return err
				}
				turn := func(ctx context.Context, team *pgsync.Team, value uint64, behind func(read func() (uint64, error)) error) error {
					c, err := team.Collective(ctx, "gather")
					if err != nil {
						return err
					}
					for i := range uint64(2) {
						c.Write(0, mem.Of([]uint64{value + i}))
						if err := c.Turn(ctx, 1, 0, bytes, 0); err != nil {
							return c.End(err)
						}
						err := behind(func() (uint64, error) {
							word := make([]byte, 8)
							err := c.Read(0, 0, mem.Of(word))
							return binary.LittleEndian.Uint64(word), err
						})
						if err != nil {
							return c.End(err)
						}
					}
					return c.End(nil)
				}
				r := team.Start(func(ctx context.Context, team *pgsync.Team) error {
					if w.Rank() == 0 {
						short, cancel := context.WithCancel(ctx)
						go func() { <-waits; time.Sleep(50 * time.Millisecond); cancel() }()
						return turn(short, team, 10, func(func() (uint64, error)) error { return nil })
					}
					turns := uint64(0)
					return turn(ctx, team, 20, func(read func() (uint64, error)) error {
						<-gone
						have, err := read()
						if err == nil && have != 10+turns {
							err = fmt.Errorf("rank 0 has written %d, and %d was read", 10+turns, have)
						}
						turns++
						return err
					})
				})
				for range 3 {
					if err := team.Barrier(ctx); err != nil {
						return err
					}
				}
				if w.Rank() == 0 { // waits for the started call's lane
					close(waits)
					err := turn(ctx, team, 30, func(func() (uint64, error)) error { return nil })
					close(gone)
					require.ErrorIs(t, err, pgsync.ErrAbandoned)
					require.ErrorIs(t, r.Wait(ctx), context.Canceled)
				} else if err := r.Wait(ctx); err != nil { // it may have come through
					require.ErrorIs(t, err, pgsync.ErrAbandoned)
				}
				team, err = team.Survivors(ctx)
				if err != nil {
					return err
				}
				return errors.Join(team.Barrier(ctx), team.Free(ctx))
			})
		})
	}
}
