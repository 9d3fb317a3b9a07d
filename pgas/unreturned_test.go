package pgas_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/algo"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
)

// calling are the collective calls that call functions of the program; each calls f for some elements.
var calling = map[string]func(ctx context.Context, s spread, f func()) error{
	"apply": func(ctx context.Context, s spread, f func()) error {
		return s.a.Apply(ctx, func(_ int, v int64) int64 { f(); return v })
	},
	"combine": func(ctx context.Context, s spread, f func()) error {
		return s.a.Combine(ctx, s.x, s.x, func(x, _ int64) int64 { f(); return x })
	},
	"matrix apply": func(ctx context.Context, s spread, f func()) error {
		return s.m.Apply(ctx, func(_, _ int, v int64) int64 { f(); return v })
	},
	"matrix combine": func(ctx context.Context, s spread, f func()) error {
		return s.m.Combine(ctx, s.m, s.m, func(x, _ int64) int64 { f(); return x })
	},
	"grid apply": func(ctx context.Context, s spread, f func()) error {
		return s.g.Apply(ctx, func(_ []int, v int64) int64 { f(); return v })
	},
	"sort": func(ctx context.Context, s spread, f func()) error {
		return algo.SortFunc(ctx, s.a, func(x, y int64) int { f(); return int(x - y) })
	},
}

// unreturned makes a call in which f ends in another way than by returning, and comes back from that.
func unreturned(call func(f func()) error, f func()) (returned bool, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		err = call(f)
		returned = true
	}()
	<-done
	return returned, err
}

// A function that a member gave to a collective call panics there, and the program goes on, or it ends its goroutine: the others are told, and do not take that
// member's next call for its part of this one.
func TestUnreturnedIsTold(t *testing.T) {
	for name, call := range calling {
		for how, f := range map[string]func(){"panic": func() { panic("the program's") }, "goexit": runtime.Goexit} {
			t.Run(fmt.Sprintf("%s/%s", name, how), func(t *testing.T) {
				const n, bad = 3, 1
				var all sync.WaitGroup // nobody is gone before all have been told
				all.Add(n)
				pgastest.Errors(t, n, pgastest.Config{TimeLimit: 20 * time.Second}, func(ctx context.Context, w *pgas.World) error {
					defer all.Wait()
					defer all.Done()
					s, err := newSpread(ctx, w.Team())
					require.NoError(t, err)
					if w.Rank() != bad {
						err = call(ctx, s, func() {})
						if err == nil { // it was through before the word came
							err = s.a.Fence(ctx)
						}
						require.ErrorIs(t, err, pgsync.ErrAbandoned)
						require.ErrorContains(t, err, "rank 1 left")
						return nil
					}
					returned, _ := unreturned(func(f func()) error { return call(ctx, s, f) }, f)
					require.False(t, returned)
					for range 3 { // what the others could take for the end of theirs
						require.ErrorIs(t, errors.Join(s.a.Fence(ctx), s.m.Fence(ctx), s.g.Fence(ctx)), pgsync.ErrAbandoned)
					}
					return nil
				})
			})
		}
	}
}
