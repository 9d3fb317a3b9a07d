package litmus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// goroutines runs f on n ranks that are goroutines, on every path: there -race sees every rank, and NICs take part.
func goroutines(t *testing.T, n, words int, f func(ctx context.Context, p *pair) error) {
	for _, c := range pgastest.Paths() {
		t.Run(c.Name, func(t *testing.T) {
			c.TimeLimit = 30 * time.Second
			pgastest.RunConfig(t, n, c.Config, func(ctx context.Context, w *pgas.World) error {
				p, err := newPair(ctx, w, words)
				if err != nil {
					return err
				}
				return errors.Join(f(ctx, p), p.data.Free(ctx), p.flags.Free(ctx))
			})
		})
	}
}

const fewRounds = 300

// TestStoreBufferingOnEveryPath: put, flush, get of the other's word: not both may miss.
func TestStoreBufferingOnEveryPath(t *testing.T) {
	goroutines(t, 2, fewRounds, func(ctx context.Context, p *pair) error {
		mine := make([]uint64, fewRounds)
		for i := range fewRounds {
			if err := p.w.Barrier(ctx); err != nil {
				return err
			}
			// Atomic on both sides: put and get of one word at once would be a conflict.
			e1 := window.Store(p.data, p.other, i, 1)
			if i%2 == 0 {
				_, e1 = window.Swap(p.data, p.other, i, 1)
			}
			e2 := p.data.Flush(p.other)
			v, e3 := window.Load(p.data, p.me, i)
			if err := errors.Join(e1, e2, e3); err != nil {
				return err
			}
			mine[i] = v
		}
		all := make([]uint64, 2*fewRounds)
		if err := pgsync.AllGather(ctx, p.w.Team(), all, mine); err != nil {
			return err
		}
		for i := range fewRounds {
			if all[i]+all[fewRounds+i] == 0 {
				return fmt.Errorf("round %d: both ranks got the old value", i)
			}
		}
		return p.w.Barrier(ctx)
	})
}

// TestMessagePassingOnEveryPath: data, Order, a flag: by Put and atomics, and by PutSignal; the reader looks with plain
// loads, so under -race the flag must be seen to order them.
func TestMessagePassingOnEveryPath(t *testing.T) {
	goroutines(t, 2, 1000, func(ctx context.Context, p *pair) error {
		sigs, err := pgsync.NewSignals(ctx, p.w.Team(), 2)
		if err != nil {
			return err
		}
		there, back := sigs.Signal(0), sigs.Signal(1)
		src := make([]uint64, 1000)
		for n := uint64(1); n <= fewRounds; n++ {
			if p.me == 0 {
				for i := range src {
					src[i] = n
				}
				if n%2 == 0 {
					err = p.data.PutSignal(1, 0, src, there, n)
				} else {
					err = errors.Join(p.data.Put(1, 0, src), p.data.Order(1), there.Set(1, n))
				}
				if err == nil {
					_, err = back.WaitUntil(ctx, pgsync.Equal, n)
				}
			} else {
				if _, err = there.WaitUntil(ctx, pgsync.Equal, n); err == nil {
					for i, v := range p.data.Local() {
						if v != n {
							return fmt.Errorf("the signal says %d, word %d says %d", n, i, v)
						}
					}
					err = back.Set(0, n)
				}
			}
			if err != nil {
				return err
			}
		}
		return sigs.Free(ctx)
	})
}

// independent has ranks 0 and 1 write one word each, and ranks 2 and 3 read both in opposite order. It returns how often
// the readers saw the writes in opposite orders. All words lie on rank 0.
func independent(ctx context.Context, w *pgas.World, n int) (int, error) {
	win, err := window.Allocate[uint64](ctx, w.Team(), 2*n)
	if err != nil {
		return 0, err
	}
	seen := make([]uint64, 2*n)
	for i := range n {
		if i%64 == 0 { // the ranks stay close to each other
			if err := w.Barrier(ctx); err != nil {
				return 0, err
			}
		}
		x, y := 2*i, 2*i+1
		switch w.Rank() {
		case 0, 1:
			_, err = window.Swap(win, 0, x+w.Rank(), 1)
		case 3:
			x, y = y, x
			fallthrough
		default:
			var a, b uint64
			for tries := 0; a == 0 && tries < 50; tries++ { // until the first is seen, or the round is given up
				if a, err = window.Load(win, 0, x); err != nil {
					return 0, err
				}
			}
			b, err = window.Load(win, 0, y)
			seen[2*i], seen[2*i+1] = a, b
		}
		if err != nil {
			return 0, err
		}
	}
	all := make([]uint64, 4*len(seen))
	if err := pgsync.AllGather(ctx, w.Team(), all, seen); err != nil {
		return 0, err
	}
	bad := 0
	r2, r3 := all[2*len(seen):3*len(seen)], all[3*len(seen):]
	for i := range n {
		if r2[2*i] == 1 && r2[2*i+1] == 0 && r3[2*i] == 1 && r3[2*i+1] == 0 {
			bad++
		}
	}
	return bad, win.Free(ctx)
}

func iriw(ctx context.Context, w *pgas.World, n int) error {
	bad, err := independent(ctx, w, n)
	if err == nil && bad > 0 {
		err = fmt.Errorf("two readers saw two writes in opposite orders in %d of %d rounds", bad, n)
	}
	return err
}

// TestIndependentReads: atomics by different ranks are seen in one order by all.
func TestIndependentReads(t *testing.T) {
	pgastest.RunProcs(t, 4, func(ctx context.Context, w *pgas.World) error { return iriw(ctx, w, min(*rounds, 200_000)) })
}

func TestIndependentReadsOnEveryPath(t *testing.T) {
	for _, c := range pgastest.Paths() {
		t.Run(c.Name, func(t *testing.T) {
			pgastest.RunConfig(t, 4, c.Config, func(ctx context.Context, w *pgas.World) error { return iriw(ctx, w, fewRounds) })
		})
	}
}

// envConflict makes TestConflict conflict.
const envConflict = "LITMUS_CONFLICT"

// TestConflict is a put and a local access of the same word. In the child of TestRaceDetectorSeesConflicts nothing orders
// them; else a fence does.
func TestConflict(t *testing.T) {
	how := os.Getenv(envConflict)
	for _, c := range pgastest.Paths() {
		t.Run(c.Name, func(t *testing.T) {
			var reading atomic.Bool // in the conflict both are at it at once; it orders nothing that is done after it
			pgastest.RunConfig(t, 2, c.Config, func(ctx context.Context, w *pgas.World) error {
				win, err := window.Allocate[uint64](ctx, w.Team(), 4)
				if err != nil {
					return err
				}
				local, sum := win.Local(), uint64(0)
				switch {
				case w.Rank() == 0:
					for how != "" && !reading.Load() {
						time.Sleep(10 * time.Microsecond)
					}
					err = errors.Join(win.Put(1, 0, []uint64{1, 2, 3}), win.Flush(1))
				case how != "":
					reading.Store(true)
					// Until the put is seen, and without a call: the detector is silent about an access when it has forgotten
					// where that was, and every call makes it forget some.
					for tries := 0; sum == 0 && tries < 1<<31; tries++ {
						sum += local[0] + local[1]
					}
				}
				if how == "" {
					err = errors.Join(err, win.Fence(ctx))
					for _, v := range local {
						sum += v
					}
					if w.Rank() == 1 && sum != 6 {
						return fmt.Errorf("sum %d", sum)
					}
				}
				return errors.Join(err, win.Fence(ctx), win.Free(ctx))
			})
		})
	}
}

// TestRaceDetectorSeesConflicts: in a goroutine world the race detector reports a put beside a local access that nothing
// orders, on every path, and nothing where a fence orders them.
func TestRaceDetectorSeesConflicts(t *testing.T) {
	if testing.Short() && !raceEnabled {
		t.Skip("-short: builds everything with the race detector; make check runs it")
	}
	program, err := os.Executable()
	require.NoError(t, err)
	if !raceEnabled {
		program = filepath.Join(t.TempDir(), "litmus.test")
		build := exec.Command("go", "test", "-race", "-vet=off", "-c", "-o", program, "gopgas/test/litmus")
		build.Env = append(os.Environ(), "CGO_ENABLED=1") // the detector needs cgo, whatever is tested
		out, err := build.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	run := func(test, env string) (string, error) {
		cmd := exec.Command(program, "-test.run", "^TestConflict$/^"+test+"$", "-test.timeout", "5m")
		cmd.Env = append(os.Environ(), envConflict+"="+env, "GORACE=atexit_sleep_ms=0 history_size=7") // a memory of what each rank did
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run(".*", "")
	require.NoError(t, err, out)
	for _, c := range pgastest.Paths() {
		out, err := run(c.Name, "1")
		require.Error(t, err, "%s: %s", c.Name, out)
		require.Contains(t, out, "WARNING: DATA RACE", c.Name)
	}
}
