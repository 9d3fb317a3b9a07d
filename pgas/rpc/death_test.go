package rpc_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/pgas/rpc"
)

var errDies = errors.New("this rank dies")

// TestMemberDies: who waits for a call of a rank that is gone is told, later calls to it are refused, however much waits for it, and the others call each other as before.
func TestMemberDies(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		t.Run(p.Name, func(t *testing.T) {
			var meet sync.WaitGroup // the survivors go on together
			meet.Add(2)
			errs := pgastest.Errors(t, 3, p.Config, func(ctx context.Context, w *pgas.World) error {
				s := rpc.New(w.Team())
				called := make(chan struct{}, 10)
				stay := rpc.Handle(s, "stay", func(ctx context.Context, _ int, _ []byte) (int, error) {
					called <- struct{}{}
					<-ctx.Done()
					return 0, context.Cause(ctx)
				})
				add := rpc.HandleInTurn(s, "add", func(_ context.Context, _ int, x int) (int, error) { return x + 1, nil })
				if err := s.Start(ctx); err != nil {
					return err
				}
				if w.Rank() == 2 {
					<-called
					<-called
					return errDies
				}
				_, err := stay.Call(ctx, 2, make([]byte, 300_000))
				require.ErrorIs(t, err, pgas.ErrPeerGone)
				_, err = add.Call(ctx, 2, 1)
				require.ErrorIs(t, err, pgas.ErrPeerGone)
				require.ErrorIs(t, stay.Send(ctx, 2, make([]byte, 500_000)), pgas.ErrPeerGone)
				require.ErrorIs(t, s.Flush(ctx, 2), pgas.ErrPeerGone)
				for i := range 100 {
					v, err := add.Call(ctx, 1-w.Rank(), i)
					require.NoError(t, err)
					require.Equal(t, i+1, v)
				}
				meet.Done()
				meet.Wait()
				require.ErrorIs(t, s.Quiesce(ctx), pgas.ErrPeerGone)
				require.ErrorIs(t, s.Close(ctx), pgas.ErrPeerGone)
				_, err = add.Call(ctx, 1-w.Rank(), 1)
				require.ErrorIs(t, err, pgas.ErrClosed)
				return nil
			})
			require.ErrorIs(t, errs[2], errDies)
			for _, err := range errs[:2] {
				require.ErrorIs(t, err, pgas.ErrPeerGone) // of the world's end
			}
		})
	}
}

// TestMemberClosesAlone: where a member ends the service since another one is gone, calls to it end too, those under way and those that come.
func TestMemberClosesAlone(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		t.Run(p.Name, func(t *testing.T) {
			over := make(chan struct{})
			var started sync.WaitGroup
			started.Add(3)
			errs := pgastest.Errors(t, 3, p.Config, func(ctx context.Context, w *pgas.World) error {
				s := rpc.New(w.Team())
				called := make(chan struct{}, 3)
				stay := rpc.Handle(s, "stay", func(ctx context.Context, _ int, _ int) (int, error) {
					called <- struct{}{}
					<-ctx.Done()
					return 0, context.Cause(ctx)
				})
				if err := s.Start(ctx); err != nil {
					return err
				}
				started.Done()
				started.Wait()
				switch w.Rank() {
				case 0:
					<-called // it has called this rank, and
					<-called
					require.ErrorIs(t, s.Close(ctx), pgas.ErrPeerGone)
					<-over // stays in the world
				case 1:
					defer close(over)
					p, err := stay.CallNB(ctx, 0, 1)
					require.NoError(t, err)
					_, err = stay.Call(ctx, 0, 1)
					require.ErrorIs(t, err, pgas.ErrClosed)
					for !p.Done() {
						require.NoError(t, ctx.Err())
					}
					_, err = p.Wait(ctx)
					require.ErrorIs(t, err, pgas.ErrClosed)
					_, err = stay.Call(ctx, 0, 1)
					require.ErrorIs(t, err, pgas.ErrClosed)
					require.ErrorIs(t, stay.Send(ctx, 0, 1), pgas.ErrClosed)
					require.ErrorIs(t, s.Flush(ctx, 0), pgas.ErrClosed)
				case 2:
					return errDies
				}
				return nil
			})
			require.ErrorIs(t, errs[2], errDies)
		})
	}
}

// TestMemberDiesInAFlood: who waits for a member that is gone is told, however many messages of others come meanwhile.
func TestMemberDiesInAFlood(t *testing.T) {
	told := make(chan struct{})
	errs := pgastest.Errors(t, 3, pgastest.Config{}, func(ctx context.Context, w *pgas.World) error {
		s := rpc.New(w.Team())
		called := make(chan struct{}, 1)
		stay := rpc.Handle(s, "stay", func(ctx context.Context, _ int, _ int) (int, error) {
			called <- struct{}{}
			<-ctx.Done()
			return 0, context.Cause(ctx)
		})
		work := rpc.HandleInTurn(s, "work", func(context.Context, int, [100]int) (struct{}, error) {
			time.Sleep(100 * time.Microsecond)
			return struct{}{}, nil
		})
		if err := s.Start(ctx); err != nil {
			return err
		}
		switch w.Rank() {
		case 0:
			defer close(told)
			began := time.Now()
			_, err := stay.Call(ctx, 2, 1)
			require.ErrorIs(t, err, pgas.ErrPeerGone)
			require.Less(t, time.Since(began), 5*time.Second)
		case 1:
			for began := time.Now(); time.Since(began) < 10*time.Second; {
				select {
				case <-told:
					return nil
				default:
				}
				if err := work.Send(ctx, 0, [100]int{}); err != nil {
					return err
				}
			}
		case 2:
			<-called
			time.Sleep(20 * time.Millisecond) // the flood has begun
			return errDies
		}
		return nil
	})
	require.ErrorIs(t, errs[2], errDies)
}

// TestProcesses: ranks that are processes call each other while they compute, and a killed one is told of.
func TestProcesses(t *testing.T) {
	for _, p := range pgastest.ProcPaths() {
		t.Run(p.Name, func(t *testing.T) {
			c := p.Procs
			c.NoKill = true
			r, out := pgastest.StartProcs(t, 3, c, 1, func(ctx context.Context, w *pgas.World) error {
				s := rpc.New(w.Team())
				var called atomic.Int32
				double := rpc.Handle(s, "double", func(_ context.Context, _ int, x string) (string, error) {
					called.Add(1)
					return x + x, nil
				})
				die := rpc.HandleInTurn(s, "die", func(context.Context, int, struct{}) (struct{}, error) { os.Exit(3); return struct{}{}, nil })
				if err := s.Start(ctx); err != nil {
					return err
				}
				if w.Rank() == 1 {
					for x := 1.0; called.Load() < 2; x++ { // it computes, and is called all the same
						_ = x * x
					}
				} else {
					v, err := double.Call(ctx, 1, "go")
					require.NoError(t, err)
					require.Equal(t, "gogo", v)
				}
				if err := s.Quiesce(ctx); err != nil {
					return err
				}
				if w.Rank() == 2 {
					<-ctx.Done()
					return nil
				}
				if w.Rank() == 0 {
					_, err := die.Call(ctx, 2, struct{}{})
					require.ErrorIs(t, err, pgas.ErrPeerGone)
				}
				v, err := double.Call(ctx, 1-w.Rank(), "x")
				require.NoError(t, err)
				require.Equal(t, "xx", v)
				require.ErrorIs(t, s.Close(ctx), pgas.ErrPeerGone)
				return nil
			})
			require.Equal(t, 3, r.Code, out)
		})
	}
}
