package rpc

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
)

// TestSpan: calls that were over soon are made by who serves, one that took long has others do it for a while, each time twice as long.
func TestSpan(t *testing.T) {
	var p span
	for range 10 {
		require.True(t, p.soon())
		p.begin()
		require.False(t, p.soon(), "while it goes on")
		p.over(hereMost)
	}
	for long := hereSkips; long <= 2*hereSkipMax; long *= 2 {
		require.True(t, p.soon())
		p.begin()
		p.over(hereMost + 1)
		for range min(long, hereSkipMax) {
			require.False(t, p.soon())
		}
	}
	require.True(t, p.soon())
	p.begin()
	p.over(0)
	require.True(t, p.soon())
}

// TestShortCallsNeedNoGoroutine: who serves makes calls himself of a function that is over soon, again and again, though one of them may have taken long.
func TestShortCallsNeedNoGoroutine(t *testing.T) {
	pgastest.EachReal(t, []int{2}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		s := New(w.Team())
		f := Handle(s, "short", func(context.Context, int, int) (int, error) { return int(s.relief.made.Load()), nil })
		if err := s.Start(ctx); err != nil {
			return err
		}
		for made := 0; w.Rank() == 0 && made < 20; { // at rank 1 only the goroutine that serves looks for messages
			var err error
			made, err = f.Call(ctx, 1, 0)
			require.NoError(t, err)
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		return s.Close(ctx)
	})
}

// TestCallsThatWaitForOthers: a function that waits for another call, though all before it were over soon, holds up nobody: not that other call, nor more of its own kind.
func TestCallsThatWaitForOthers(t *testing.T) {
	pgastest.EachReal(t, []int{2}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		s := New(w.Team())
		wait, goOn := make(chan struct{}), make(chan struct{})
		f := Handle(s, "may wait", func(_ context.Context, _ int, waits bool) (int, error) {
			if waits {
				<-wait
			}
			return 7, nil
		})
		g := Handle(s, "lets them go on", func(context.Context, int, int) (int, error) { close(wait); return 0, nil })
		end := Handle(s, "end", func(context.Context, int, int) (int, error) { close(goOn); return 0, nil })
		if err := s.Start(ctx); err != nil {
			return err
		}
		if w.Rank() == 1 {
			<-goOn
			return s.Close(ctx)
		}
		for range 20 {
			_, err := f.Call(ctx, 1, false)
			require.NoError(t, err)
		}
		var waiting []*Pending[bool, int]
		for range 20 {
			p, err := f.CallNB(ctx, 1, true)
			require.NoError(t, err)
			waiting = append(waiting, p)
		}
		v, err := f.Call(ctx, 1, false) // behind those that wait
		require.NoError(t, err)
		require.Equal(t, 7, v)
		_, err = g.Call(ctx, 1, 0)
		require.NoError(t, err)
		for _, p := range waiting {
			v, err := p.Wait(ctx)
			require.NoError(t, err)
			require.Equal(t, 7, v)
		}
		_, err = end.Call(ctx, 1, 0)
		require.NoError(t, err)
		return s.Close(ctx)
	})
}

// TestEndBesideALongCall: the end of a service does not wait for a call that who serves makes and that lasts.
func TestEndBesideALongCall(t *testing.T) {
	pgastest.Run(t, 1, func(ctx context.Context, w *pgas.World) error {
		for range 20 {
			s := New(w.Team())
			begun, lasts := make(chan struct{}), make(chan struct{})
			f := Handle(s, "long", func(context.Context, int, int) (int, error) {
				close(begun)
				<-lasts
				return 0, nil
			})
			if err := s.Start(ctx); err != nil {
				return err
			}
			_, err := f.CallNB(ctx, 0, 0)
			require.NoError(t, err)
			<-begun
			s.leave()
			require.True(t, s.quiet(), "who is in the call is nobody's who is waited for")
			close(lasts)
			require.Eventually(t, func() bool { return s.running.Load() == 0 }, time.Minute, time.Millisecond)
			s.forget()
			if err := s.free(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}
