package rpc_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/pgas/rpc"
	pgsync "gopgas/sync"
)

// TestFunctionEndsItsGoroutine: who calls a function that ends its goroutine is told; it is called once, and the service goes on.
func TestFunctionEndsItsGoroutine(t *testing.T) {
	pgastest.EachReal(t, []int{2}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		s := rpc.New(w.Team())
		called := 0
		f := func(_ context.Context, _ int, x int) (int, error) {
			if called++; x%2 == 1 {
				runtime.Goexit()
			}
			return called, nil
		}
		turns, beside := rpc.HandleInTurn(s, "turns", f), rpc.Handle(s, "beside", f)
		signals, err := pgsync.NewSignals(ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		over := signals.Signal(0)
		if err := s.Start(ctx); err != nil {
			return err
		}
		if w.Rank() == 1 { // only the goroutine that serves looks for messages here
			if _, err := over.WaitUntil(ctx, pgsync.Equal, 1); err != nil {
				return err
			}
			require.Equal(t, 8, called)
			return s.Close(ctx)
		}
		for i := range 8 {
			f := turns
			if i/2%2 == 1 {
				f = beside
			}
			v, err := f.Call(ctx, 1, i)
			if i%2 == 1 {
				require.ErrorIs(t, err, rpc.ErrCalled)
				require.ErrorContains(t, err, "has not returned")
			} else {
				require.NoError(t, err)
				require.Equal(t, i+1, v)
			}
		}
		if err := over.Set(1, 1); err != nil {
			return err
		}
		return s.Close(ctx)
	})
}

// TestFunctionsEndTheirGoroutines: the room that their messages took is used again, however many end so.
func TestFunctionsEndTheirGoroutines(t *testing.T) {
	pgastest.EachReal(t, []int{2}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		s := rpc.New(w.Team())
		ends := rpc.HandleInTurn(s, "ends", func(context.Context, int, []byte) (int, error) {
			runtime.Goexit()
			return 0, nil
		})
		if err := s.Start(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			for range 20 {
				short, cancel := context.WithTimeout(ctx, 10*time.Second)
				_, err := ends.Call(short, 1, make([]byte, 60_000))
				cancel()
				require.ErrorIs(t, err, rpc.ErrCalled)
			}
		}
		if err := w.Barrier(ctx); err != nil { // only the goroutine that serves looks for messages meanwhile
			return err
		}
		return s.Close(ctx)
	})
}
