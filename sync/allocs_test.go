package pgsync_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
)

// made is an element that is no number.
type made struct {
	A int32
	B [2]float32
}

type named struct {
	name string
	call func() error
}

// ofData are the collectives that move data of all types, n elements of each member.
func ofData[T any](ctx context.Context, t *pgsync.Team, n int) []named {
	mine, all := make([]T, n), make([]T, n*t.Size())
	return []named{
		{"broadcast", func() error { return pgsync.Broadcast(ctx, t, mine, 1) }},
		{"allgather", func() error { return pgsync.AllGather(ctx, t, all, mine) }},
	}
}

// ofNumbers are those that combine numbers, and the barrier.
func ofNumbers[T pgsync.Number](ctx context.Context, t *pgsync.Team, n int) []named {
	mine := make([]T, n)
	return []named{
		{"barrier", func() error { return t.Barrier(ctx) }},
		{"allreduce", func() error { return pgsync.AllReduce(ctx, t, mine, mine, pgsync.Sum) }},
		{"reduce", func() error { return pgsync.Reduce(ctx, t, mine, mine, pgsync.Sum, 1) }},
	}
}

// TestCollectivesAllocateNothing: neither of numbers nor of structs, whatever their length on a node, and short ones over a NIC.
func TestCollectivesAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, p := range pgastest.Paths() {
		lengths := []int{1, 100, 5000}
		if p.NIC {
			lengths = lengths[:2]
		}
		if p.Name != "mapped" && p.Name != "nic-good" {
			continue
		}
		for _, ranks := range []int{2, 4} {
			t.Run(fmt.Sprintf("%s-%d", p.Name, ranks), func(t *testing.T) {
				pgastest.RunConfig(t, ranks, p.Config, func(ctx context.Context, w *pgas.World) error {
					for _, n := range lengths {
						for kind, calls := range [][]named{ofData[int64](ctx, w.Team(), n), ofData[made](ctx, w.Team(), n), ofNumbers[float64](ctx, w.Team(), n), ofNumbers[int32](ctx, w.Team(), n)} {
							for _, c := range calls {
								got, err := allocations(ctx, w, c.call)
								if err != nil {
									return err
								}
								if got >= 1 {
									t.Errorf("%s of %d, kind %d: %v allocations", c.name, n, kind, got)
								}
							}
						}
					}
					return nil
				})
			})
		}
	}
}

// allocations are those of one call on all ranks together, as rank 0 sees them.
func allocations(ctx context.Context, w *pgas.World, call func() error) (got float64, err error) {
	const warm, often = 40, 50
	note := func() { err = errors.Join(err, call()) }
	for range warm {
		note()
	}
	if w.Rank() == 0 {
		got = testing.AllocsPerRun(often, note)
	} else {
		for range often + 1 {
			note()
		}
	}
	return got, errors.Join(err, w.Barrier(ctx)) // who goes ahead would allocate for what comes next
}
