package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/sched"
	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/transport/sim"
)

var (
	smallHeat = heat{columns: 64, rowsEach: 4, steps: 20, cell: 2}
	smallISx  = isx{keysEach: 256, buckets: 16, key: 5}
)

func configs() map[string]pgastest.SimConfig {
	return map[string]pgastest.SimConfig{
		"nodes":     {Ranks: 12},
		"shared":    {Ranks: 12, RanksPerNode: 4, Model: sim.Graphene()},
		"mapped":    {Ranks: 12, RanksPerNode: 4, Mapped: true},
		"delayed":   {Ranks: 12, Faults: sim.Faults{Delay: 20 * time.Microsecond}},
		"reordered": {Ranks: 12, RanksPerNode: 2, Faults: sim.Faults{Delay: 20 * time.Microsecond, Reorder: true}},
		"alone":     {Ranks: 1},
	}
}

func programs(ranks int) map[string]func(context.Context, *pgas.World) error {
	return map[string]func(context.Context, *pgas.World) error{"heat": smallHeat.on(ranks).run, "isx": smallISx.run}
}

// TestSameSeedSameTrace also is the test that the programs are right on every kind of machine.
func TestSameSeedSameTrace(t *testing.T) {
	for name, c := range configs() {
		for program, f := range programs(c.Ranks) {
			t.Run(program+" "+name, func(t *testing.T) {
				seen := map[uint64]uint64{} // trace → seed
				for _, seed := range []uint64{1, 2, 3} {
					c.Seed = seed
					first, again := pgastest.RunSim(t, c, f), pgastest.RunSim(t, c, f)
					require.Equal(t, first.Trace(), again.Trace(), "two runs of one seed")
					require.Equal(t, first.Elapsed, again.Elapsed)
					require.Equal(t, first.NIC, again.NIC)
					require.Equal(t, first.Sched, again.Sched)
					require.Zero(t, first.Sched.LostRings, "a wait had to look again without having been rung for")
					seen[first.Trace()] = seed
				}
				if c.Faults.Delay > 0 {
					require.Len(t, seen, 3, "other seeds, other delays")
				}
				if c.Ranks > 1 && !c.Mapped {
					require.Greater(t, len(seen), 1, "other seeds, other orders")
				}
			})
		}
	}
}

// TestMappedMovesLessOverNICs: the ranks of a node do not use it among themselves.
func TestMappedMovesLessOverNICs(t *testing.T) {
	c := pgastest.SimConfig{Ranks: 12, RanksPerNode: 4}
	through := pgastest.RunSim(t, c, smallHeat.run)
	c.Mapped = true
	mapped := pgastest.RunSim(t, c, smallHeat.run)
	require.Less(t, mapped.NIC.Ops(), through.NIC.Ops())
	c.RanksPerNode = 12
	require.Zero(t, pgastest.RunSim(t, c, smallHeat.run).NIC.Writes)
}

// TestComputationTakesVirtualTimeOnly: what is charged is what it lasts, and runs beside what travels.
func TestComputationTakesVirtualTimeOnly(t *testing.T) {
	start := time.Now()
	r := pgastest.RunSim(t, pgastest.SimConfig{Ranks: 4}, func(ctx context.Context, w *pgas.World) error {
		before := w.Elapsed()
		pgastest.Compute(w, time.Hour)
		if d := w.Elapsed() - before; d != time.Hour {
			return fmt.Errorf("it took %v", d)
		}
		return w.Barrier(ctx)
	})
	require.Greater(t, r.Elapsed, time.Hour)
	require.Less(t, r.Elapsed, time.Hour+time.Millisecond)
	require.Less(t, time.Since(start), 30*time.Second)
}

func TestTimeoutIsVirtual(t *testing.T) {
	r := pgastest.SimErrors(t, pgastest.SimConfig{Ranks: 2}, func(ctx context.Context, w *pgas.World) error {
		if w.Rank() == 1 {
			pgastest.Compute(w, 10*time.Minute)
			return w.Barrier(ctx)
		}
		short, cancel := pgastest.WithTimeout(ctx, w, time.Minute)
		defer cancel()
		before := w.Elapsed()
		if err := w.Barrier(short); !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("%w: wanted the deadline", err)
		}
		if d := w.Elapsed() - before; d != time.Minute {
			return fmt.Errorf("ended after %v", d)
		}
		return w.Barrier(ctx)
	})
	require.Nil(t, r.Stuck)
	require.Equal(t, []error{nil, nil}, r.Errors)
}

func TestDeadlockNamesWhatEveryRankWaitsFor(t *testing.T) {
	r := pgastest.SimErrors(t, pgastest.SimConfig{Ranks: 3}, func(ctx context.Context, w *pgas.World) error {
		s, err := pgsync.NewSignals(ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			_, err = s.Signal(0).WaitUntil(ctx, pgsync.Equal, 7) // nobody sets it
			return err
		}
		return w.Barrier(ctx)
	})
	require.NotNil(t, r.Stuck)
	text := r.Stuck.Error()
	require.Contains(t, text, "deadlock at virtual time")
	require.Contains(t, text, "rank 0: wait-until since")
	require.Contains(t, text, "rank 1: barrier")
	require.Contains(t, text, "rank 2: barrier")
	require.Contains(t, text, "sim/world_test.go:")
	for rank, err := range r.Errors {
		var stuck *sched.StuckError
		require.ErrorAs(t, err, &stuck, "rank %d", rank)
	}
}

// TestKilledRank: at whatever operation a rank dies, the others return in bounded time with errors that name it.
func TestKilledRank(t *testing.T) {
	// Rank 3's one neighbour on another node gets a put from it in each step. Nothing else need go through its NIC: where the
	// memory of a node is mapped, its barriers are another rank's to carry on.
	const last = 40
	long := smallHeat
	long.steps = last
	for _, mapped := range []bool{false, true} {
		for _, op := range []uint64{1, 5, 17, last} {
			c := pgastest.SimConfig{Ranks: 8, RanksPerNode: 2, Mapped: mapped, Seed: op}
			c.Faults.Kill = []sim.Fault{{Rank: 3, Op: op}}
			r := pgastest.SimErrors(t, c, long.run)
			require.Nil(t, r.Stuck, "op %d", op)
			require.ErrorIs(t, r.Errors[3], pgastest.ErrKilled)
			named := 0
			for rank, err := range r.Errors {
				if rank != 3 {
					require.ErrorIs(t, err, pgas.ErrPeerGone, "op %d: rank %d", op, rank)
					if strings.Contains(err.Error(), "rank 3 ") {
						named++
					}
				}
			}
			require.Positive(t, named, "op %d: nobody names rank 3: %v", op, r.Errors)
			require.Less(t, r.Elapsed, 2*time.Second, "op %d", op)
		}
	}
}

func TestBrokenConnectionIsMended(t *testing.T) {
	c := pgastest.SimConfig{Ranks: 4, Faults: sim.Faults{Break: []sim.Fault{{Rank: 1, Op: 30}, {Rank: 2, Op: 40}, {Rank: 1, Op: 90}}}}
	r := pgastest.SimErrors(t, c, smallHeat.run)
	require.Nil(t, r.Stuck)
	require.NoError(t, errors.Join(r.Errors...), "what was flushed is done over a new connection")
	require.EqualValues(t, len(c.Faults.Break), r.NIC.Broken, "the connections were to break")
	require.GreaterOrEqual(t, r.NIC.Failed, r.NIC.Broken, "no operation was lost with its connection")
}

func TestPanicAndFailNowOfARank(t *testing.T) {
	r := pgastest.SimErrors(t, pgastest.SimConfig{Ranks: 3}, func(ctx context.Context, w *pgas.World) error {
		if w.Rank() == 1 {
			panic("of rank 1")
		}
		return w.Barrier(ctx)
	})
	require.Nil(t, r.Stuck)
	require.ErrorContains(t, r.Errors[1], "of rank 1")
	require.ErrorIs(t, r.Errors[0], pgas.ErrPeerGone)
	require.ErrorIs(t, r.Errors[2], pgas.ErrPeerGone)
}

// TestDeadlockBesideRegistrationHelpers: the helpers, which look at the clock for ever, do not hide it.
func TestDeadlockBesideRegistrationHelpers(t *testing.T) {
	c := pgastest.SimConfig{Ranks: 2, Reg: "predictive", TimeLimit: 20 * time.Second}
	r := pgastest.SimErrors(t, c, func(ctx context.Context, w *pgas.World) error {
		s, err := pgsync.NewSignals(ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			_, err = s.Signal(0).WaitUntil(ctx, pgsync.Equal, 7) // nobody sets it
			return err
		}
		return w.Barrier(ctx)
	})
	require.NotNil(t, r.Stuck)
	require.Less(t, r.Stuck.At, time.Second)
	for rank, err := range r.Errors {
		var stuck *sched.StuckError
		require.ErrorAs(t, err, &stuck, "rank %d", rank)
	}
}
