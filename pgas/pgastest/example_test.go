package pgastest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/transport/sim"
)

// printer is what an Example has in the place of a test's *testing.T.
type printer struct{ testing.TB }

func (printer) Helper()                           {}
func (printer) Context() context.Context          { return context.Background() }
func (printer) Name() string                      { return "Example" }
func (printer) Logf(string, ...any)               {}
func (printer) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (printer) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// The same ranks through a NIC that shares no memory between them.
func ExampleConfig() {
	var t testing.TB = printer{} // in a test: its t
	for _, c := range []pgastest.Config{{}, {NIC: true}} {
		pgastest.RunConfig(t, 2, c, func(_ context.Context, w *pgas.World) error {
			if w.Rank() == 0 {
				fmt.Println("rank 1 by", w.Transport(1))
			}
			return nil
		})
	}
	// Output:
	// rank 1 by shm
	// rank 1 by loopback
}

// The paths on which a test of everything above the NICs should run.
func ExampleNamed() {
	var path pgastest.Named
	for _, path = range pgastest.Paths()[:2] {
		fmt.Println(path.Name, path.Config.NIC)
	}
	// Output:
	// mapped false
	// counted false
}

// Each rank a process: what would be given to RunProcsConfig.
func ExampleNamedProcs() {
	var path pgastest.NamedProcs
	for _, path = range pgastest.ProcPaths() {
		settings := path.Procs
		settings.TimeLimit = 10 * time.Second
		fmt.Println(path.Name, len(settings.Env) > 0)
	}
	for _, path = range pgastest.ProcNodes() {
		fmt.Println(path.Name, path.Env)
	}
	// Output:
	// mapped false
	// soft true
	// tcp true
	// nodes-tcp [PGAS_NODES=0,0,1,2,2 PGAS_TRANSPORT=tcp]
}

// A program as its test sees it: arguments in, output out. In a test, InWorlds runs it in worlds of several sizes.
func ExampleProgram() {
	var hello pgastest.Program = func(_ context.Context, w *pgas.World, args []string, out io.Writer) error {
		if w.Rank() == 0 {
			fmt.Fprintln(out, "hello", args, "from", w.Size(), "ranks")
		}
		return nil
	}
	var out bytes.Buffer
	pgastest.Example(3, func(ctx context.Context, w *pgas.World) error {
		return hello(ctx, w, []string{"world"}, &out)
	})
	fmt.Print(out.String())
	// Output: hello [world] from 3 ranks
}

// Calls that a test counts the allocations of (AllocateNothing) and times (Benchmark).
func ExampleCalls() {
	var calls pgastest.Calls = func(ctx context.Context, w *pgas.World) ([]pgastest.Call, error) {
		a, err := pgas.NewArray[int](ctx, w.Team(), 2, pgas.Block())
		if err != nil {
			return nil, err
		}
		return []pgastest.Call{
			{Name: "Set", Call: func() error { return a.Set(1, 7) }},
			{Name: "Flush", Call: func() error { return a.Flush() }},
		}, nil
	}
	pgastest.Example(2, func(ctx context.Context, w *pgas.World) error {
		made, err := calls(ctx, w)
		for _, c := range made {
			if w.Rank() == 0 {
				fmt.Println(c.Name, c.Call())
			}
		}
		return err
	})
	// Output:
	// Set <nil>
	// Flush <nil>
}

// A hundred ranks in virtual time. Equal seeds give equal runs.
func ExampleRunSim() {
	var t testing.TB = printer{}
	c := pgastest.SimConfig{Ranks: 100, RanksPerNode: 10, Model: sim.Modern(), Seed: 42}
	run := func() pgastest.SimResult {
		return pgastest.RunSim(t, c, func(ctx context.Context, w *pgas.World) error {
			pgastest.Compute(w, time.Millisecond)
			sum := []int{1}
			if err := pgsync.AllReduce(ctx, w.Team(), sum, sum, pgsync.Sum); err != nil {
				return err
			}
			if sum[0] != c.Ranks {
				return fmt.Errorf("%d ranks have answered", sum[0])
			}
			return nil
		})
	}
	first, second := run(), run()
	fmt.Println(first.Elapsed > time.Millisecond, first.Elapsed == second.Elapsed, first.Trace() == second.Trace())
	// Output: true true true
}
