package pgsync_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/sync/coll"
)

// rootedCalls are the collectives with a root, each of so many words of a member, whose numbers are those of the call. They look at what they bring.
var rootedCalls = map[string]struct {
	fromRoot bool
	call     func(ctx context.Context, t *pgsync.Team, words, number, root int) error
}{
	"broadcast": {true, func(ctx context.Context, t *pgsync.Team, words, number, root int) error {
		buf := numbers(words, number, t.Rank())
		err := pgsync.Broadcast(ctx, t, buf, root)
		return errors.Join(err, look(err, buf, numbers(words, number, root)))
	}},
	"scatter": {true, func(ctx context.Context, t *pgsync.Team, words, number, root int) error {
		dst, src := make([]uint64, words), []uint64(nil)
		for m := 0; t.Rank() == root && m < t.Size(); m++ {
			src = append(src, numbers(words, number, m)...)
		}
		err := coll.Scatter(ctx, t, dst, src, root)
		return errors.Join(err, look(err, dst, numbers(words, number, t.Rank())))
	}},
	"reduce": {false, func(ctx context.Context, t *pgsync.Team, words, number, root int) error {
		dst := make([]uint64, words)
		err := pgsync.Reduce(ctx, t, dst, numbers(words, number, t.Rank()), pgsync.Max, root)
		if t.Rank() != root {
			return err
		}
		return errors.Join(err, look(err, dst, numbers(words, number, t.Size()-1)))
	}},
	"gather": {false, func(ctx context.Context, t *pgsync.Team, words, number, root int) error {
		dst, want := []uint64(nil), []uint64(nil)
		if t.Rank() == root {
			dst = make([]uint64, words*t.Size())
			for m := range t.Size() {
				want = append(want, numbers(words, number, m)...)
			}
		}
		err := coll.Gather(ctx, t, dst, numbers(words, number, t.Rank()), root)
		return errors.Join(err, look(err, dst, want))
	}},
}

// numbers are words that no other call and no other member has.
func numbers(words, number, member int) []uint64 {
	s := make([]uint64, words)
	for i := range s {
		s[i] = uint64(number)<<32 | uint64(member)<<16 | uint64(i)
	}
	return s
}

func look(err error, have, want []uint64) error {
	for i := range want {
		if err == nil && have[i] != want[i] {
			return fmt.Errorf("word %d is %x, not %x", i, have[i], want[i])
		}
	}
	return nil
}

// TestWhoGoesAhead: who needs nothing of a member does not wait for it, in four calls; the fifth waits until that one has come to the first, and all have what belongs to each.
func TestWhoGoesAhead(t *testing.T) {
	var made atomic.Int64
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		for _, name := range slices.Sorted(maps.Keys(rootedCalls)) {
			for _, words := range []int{1, 100} {
				if err := goAhead(ctx, t, w, name, words, &made); err != nil {
					return fmt.Errorf("%s of %d: %w", name, words, err)
				}
			}
		}
		return nil
	}, 2, 3, 8, 9)
}

// goAhead makes nine calls, of which those who go ahead count theirs in made.
func goAhead(ctx context.Context, t *testing.T, w *pgas.World, name string, words int, made *atomic.Int64) error {
	kind, team, root := rootedCalls[name], w.Team(), w.Size()-1
	ahead := team.Slips(8*words) || team.Slips(8) && team.Engine().Mapper() != nil
	slow := w.Rank() == root // who goes ahead of it
	if kind.fromRoot {
		slow = w.Rank() == 0
	}
	if slow {
		made.Store(0)
	}
	if err := w.Barrier(ctx); err != nil {
		return err
	}
	if slow {
		want := int64(0)
		if ahead {
			want = 4 * int64(w.Size()-1)
		}
		for made.Load() < want && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(2 * time.Millisecond)
		require.Equal(t, want, made.Load(), "calls of %s of %d made of which this rank has not begun one", name, words)
	}
	for number := range 9 {
		if err := kind.call(ctx, team, words, number, root); err != nil {
			return err
		}
		if !slow {
			made.Add(1)
		}
	}
	return w.Barrier(ctx)
}

// TestAheadOfWhoComputes: that a member has come to a call is told the others though it makes no other one for long. A fifth call waits for that.
func TestAheadOfWhoComputes(t *testing.T) {
	var made atomic.Int64
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		for _, name := range slices.Sorted(maps.Keys(rootedCalls)) {
			kind, root := rootedCalls[name], w.Size()-1
			slow := w.Rank() == root // nobody who waits for the root's
			if kind.fromRoot {
				slow = w.Rank() == 0
			}
			ahead := w.Team().Slips(8)
			for range 20 {
				made.Store(0)
				if err := w.Barrier(ctx); err != nil {
					return err
				}
				for number := range 5 {
					if err := kind.call(ctx, w.Team(), 1, number, root); err != nil {
						return err
					}
					if !slow {
						made.Add(1)
						continue
					}
					for number == 0 && ahead && made.Load() < 5*int64(w.Size()-1) && ctx.Err() == nil {
						time.Sleep(20 * time.Microsecond)
					}
				}
				if err := w.Barrier(ctx); err != nil {
					return err
				}
			}
		}
		return nil
	}, 2, 3)
}

// TestAheadOfMismatch: members that go ahead of others in calls that are not theirs learn of it in the next call in which they wait, whatever that is.
func TestAheadOfMismatch(t *testing.T) {
	waits := map[string]func(ctx context.Context, w *pgas.World) error{
		"a barrier": func(ctx context.Context, w *pgas.World) error { return w.Barrier(ctx) },
		"a sum": func(ctx context.Context, w *pgas.World) error {
			return pgsync.AllReduce(ctx, w.Team(), []int{0}, []int{0}, pgsync.Sum)
		},
		"many": func(ctx context.Context, w *pgas.World) error {
			return pgsync.AllGather(ctx, w.Team(), make([]int, 1000*w.Size()), make([]int, 1000))
		},
		"a started call": func(ctx context.Context, w *pgas.World) error {
			for range 3 { // until it is the turn of the lane
				if err := w.Team().BarrierNB().Wait(ctx); err != nil {
					return err
				}
			}
			return w.Team().BarrierNB().Wait(ctx)
		},
		"more of the kind": func(ctx context.Context, w *pgas.World) error {
			for range 4 {
				if err := pgsync.Broadcast(ctx, w.Team(), []int{0}, 0); err != nil {
					return err
				}
			}
			return nil
		},
		"its free": func(ctx context.Context, w *pgas.World) error { return w.Team().Free(ctx) },
	}
	for name, wait := range waits {
		for _, p := range pgastest.PathsOf(t) {
			t.Run(name+"/"+p.Name, func(t *testing.T) {
				p.TimeLimit = 20 * time.Second
				errs := pgastest.Errors(t, 2, p.Config, func(ctx context.Context, w *pgas.World) error {
					if err := pgsync.Broadcast(ctx, w.Team(), []int{w.Rank()}, w.Rank()); err != nil {
						return err
					}
					return wait(ctx, w)
				})
				for _, err := range errs {
					require.ErrorIs(t, err, pgsync.ErrMismatch)
				}
				text := errors.Join(errs...).Error()
				require.Contains(t, text, "broadcast")
			})
		}
	}
}

// TestAheadOfTheDead: a member that is gone ends the calls of who has gone ahead of it, when these have to wait.
func TestAheadOfTheDead(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		t.Run(p.Name, func(t *testing.T) {
			p.TimeLimit = 20 * time.Second
			over := errors.New("the end")
			errs := pgastest.Errors(t, 3, p.Config, func(ctx context.Context, w *pgas.World) error {
				if w.Rank() == 2 {
					return over
				}
				for {
					if err := pgsync.Broadcast(ctx, w.Team(), []int{1}, 0); err != nil {
						return err
					}
				}
			})
			require.ErrorIs(t, errs[0], pgas.ErrPeerGone)
			require.Error(t, errs[1])
		})
	}
}

// TestAheadOfStartedCalls: calls that members go ahead in, and started ones, take the lanes in turn.
func TestAheadOfStartedCalls(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		var begun []*pgsync.Request
		for number := range 60 {
			root, kind := number%w.Size(), []string{"broadcast", "scatter", "reduce", "gather"}[number/3%4]
			call := func(ctx context.Context, team *pgsync.Team) error {
				return rootedCalls[kind].call(ctx, team, 1+number%2*40, number, root)
			}
			if number%5 > 0 {
				if err := call(ctx, w.Team()); err != nil {
					return err
				}
				continue
			}
			begun = append(begun, w.Team().Start(call))
		}
		for _, r := range begun {
			if err := r.Wait(ctx); err != nil {
				return err
			}
		}
		return nil
	}, 2, 3, 5)
}
