package pgas_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/transport/transporttest"
	"gopgas/window"
)

func TestMain(m *testing.M) { os.Exit(pgastest.Main(m)) }

// things are what the calls under test need; all are made while everybody lives.
type things struct {
	w    *pgas.World
	win  *window.Window[int64]
	sigs *pgsync.Signals
	lock *pgsync.Lock
}

func make4(ctx context.Context, w *pgas.World) (th things, err error) {
	th.w = w
	if th.win, err = window.Allocate[int64](ctx, w.Team(), 100_000); err != nil {
		return th, err
	}
	if th.sigs, err = pgsync.NewSignals(ctx, w.Team(), 1); err != nil {
		return th, err
	}
	th.lock, err = pgsync.NewLock(ctx, w.Team())
	return th, err
}

const dead = 2

// waiting are calls that need the dead rank.
var waiting = map[string]func(ctx context.Context, th things) error{
	"barrier": func(ctx context.Context, th things) error { return th.w.Barrier(ctx) },
	"fence":   func(ctx context.Context, th things) error { return th.win.Fence(ctx) },
	"broadcast": func(ctx context.Context, th things) error {
		return pgsync.Broadcast(ctx, th.w.Team(), make([]int, 3), dead)
	},
	"allreduce": func(ctx context.Context, th things) error {
		v := make([]int, 10_000)
		return pgsync.AllReduce(ctx, th.w.Team(), v, v, pgsync.Sum)
	},
	"wait-until": func(ctx context.Context, th things) error {
		_, err := th.sigs.Signal(0).WaitUntil(ctx, pgsync.Equal, 1)
		return err
	},
	"lock": func(ctx context.Context, th things) error { return th.lock.Lock(ctx) },
	"split": func(ctx context.Context, th things) error {
		_, err := th.w.Team().Split(ctx, 0, 0)
		return err
	},
	"allocate": func(ctx context.Context, th things) error {
		_, err := window.Allocate[int](ctx, th.w.Team(), 10)
		return err
	},
	"close": func(ctx context.Context, th things) error { return th.w.Close(ctx) },
}

// onNIC are calls that need the dead rank's NIC, each in a world of its own: they are under way when it dies. They are repeated until they
// fail, since they may be done before it dies.
var onNIC = map[string]func(ctx context.Context, th things) error{
	"flush": func(ctx context.Context, th things) error {
		return errors.Join(th.win.Put(dead, th.w.Rank()*20_000, make([]int64, 20_000)), th.win.Flush(dead))
	},
	"get": func(ctx context.Context, th things) error { return th.win.Get(dead, 0, make([]int64, 50_000)) },
	"get-nb": func(ctx context.Context, th things) error {
		h, err := th.win.GetNB(dead, 0, make([]int64, 50_000))
		return errors.Join(err, h.Wait(ctx))
	},
	"fetch-add": func(ctx context.Context, th things) error {
		_, err := window.FetchAdd(th.win, dead, 0, 1)
		return err
	},
	"signal-add": func(ctx context.Context, th things) error { return th.sigs.Signal(0).Add(dead, 1) },
}

// soon is within what time a death is told: a second. Over verbs the tests run in an emulated machine, where a processor does in a second what a
// real one does in a twentieth, and has other work beside: there it is five, a quarter of what a world has before it counts as hung.
func soon(path string) time.Duration {
	if path == "verbs" {
		return 5 * time.Second
	}
	return time.Second
}

// TestDeathEndsEveryCall: a rank dies while the others wait for it in every kind of call: each gets, within a second, an
// error that wraps ErrPeerGone and names it. Nothing hangs and no goroutine is left.
func TestDeathEndsEveryCall(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		calls := map[string]func(context.Context, things) error{}
		maps.Copy(calls, waiting)
		if p.NIC {
			maps.Copy(calls, onNIC)
		}
		for name, call := range calls {
			for _, how := range []string{"returns", "panics", "killed"} {
				if how == "killed" && (!p.NIC || p.Over != "") || how == "panics" && name != "barrier" {
					continue // neither a goroutine nor a real NIC can be killed; and a panic is an error to the others
				}
				if testing.Short() && how == "killed" && p.Name != "nic-good" {
					continue // how a simulated NIC dies is the same for all of them; how its messages travel is what the paths differ in
				}
				t.Run(p.Name+"/"+name+"/"+how, func(t *testing.T) { dies(t, p, call, onNIC[name] != nil, how) })
			}
		}
	}
}

func dies(t *testing.T, p pgastest.Named, call func(context.Context, things) error, repeat bool, how string) {
	c := p.Config
	c.TimeLimit = 20 * time.Second
	var fabric *transporttest.Fabric
	c.Made = func(f *transporttest.Fabric) { fabric = f }
	const n = 4
	var ready, told sync.WaitGroup
	ready.Add(n)
	told.Add(n - 1)
	var died atomic.Pointer[time.Time] // a socket that ends is no order to the race detector
	began := time.Now()
	died.Store(&began)
	took := make([]time.Duration, n)
	errs := pgastest.Errors(t, n, c, func(ctx context.Context, w *pgas.World) error {
		th, err := make4(ctx, w)
		if err != nil {
			ready.Done()
			return err
		}
		if w.Rank() == dead {
			err = th.lock.Lock(ctx)
		}
		ready.Done()
		ready.Wait()
		if err != nil {
			return err
		}
		if w.Rank() == dead {
			time.Sleep(5 * time.Millisecond) // the others are in their calls
			now := time.Now()
			died.Store(&now)
			switch how {
			case "panics":
				panic("made up")
			case "killed":
				fabric.Kill(dead)
			}
			return errors.New("made up")
		}
		for err = call(ctx, th); repeat && err == nil; err = call(ctx, th) {
		}
		took[w.Rank()] = time.Since(*died.Load())
		told.Done()
		told.Wait() // nobody else leaves before all know
		if err == nil {
			return errors.New("the call went well")
		}
		return err
	})
	for r, err := range errs {
		if r == dead {
			require.ErrorContains(t, err, "made up")
			continue
		}
		require.ErrorIs(t, err, pgas.ErrPeerGone, "rank %d", r)
		var oe *pgas.OpError
		require.ErrorAs(t, err, &oe)
		require.Equal(t, dead, oe.Rank, "rank %d: %v", r, err)
		require.Less(t, took[r], soon(p.Name), "rank %d", r)
	}
}

// TestSurvivorsGoOn: with a team that the dead rank is not a member of, the others work on.
func TestSurvivorsGoOn(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		t.Run(p.Name, func(t *testing.T) {
			p.TimeLimit = 10 * time.Second
			var passed, dying, done sync.WaitGroup
			passed.Add(4)
			dying.Add(1)
			done.Add(3)
			errs := pgastest.Errors(t, 4, p.Config, func(ctx context.Context, w *pgas.World) error {
				team, err := w.Team().Split(ctx, w.Rank()/3, 0)
				if err != nil {
					return err
				}
				if err := w.Barrier(ctx); err != nil {
					return err
				}
				passed.Done()
				passed.Wait()
				if w.Rank() == 3 {
					dying.Done()
					return errors.New("made up")
				}
				dying.Wait()
				require.ErrorIs(t, w.Barrier(ctx), pgas.ErrPeerGone)
				for range 50 {
					v := []int{w.Rank()}
					if err := errors.Join(team.Barrier(ctx), pgsync.AllReduce(ctx, team, v, v, pgsync.Sum)); err != nil {
						return err
					}
					require.Equal(t, 3, v[0])
				}
				win, err := window.Allocate[int](ctx, team, 1000)
				if err != nil {
					return err
				}
				_, err = window.FetchAdd(win, (team.Rank()+1)%3, 0, 5)
				if err := errors.Join(err, win.Fence(ctx)); err != nil {
					return err
				}
				require.Equal(t, 5, win.Local()[0])
				require.Len(t, w.Failed(), 1)
				require.ErrorIs(t, w.Failed()[3], pgas.ErrPeerGone)
				err = errors.Join(win.Free(ctx), errGood)
				done.Done()
				done.Wait() // who leaves now is gone, and may be while another still frees
				return err
			})
			for r := range 3 {
				require.ErrorIs(t, errs[r], errGood, "rank %d", r)
				require.NotErrorIs(t, errs[r], pgas.ErrPeerGone)
			}
		})
	}
}

var errGood = errors.New("all went well") // so that the world is not closed, which needs everybody

// TestOwnNICKilled: the rank whose NIC is gone does not hang either.
func TestOwnNICKilled(t *testing.T) {
	for name, call := range onNIC {
		t.Run(name, func(t *testing.T) {
			var fabric *transporttest.Fabric
			c := pgastest.Config{NIC: true, TimeLimit: 10 * time.Second, Made: func(f *transporttest.Fabric) { fabric = f }}
			c.Fabric.Jitter = 200 * time.Microsecond
			errs := pgastest.Errors(t, 3, c, func(ctx context.Context, w *pgas.World) error {
				th, err := make4(ctx, w)
				if err != nil {
					return err
				}
				if w.Rank() == 0 {
					time.AfterFunc(3*time.Millisecond, func() { fabric.Kill(0) })
					for err = call(ctx, th); err == nil; err = call(ctx, th) {
					}
					return err
				}
				return w.Barrier(ctx)
			})
			require.ErrorIs(t, errs[0], pgas.ErrClosed)
			require.ErrorIs(t, errs[1], pgas.ErrPeerGone)
			require.ErrorIs(t, errs[2], pgas.ErrPeerGone)
		})
	}
}
