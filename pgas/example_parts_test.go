package pgas_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gopgas/bootstrap"
	"gopgas/internal/sched"
	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/transport/shm"
)

// The environment as the library reads it.
func ExampleConfig() {
	var c pgas.Config
	c, err := pgas.FromEnvironment([]string{"PGAS_TRANSPORT=tcp", "PGAS_MAX_PINNED=512M", "PGAS_FAILURE_TIMEOUT=2s"})
	fmt.Println(c.Transport, c.MaxPinned, c.FailureTimeout, err)
	_, err = pgas.FromEnvironment([]string{"PGAS_FAILURE_TIMEOUT=soon"})
	fmt.Println(err != nil)
	// Output:
	// tcp 536870912 2s <nil>
	// true
}

// Every variable that the library reads, with its value.
func ExampleVariable() {
	var v pgas.Variable
	for _, v = range pgas.Variables([]string{"PGAS_TRANSPORT=soft"}) {
		if v.Value != "" && strings.HasPrefix(v.Name, "PGAS_") {
			fmt.Println(v.Name, "is", v.Value, "and would be", v.Default)
		}
	}
	// Output: PGAS_TRANSPORT is soft and would be auto
}

// What `pgasrun info` prints, line by line.
func ExampleFact() {
	var f pgas.Fact
	for _, f = range pgas.Describe(context.Background(), nil, 8) {
		if f.Name == "shm" {
			fmt.Println(f.Section+":", f.Name, "is", f.Value)
		}
	}
	// Output: transports: shm is available
}

// A team is what collective calls take; a World has one of all ranks, and one for each node.
func ExampleTeam() {
	pgastest.Example(3, func(ctx context.Context, w *pgas.World) error {
		var node *pgas.Team
		node, err := w.NodeTeam(ctx)
		if err != nil {
			return err
		}
		if w.Rank() == 2 {
			fmt.Println(node.Rank(), "of", node.Size(), "on this node,", w.Team().Size(), "in all")
		}
		return node.Free(ctx)
	})
	// Output: 2 of 3 on this node, 3 in all
}

// A world of one rank, put together by hand as package pgastest does it, that counts its operations.
func ExampleParts() {
	ctx := context.Background()
	w, err := pgas.Assemble(ctx, pgas.Config{Stats: true}, pgas.Parts{
		Job:    bootstrap.InProcess(1)[0],
		Sched:  func(here, _ int) *sched.Sched { return sched.Goroutine(here) },
		Mapper: shm.NewGroup(1, shm.Config{})[0],
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := pgas.NewArray[int64](ctx, w.Team(), 100, pgas.Block())
	if err != nil {
		fmt.Println(err)
		return
	}
	before := total(w.Stats()["shm"])
	if err := a.Put(10, make([]int64, 5)); err != nil {
		fmt.Println(err)
	}
	fmt.Println("bytes moved:", total(w.Stats()["shm"])-before)
	fmt.Println(a.Free(ctx), w.Close(ctx))
	// Output:
	// bytes moved: 40
	// <nil> <nil>
}

// total adds up what has travelled on all paths.
func total(paths map[string]pgas.PathStats) (bytes uint64) {
	for _, p := range paths {
		bytes += p.Bytes
	}
	return bytes
}

// What a rank waits for, as hang reports show it.
func ExampleWait() {
	pgastest.Example(1, func(ctx context.Context, w *pgas.World) error {
		signals, err := pgsync.NewSignals(ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		go func() {
			var waits []pgas.Wait
			for len(waits) == 0 {
				time.Sleep(time.Millisecond)
				waits = w.Waits()
			}
			fmt.Println(waits[0].Op, strings.Contains(waits[0].Where, "example_parts_test.go:"))
			signals.Signal(0).Store(1)
		}()
		if _, err := signals.Signal(0).WaitUntil(ctx, pgsync.Equal, 1); err != nil {
			return err
		}
		return signals.Free(ctx)
	})
	// Output: wait-until true
}

// Every second column of a matrix, whoever owns it, is on its way while this rank does something else.
func ExampleMatrix_GetNB() {
	pgastest.Example(4, func(ctx context.Context, w *pgas.World) error {
		m, err := pgas.NewMatrix[int](ctx, w.Team(), 2, 6, pgas.Grid{})
		if err != nil {
			return err
		}
		if err := m.Apply(ctx, func(i, j, _ int) int { return 10*i + j }); err != nil {
			return err
		}
		columns := make([]int, 2*3)
		handles, err := m.GetNB(pgas.Area{Rows: 2, Cols: 3, ColStep: 2}, columns)
		if err != nil {
			return err
		}
		// Here it computes.
		if err := handles.Wait(ctx); err != nil {
			return err
		}
		if w.Rank() == 3 {
			fmt.Println(columns)
		}
		return m.Free(ctx)
	})
	// Output: [0 2 4 10 12 14]
}

// Each rank takes places in the slots that its items hash to: the old values say which.
func ExampleGatherAccumulate() {
	pgastest.Example(2, func(ctx context.Context, w *pgas.World) error {
		used, err := pgas.NewArray[int64](ctx, w.Team(), 6, pgas.Cyclic())
		if err != nil {
			return err
		}
		if w.Rank() == 1 {
			slots, places := []int{4, 1, 4}, make([]int64, 3)
			if err := pgas.GatherAccumulate(used, slots, []int64{2, 1, 2}, places, pgsync.Sum); err != nil {
				return err
			}
			total, err := used.At(4)
			if err != nil {
				return err
			}
			fmt.Println("slot 1 from", places[1], "on; slot 4 holds", total)
		}
		return used.Free(ctx)
	})
	// Output: slot 1 from 0 on; slot 4 holds 4
}

// The neighbourhood of a corner of a matrix whose edges are glued to each other.
func ExampleMatrix_GetPeriodic() {
	pgastest.Example(2, func(ctx context.Context, w *pgas.World) error {
		m, err := pgas.NewMatrix[int](ctx, w.Team(), 4, 4, pgas.Grid{})
		if err != nil {
			return err
		}
		if err := m.Apply(ctx, func(i, j, _ int) int { return 10*i + j }); err != nil {
			return err
		}
		if w.Rank() == 0 {
			around := make([]int, 9)
			if err := m.GetPeriodic(pgas.Area{Row: -1, Col: -1, Rows: 3, Cols: 3}, around); err != nil {
				return err
			}
			fmt.Println(around)
		}
		if err := m.Fence(ctx); err != nil {
			return err
		}
		return m.Free(ctx)
	})
	// Output: [33 30 31 3 0 1 13 10 11]
}
