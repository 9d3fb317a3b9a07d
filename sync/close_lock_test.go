package pgsync_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
)

// trying calls try until that has got the lock, or ends with an error.
func trying(ctx context.Context, try func() (bool, error)) error {
	for ctx.Err() == nil {
		if ok, err := try(); ok || err != nil {
			return err
		}
		runtime.Gosched()
	}
	return context.Cause(ctx)
}

// lockings are ways to get what another member holds in one of these ways.
var lockings = map[string]struct {
	hold, get func(ctx context.Context, l *pgsync.Lock, rw *pgsync.RWLock) error
}{
	"lock": {
		func(ctx context.Context, l *pgsync.Lock, _ *pgsync.RWLock) error { return l.Lock(ctx) },
		func(ctx context.Context, l *pgsync.Lock, _ *pgsync.RWLock) error { return l.Lock(ctx) },
	},
	"try": {
		func(ctx context.Context, l *pgsync.Lock, _ *pgsync.RWLock) error { return l.Lock(ctx) },
		func(ctx context.Context, l *pgsync.Lock, _ *pgsync.RWLock) error { return trying(ctx, l.TryLock) },
	},
	"write what is read": {
		func(ctx context.Context, _ *pgsync.Lock, rw *pgsync.RWLock) error { return rw.RLock(ctx) },
		func(ctx context.Context, _ *pgsync.Lock, rw *pgsync.RWLock) error { return rw.Lock(ctx) },
	},
	"read what is written": {
		func(ctx context.Context, _ *pgsync.Lock, rw *pgsync.RWLock) error { return rw.Lock(ctx) },
		func(ctx context.Context, _ *pgsync.Lock, rw *pgsync.RWLock) error { return rw.RLock(ctx) },
	},
	"try to read": {
		func(ctx context.Context, _ *pgsync.Lock, rw *pgsync.RWLock) error { return rw.Lock(ctx) },
		func(ctx context.Context, _ *pgsync.Lock, rw *pgsync.RWLock) error { return trying(ctx, rw.TryRLock) },
	},
}

// TestCloseWithALock: a member that closes its world and holds a lock releases it no more: who waits for it, or tries again and again to get it, learns that and by
// whom it is lost.
func TestCloseWithALock(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		for name, way := range lockings {
			t.Run(p.Name+"/"+name, func(t *testing.T) {
				p.TimeLimit = 10 * time.Second
				errs := pgastest.Errors(t, 3, p.Config, func(ctx context.Context, w *pgas.World) error {
					l, err := pgsync.NewLock(ctx, w.Team())
					if err != nil {
						return err
					}
					rw, err := pgsync.NewRWLock(ctx, w.Team())
					if err != nil {
						return err
					}
					if w.Rank() == 1 {
						if err := way.hold(ctx, l, rw); err != nil {
							return err
						}
						return w.Barrier(ctx)
					}
					if err := w.Barrier(ctx); err != nil {
						return err
					}
					err = way.get(ctx, l, rw)
					require.ErrorIs(t, err, pgas.ErrPeerGone)
					var oe *pgas.OpError
					require.ErrorAs(t, err, &oe)
					require.Equal(t, 1, oe.Rank, "%v", err)
					require.ErrorContains(t, err, "closes its world")
					return nil
				})
				for _, err := range errs {
					require.NoError(t, err)
				}
			})
		}
	}
}

// TestCloseAmongReaders: a member that closes its world and reads is found by who wants to write, also beside one that reads on.
func TestCloseAmongReaders(t *testing.T) {
	const stays, closes, writes = 0, 1, 2
	for _, p := range pgastest.PathsOf(t) {
		for name, get := range map[string]func(ctx context.Context, rw *pgsync.RWLock) error{
			"lock": func(ctx context.Context, rw *pgsync.RWLock) error { return rw.Lock(ctx) },
			"try":  func(ctx context.Context, rw *pgsync.RWLock) error { return trying(ctx, rw.TryLock) },
		} {
			t.Run(p.Name+"/"+name, func(t *testing.T) {
				p.TimeLimit = 30 * time.Second
				errs := pgastest.Errors(t, 3, p.Config, func(ctx context.Context, w *pgas.World) error {
					rw, err := pgsync.NewRWLock(ctx, w.Team())
					if err != nil {
						return err
					}
					told, err := pgsync.NewSignals(ctx, w.Team(), 1)
					if err != nil {
						return err
					}
					if w.Rank() != writes {
						if err := rw.RLock(ctx); err != nil {
							return err
						}
					}
					if err := w.Barrier(ctx); err != nil {
						return err
					}
					switch w.Rank() {
					case stays:
						if _, err := told.Signal(0).WaitUntil(ctx, pgsync.Equal, 1); err != nil {
							return err
						}
						return rw.RUnlock()
					case writes:
						err := get(ctx, rw)
						require.ErrorIs(t, err, pgas.ErrPeerGone)
						var oe *pgas.OpError
						require.ErrorAs(t, err, &oe)
						require.Equal(t, closes, oe.Rank, "%v", err)
						require.ErrorContains(t, err, "closes its world")
						return told.Signal(0).Set(stays, 1)
					}
					return nil
				})
				for _, err := range errs {
					require.NoError(t, err)
				}
			})
		}
	}
}
