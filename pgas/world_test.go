package pgas_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/bootstrap"
	"gopgas/internal/sched"
	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/transport/shm"
	"gopgas/window"
)

func TestWorldTellsWhoIsThere(t *testing.T) {
	pgastest.EachReal(t, []int{1, 3, 4}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		require.Equal(t, "in-process", w.Launcher())
		for r := range w.Size() {
			n, name := w.Node(r)
			if e := w.Team().Engine(); r == 0 || e.Mapper() == nil || e.NIC() == "" {
				require.Zero(t, n)
			}
			require.NotEmpty(t, name)
			require.Contains(t, []string{"shm", "loopback", "soft", "tcp", "verbs"}, w.Transport(r))
		}
		require.Empty(t, w.Failed())
		require.Positive(t, w.Elapsed())
		team, err := w.NodeTeam(ctx)
		if err != nil {
			return err
		}
		mates := 0
		mine, _ := w.Node(w.Rank())
		for r := range w.Size() {
			if n, _ := w.Node(r); n == mine {
				mates++
			}
		}
		require.Equal(t, mates, team.Size())
		return team.Free(ctx)
	})
}

func TestCloseTwice(t *testing.T) {
	for _, p := range pgastest.Paths() {
		errs := pgastest.Errors(t, 2, p.Config, func(ctx context.Context, w *pgas.World) error {
			win, err := window.Allocate[int](ctx, w.Team(), 4)
			if err != nil {
				return err
			}
			team := w.Team()
			signals, err1 := pgsync.NewSignals(ctx, team, 2)
			counter, err2 := pgsync.NewCounter(ctx, team)
			event, err3 := pgsync.NewEvent(ctx, team)
			lock, err4 := pgsync.NewLock(ctx, team)
			rw, err5 := pgsync.NewRWLock(ctx, team)
			a, err6 := pgas.NewArray[int](ctx, team, 8, pgas.Cyclic())
			if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
				return err
			}
			signal := signals.Signal(1)
			signal.Store(7)
			if err := w.Close(ctx); err != nil {
				return err
			}
			require.ErrorIs(t, w.Close(ctx), pgas.ErrClosed)
			one := []int{1}
			_, next := counter.Next(1)
			_, waited := signal.WaitUntil(ctx, pgsync.GreaterOrEqual, 7)
			_, tried := lock.TryLock()
			_, triedRW := rw.TryRLock()
			_, at := a.At(3)
			for _, err := range []error{
				next, waited, tried, triedRW, at, signal.Set(0, 1), signal.Add(1, 1), event.Post(0, 1), event.Wait(ctx, 1),
				lock.Lock(ctx), lock.Unlock(), rw.Lock(ctx), rw.RUnlock(), a.Set(3, 1), a.Fence(ctx),
				signals.Free(ctx), counter.Free(ctx), event.Free(ctx), lock.Free(ctx), rw.Free(ctx), a.Free(ctx),
				win.Put(w.Rank(), 0, one), win.Get(1-w.Rank(), 0, one), win.Flush(0), win.Fence(ctx), win.Free(ctx),
				w.Barrier(ctx), pgsync.AllReduce(ctx, w.Team(), one, one, pgsync.Sum), w.Team().BarrierNB().Wait(ctx),
			} {
				require.ErrorIs(t, err, pgas.ErrClosed)
			}
			require.Empty(t, win.Local())
			require.Empty(t, a.Local())
			require.Zero(t, event.Count())
			require.False(t, event.TryWait(1))
			require.Equal(t, uint64(7), signal.Load(), "what it was")
			signal.Store(8)
			return errGood
		})
		require.Equal(t, []error{errGood, errGood}, errs)
	}
}

// TestHeapGrowsOnDemand: allocations far larger than what is there, and back.
// slowEnd is a job whose launcher is slow at the end.
type slowEnd struct {
	bootstrap.Job
	barriers int
	gate     chan struct{}
}

func (j *slowEnd) Barrier(ctx context.Context) error {
	if j.barriers++; j.barriers > 1 { // the first one is of the start
		<-j.gate
	}
	return j.Job.Barrier(ctx)
}

// TestCloseIsSeenToWait: who waits for the launcher in Close does not look as if it computed.
func TestCloseIsSeenToWait(t *testing.T) {
	job := &slowEnd{Job: bootstrap.InProcess(1)[0], gate: make(chan struct{})}
	w, err := pgas.Assemble(t.Context(), pgas.Config{}, pgas.Parts{
		Job: job, Sched: func(here, _ int) *sched.Sched { return sched.Goroutine(here) },
		Mapper: shm.NewGroup(1, shm.Config{What: "symmetric heap"})[0],
	})
	require.NoError(t, err)
	ended := make(chan error)
	go func() { ended <- w.Close(context.Background()) }()
	require.Eventually(t, func() bool {
		waits := w.Waits()
		return len(waits) == 1 && waits[0].Op == "close" && waits[0].Peer == -1
	}, 20*time.Second, time.Millisecond)
	close(job.gate)
	require.NoError(t, <-ended)
	require.Empty(t, w.Waits())
}

func TestHeapGrowsOnDemand(t *testing.T) {
	worlds(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		reserved, used := w.HeapUsage()
		require.GreaterOrEqual(t, reserved, used)
		var wins []*window.Window[uint64]
		for _, n := range []int{1 << 10, 1 << 20, 3 << 18, 1} {
			win, err := window.Allocate[uint64](ctx, w.Team(), n)
			if err != nil {
				return err
			}
			r, u := w.HeapUsage()
			require.GreaterOrEqual(t, u, used+8*n)
			require.GreaterOrEqual(t, r, u)
			win.Local()[n-1] = 1
			wins = append(wins, win)
		}
		for i := range wins { // not in the order they were made
			if err := wins[(i+2)%len(wins)].Free(ctx); err != nil {
				return err
			}
		}
		r, u := w.HeapUsage()
		require.Equal(t, []int{reserved, used}, []int{r, u})
		return nil
	})
}

// TestStatsAreExact: a counted world tells what was moved, no more and no less.
func TestStatsAreExact(t *testing.T) {
	diff := func(w *pgas.World, path, name string, f func() error) (d pgas.PathStats, err error) {
		a := w.Stats()[name][path]
		err = f()
		b := w.Stats()[name][path]
		return pgas.PathStats{Ops: b.Ops - a.Ops, Bytes: b.Bytes - a.Bytes}, err
	}
	expect := func(t *testing.T, w *pgas.World, name, path string, ops, bytes uint64, f func() error) {
		d, err := diff(w, path, name, f)
		require.NoError(t, err)
		require.Equal(t, pgas.PathStats{Ops: ops, Bytes: bytes}, d, "%s %s", name, path)
	}
	pgastest.RunConfig(t, 2, pgastest.Config{Stats: true}, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[int32](ctx, w.Team(), 1000)
		if err != nil {
			return err
		}
		buf := make([]int32, 1000)
		expect(t, w, "shm", "mapped", 1, 4, func() error { return win.Put(1-w.Rank(), w.Rank(), buf[:1]) })
		if err := win.Fence(ctx); err != nil {
			return err
		}
		expect(t, w, "shm", "mapped", 2, 4400, func() error { return errors.Join(win.Get(1-w.Rank(), 0, buf), win.Get(w.Rank(), 0, buf[:100])) })
		expect(t, w, "shm", "mapped", 1, 40, func() error { _, err := win.GetNB(0, 5, buf[:10]); return err })
		expect(t, w, "shm", "mapped", 0, 0, func() error { return errors.Join(win.Get(0, 0, nil), win.Flush(0), win.Order(1)) })
		expect(t, w, "shm", "mapped", 0, 0, func() error { require.Error(t, win.Put(0, 1000, buf)); return nil })
		if err := win.Fence(ctx); err != nil { // the other rank's gets are over before the atomics write
			return err
		}
		expect(t, w, "shm", "atomic", 2, 8, func() error {
			_, e1 := window.FetchAdd(win, 0, 5, 1)
			_, e2 := window.CompareSwap(win, 1, 5, 1, 2)
			return errors.Join(e1, e2)
		})
		return win.Free(ctx)
	})
	pgastest.RunConfig(t, 2, pgastest.Config{NIC: true, Eager: "inline", Bulk: "superpipe"}, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[int32](ctx, w.Team(), 50_000)
		if err != nil {
			return err
		}
		buf := make([]int32, 25_000)
		at := w.Rank() * 25_000
		expect(t, w, "loopback", "superpipe", 2, 200_000, func() error {
			return errors.Join(win.Put(1-w.Rank(), at, buf), win.Get(1-w.Rank(), at, buf))
		})
		expect(t, w, "loopback", "inline", 1, 40, func() error { return win.Put(1-w.Rank(), at, buf[:10]) })
		if err := win.Fence(ctx); err != nil {
			return err
		}
		return win.Free(ctx)
	})
	pgastest.RunConfig(t, 2, pgastest.Config{NIC: true, Eager: "bypass", Bulk: "register"}, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[int32](ctx, w.Team(), 100)
		if err != nil {
			return err
		}
		buf := make([]int32, 25*w.Size()) // on the heap: what is on a stack is never registered
		at := w.Rank() * 50
		expect(t, w, "loopback", "bypass", 2, 400, func() error {
			return errors.Join(win.Put(1-w.Rank(), at, buf), win.Get(1-w.Rank(), at, buf))
		})
		if err := win.Fence(ctx); err != nil {
			return err
		}
		return win.Free(ctx)
	})
	pgastest.RunConfig(t, 2, pgastest.Config{NIC: true, Eager: "bounce"}, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[int32](ctx, w.Team(), 100)
		if err != nil {
			return err
		}
		buf := make([]int32, 50)
		at := w.Rank() * 50
		expect(t, w, "loopback", "bounce", 2, 204, func() error {
			return errors.Join(win.Put(1-w.Rank(), at, buf), win.Put(1-w.Rank(), at, buf[:1]))
		})
		if err := win.Fence(ctx); err != nil {
			return err
		}
		return win.Free(ctx)
	})
	pgastest.RunConfig(t, 2, pgastest.Config{NIC: true, Bulk: "register"}, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[int32](ctx, w.Team(), 50_000)
		if err != nil {
			return err
		}
		buf := make([]int32, 25_000)
		at := w.Rank() * 25_000
		expect(t, w, "loopback", "inline", 1, 40, func() error { return win.Put(1-w.Rank(), at, buf[:10]) })
		expect(t, w, "loopback", "bounce", 1, 60_000, func() error { return win.Put(1-w.Rank(), at, buf[:15_000]) })
		expect(t, w, "loopback", "zero-copy", 1, 100_000, func() error { return win.Put(1-w.Rank(), at, buf) })
		if err := win.Fence(ctx); err != nil {
			return err
		}
		expect(t, w, "loopback", "zero-copy", 1, 100_000, func() error { return win.Get(1-w.Rank(), 0, buf) })
		expect(t, w, "loopback", "bounce", 1, 4, func() error { return win.Get(w.Rank(), 0, buf[:1]) })
		require.Zero(t, w.Stats()["shm"])
		return win.Free(ctx)
	})
	pgastest.Run(t, 2, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[int32](ctx, w.Team(), 100)
		if err != nil {
			return err
		}
		expect(t, w, "shm", "mapped", 0, 0, func() error { return win.Put(1-w.Rank(), w.Rank(), make([]int32, 1)) })
		return win.Free(ctx)
	})
}

func TestConfigFromEnvironment(t *testing.T) {
	for _, c := range []struct {
		env  []string
		want pgas.Config
		bad  string // part of the error
	}{
		{env: []string{}, want: pgas.Config{StartTimeout: time.Minute}},
		{env: []string{"PGAS_STATS=0", "PGAS_STATS=1"}, want: pgas.Config{Stats: true, StartTimeout: time.Minute}},
		{env: []string{"PGAS_LOCAL=", "PGAS_STATS=", "PGAS_TRANSPORT=", "PGAS_START_TIMEOUT=", "PGAS_FAILURE_TIMEOUT="}, want: pgas.Config{StartTimeout: time.Minute}},
		{env: []string{"PGAS_LOCAL=on", "PGAS_TRANSPORT=shm", "PGAS_START_TIMEOUT=90s"}, want: pgas.Config{Transport: "shm", StartTimeout: 90 * time.Second}},
		{env: []string{"PGAS_NODES=0, 0,2"}, want: pgas.Config{Nodes: []int{0, 0, 2}, StartTimeout: time.Minute}},
		{env: []string{"PGAS_NODES=0,,1"}, bad: `PGAS_NODES="0,,1": want a node for each rank, from 0 on, such as 0,0,1`},
		{env: []string{"PGAS_NODES=0,-1"}, bad: `PGAS_NODES="0,-1": want a node for each rank, from 0 on`},
		{env: []string{"XPGAS_STATS=7", "PGAS_STATSX=7", "PGAS"}, want: pgas.Config{StartTimeout: time.Minute}},
		{env: []string{"PGAS_TRANSPORT=auto"}, want: pgas.Config{StartTimeout: time.Minute}},
		{
			env:  []string{"PGAS_TRANSPORT=tcp", "PGAS_DEVICE=eth0", "PGAS_FAILURE_TIMEOUT=2s"},
			want: pgas.Config{Transport: "tcp", Device: "eth0", FailureTimeout: 2 * time.Second, StartTimeout: time.Minute},
		},
		{env: []string{"PGAS_FAILURE_TIMEOUT=0s"}, bad: `PGAS_FAILURE_TIMEOUT="0s": want a time such as 90s`},
		{env: []string{"PGAS_FAILURE_TIMEOUT=1ms"}, bad: "PGAS_FAILURE_TIMEOUT=1ms: want 100ms or more"},
		{env: []string{"PGAS_SOFT_LATENCY=5us", "PGAS_SOFT_BANDWIDTH=1.5G"}, want: pgas.Config{SoftLatency: 5 * time.Microsecond, SoftBandwidth: 3 << 29, StartTimeout: time.Minute}},
		{env: []string{"PGAS_MAX_PINNED=1.5KiB", "PGAS_REG_LIMIT=1Ki"}, want: pgas.Config{MaxPinned: 1536, RegLimit: 1024, StartTimeout: time.Minute}},
		{env: []string{"PGAS_MAX_PINNED=2T", "PGAS_REG_THRESHOLD=65536"}, want: pgas.Config{MaxPinned: 2 << 40, RegThreshold: 65536, StartTimeout: time.Minute}},
		{env: []string{"PGAS_MAX_PINNED=512MB"}, bad: `PGAS_MAX_PINNED="512MB": want a number of bytes such as 65536, 512M or 1.5G (K, M, G and T are powers of 1024; at most 1024T)`},
		{env: []string{"PGAS_MAX_PINNED=1i"}, bad: "want a number of bytes"},
		{env: []string{"PGAS_MAX_PINNED=0.5"}, bad: "want a number of bytes"},
		{env: []string{"PGAS_REG_LIMIT=0.0001K"}, bad: "want a number of bytes"},
		{env: []string{"PGAS_REG_LIMIT=1000.5"}, bad: "want a number of bytes"},
		{env: []string{"PGAS_REG_THRESHOLD=K"}, bad: "want a number of bytes"},
		{env: []string{"PGAS_REG_LIMIT=1e30"}, bad: "want a number of bytes"},
		{env: []string{"PGAS_LOCAL=Off"}, bad: `PGAS_LOCAL="Off": want on or off`},
		{env: []string{"PGAS_STATS=yes"}, bad: `PGAS_STATS="yes": want 0 or 1`},
		{env: []string{"PGAS_START_TIMEOUT=90"}, bad: "want a time such as 90s"},
		{env: []string{"PGAS_START_TIMEOUT=0s"}, bad: "want a time such as 90s"},
		{env: []string{"PGAS_START_TIMEOUT=-1s"}, bad: "want a time such as 90s"},
		{env: []string{"PGAS_TRANSPORT=carrier-pigeon"}, bad: `"carrier-pigeon"; there are: shm, soft, verbs, tcp`},
		{env: []string{"PGAS_LOCAL=off", "PGAS_TRANSPORT=shm"}, bad: "PGAS_LOCAL=off leaves no way"},
		{env: []string{"PGAS_SOFT_LATENCY=5"}, bad: "want a time such as 5us"},
		{env: []string{"PGAS_SOFT_LATENCY=10s"}, bad: "want 0 to 1s"},
		{env: []string{"PGAS_SOFT_BANDWIDTH=1"}, bad: "want 65536 (64K) or more"},
		{env: []string{"PGAS_SOFT_BANDWIDTH=-1G"}, bad: "PGAS_SOFT_BANDWIDTH"},
		{env: []string{"PGAS_SOFT_BANDWIDTH=fast"}, bad: "PGAS_SOFT_BANDWIDTH"},
		{env: []string{"PGAS_SOFT_BANDWIDTH=NaN"}, bad: "PGAS_SOFT_BANDWIDTH"},
	} {
		got, err := pgas.FromEnvironment(c.env)
		if c.bad != "" {
			require.ErrorIs(t, err, pgas.ErrConfig, "%v", c.env)
			require.ErrorContains(t, err, c.bad)
			continue
		}
		require.NoError(t, err, "%v", c.env)
		got.Environ = nil
		require.Equal(t, c.want, got, "%v", c.env)
	}
	names := map[string]string{}
	for _, v := range pgas.Variables([]string{"PGAS_STATS=1"}) {
		require.NotEmpty(t, v.Meaning, v.Name)
		names[v.Name] = v.Value
	}
	require.Equal(t, "1", names["PGAS_STATS"])
}

// TestNodesOfOneMachine: ranks of one machine can be had on nodes of their own, and use what ranks of several machines do.
func TestNodesOfOneMachine(t *testing.T) {
	pgastest.RunProcsConfig(t, 4, pgastest.Procs{Env: []string{"PGAS_NODES=7,7,1", "PGAS_LOCAL=", "PGAS_TRANSPORT=tcp", "PGAS_DEVICE="}}, func(_ context.Context, w *pgas.World) error {
		nodes := []int{0, 0, 1, 0} // as they come, and from the first again
		for r, want := range nodes {
			way := "tcp"
			if want == nodes[w.Rank()] {
				way = "shm"
			}
			if node, _ := w.Node(r); node != want || w.Transport(r) != way {
				return fmt.Errorf("rank %d is on node %d, reached by %s; want %d, by %s", r, node, w.Transport(r), want, way)
			}
		}
		return nil
	})
}

// TestJoinOnce: a process has one world of its launcher's job, and may have others of its own.
func TestJoinOnce(t *testing.T) {
	pgastest.RunProcs(t, 2, func(ctx context.Context, w *pgas.World) error {
		_, err := pgas.Init(ctx, nil)
		require.ErrorIs(t, err, pgas.ErrUnsupported)
		require.ErrorContains(t, err, "Team.Split")
		alone, err := pgas.Init(ctx, &pgas.Config{Environ: []string{"PATH=/bin"}})
		if err != nil {
			return err
		}
		require.Equal(t, 1, alone.Size())
		if err := alone.Close(ctx); err != nil {
			return err
		}
		return w.Barrier(ctx)
	})
}
