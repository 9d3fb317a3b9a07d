package rpc_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/pgas/rpc"
	pgsync "gopgas/sync"
)

// TestFunctionOutlastsTheWorld: a function in turn that goes on for longer than the world's end waits for it touches nothing that was given back.
func TestFunctionOutlastsTheWorld(t *testing.T) {
	if raceEnabled {
		t.Skip("that a second has passed orders nothing to the race detector")
	}
	if testing.Short() {
		t.Skip("takes 3 seconds: make check runs it")
	}
	for _, p := range pgastest.ProcPaths()[:1] { // mapped memory, which is unmapped then
		t.Run(p.Name, func(t *testing.T) {
			c := p.Procs
			r, out := pgastest.StartProcs(t, 2, c, 1, func(ctx context.Context, w *pgas.World) error {
				s := rpc.New(w.Team())
				long := rpc.HandleInTurn(s, "long", func(context.Context, int, []byte) (int, error) {
					time.Sleep(2 * time.Second)
					return 0, nil
				})
				if err := s.Start(ctx); err != nil {
					return err
				}
				if err := long.Send(ctx, w.Rank(), make([]byte, 10_000)); err != nil {
					return err
				}
				if err := long.Send(ctx, w.Rank(), make([]byte, 10_000)); err != nil {
					return err
				}
				go func() { _, _ = long.Call(ctx, w.Rank(), make([]byte, 10_000)) }()
				time.Sleep(50 * time.Millisecond)
				if err := w.Close(ctx); err != nil {
					return err
				}
				time.Sleep(1800 * time.Millisecond) // the function has returned
				os.Exit(0)
				return nil
			})
			require.Equal(t, 0, r.Code, out)
		})
	}
}

// TestSendsArriveByThemselves: messages that are kept for others to go with them are brought though their rank calls nothing more.
func TestSendsArriveByThemselves(t *testing.T) {
	pgastest.EachReal(t, []int{2, 3}, func(ctx context.Context, w *pgas.World, _ *testing.T) error {
		const n, rounds = 20, 10
		sigs, err := pgsync.NewSignals(ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		s := rpc.New(w.Team())
		came := 0
		count := rpc.HandleInTurn(s, "count", func(_ context.Context, from int, _ int) (struct{}, error) {
			if came++; came%n != 0 {
				return struct{}{}, nil
			}
			return struct{}{}, sigs.Signal(0).Set(from, uint64(came/n))
		})
		if err := s.Start(ctx); err != nil {
			return err
		}
		if last := w.Size() - 1; w.Rank() == 0 {
			for round := range uint64(rounds) {
				for i := range n {
					if err := count.Send(ctx, last, i); err != nil {
						return err
					}
				}
				if _, err := sigs.Signal(0).WaitUntil(ctx, pgsync.Equal, round+1); err != nil {
					return err
				}
			}
		}
		return errors.Join(s.Close(ctx), sigs.Free(ctx))
	})
}
