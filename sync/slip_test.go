package pgsync_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
)

// TestWhereSlipsGo: where few members are alike, and more than a slip where they push to each other over a NIC, as far as an inbox goes.
func TestWhereSlipsGo(t *testing.T) {
	each(t, func(_ context.Context, w *pgas.World, t *testing.T) error {
		last, _ := w.Node(w.Size() - 1)
		e := w.Team().Engine()
		alike := (last == 0 || last == w.Size()-1) && w.Size() > 1 && w.Size() <= 8 && (e.Mapper() != nil || e.Prompt())
		most := 16
		if w.Size() > 1 && e.Mapper() == nil {
			most = pgsync.Payload / (w.Size() - 1) &^ 7
		}
		for _, bytes := range []int{0, 1, 15, 16, 17, most, most + 1} {
			require.Equal(t, alike && bytes >= 1 && bytes <= most, w.Team().Slips(bytes), "%d bytes", bytes)
		}
		return nil
	}, 1, 2, 3, 8, 9)
}

// TestSlipsOfThoseWhoRunAhead has members come to short calls early and late, some begun by Start beside the others: in each all get what belongs to it, and
// nothing of the one before or behind, which have other values in the same places.
func TestSlipsOfThoseWhoRunAhead(t *testing.T) {
	rounds := 1000
	if testing.Short() || raceEnabled {
		rounds = 400
	}
	for _, n := range []int{2, 3, 5, 8} {
		runAhead(t, n, pgastest.Config{}, rounds, 2)
	}
}

// TestPushedByThoseWhoRunAhead is the same over NICs, with calls of up to 200 words, some of which are pushed.
func TestPushedByThoseWhoRunAhead(t *testing.T) {
	rounds := 400
	if testing.Short() || raceEnabled {
		rounds = 200
	}
	for _, p := range pgastest.PathsOf(t) {
		if !p.NIC {
			continue
		}
		for _, n := range p.Worlds([]int{2, 5}) {
			t.Run(fmt.Sprintf("%s-%d", p.Name, n), func(t *testing.T) {
				p.TimeLimit = time.Minute
				runAhead(t, n, p.Config, rounds, 200)
			})
		}
	}
}

// runAhead makes calls of up to so many words.
func runAhead(t *testing.T, n int, c pgastest.Config, rounds, most int) {
	t.Helper()
	pgastest.RunConfig(t, n, c, func(ctx context.Context, w *pgas.World) error {
		what, late := rand.New(rand.NewPCG(uint64(n), 1)), rand.New(rand.NewPCG(uint64(n), uint64(w.Rank()+2)))
		begun := make([]*pgsync.Request, 4) // not awaited at once
		for round := range rounds {
			for range late.IntN(8) * late.IntN(2) {
				runtime.Gosched()
			}
			kind, wide := what.IntN(4), 1+what.IntN(min(most, 2+what.IntN(2)*most))
			call := func(ctx context.Context, team *pgsync.Team) error { return shortCall(ctx, t, team, kind, wide, round) }
			if what.IntN(3) > 0 {
				if err := call(ctx, w.Team()); err != nil {
					return err
				}
				continue
			}
			r := &begun[round%len(begun)]
			if *r != nil {
				if err := (*r).Wait(ctx); err != nil {
					return err
				}
			}
			*r = w.Team().Start(call)
		}
		return w.Team().Drain(ctx)
	})
}

// shortCall makes a call of some words of each member, and looks at what it brings.
func shortCall(ctx context.Context, t *testing.T, team *pgsync.Team, kind, wide, round int) error {
	n, root := team.Size(), round%team.Size()
	of := func(m, i int) uint64 { return uint64(round)<<16 | uint64(m)<<8 | uint64(i) }
	mine, all := make([]uint64, wide), make([]uint64, wide*n)
	for i := range mine {
		mine[i] = of(team.Rank(), i)
	}
	switch kind {
	case 0:
		if err := pgsync.AllGather(ctx, team, all, mine); err != nil {
			return err
		}
		for i, v := range all {
			require.Equal(t, of(i/wide, i%wide), v, "round %d", round)
		}
	case 1:
		if err := pgsync.Broadcast(ctx, team, mine, root); err != nil {
			return err
		}
		for i, v := range mine {
			require.Equal(t, of(root, i), v, "round %d", round)
		}
	case 2:
		if err := pgsync.AllReduce(ctx, team, mine, mine, pgsync.Max); err != nil {
			return err
		}
		for i, v := range mine {
			require.Equal(t, of(n-1, i), v, "round %d", round)
		}
	default:
		to := all[:0]
		if team.Rank() == root {
			to = all[:wide]
		}
		if err := pgsync.Reduce(ctx, team, to, mine, pgsync.Min, root); err != nil {
			return err
		}
		for i, v := range to {
			require.Equal(t, of(0, i), v, "round %d", round)
		}
	}
	return nil
}

// TestSlipOfAnotherCall: flags tell calls apart by sums of 16 bits, slips by the call itself, and none by what an earlier one of the kind has left.
func TestSlipOfAnotherCall(t *testing.T) {
	over := errors.New("the test is over") // a world whose collectives are of no use is not closed in good order
	errs := pgastest.Errors(t, 2, pgastest.Config{}, func(ctx context.Context, w *pgas.World) error {
		mine, theirs := mem.Of([]uint64{uint64(w.Rank())}), []uint64{7}
		for range 10 { // on each lane, and in both places of a line
			c, err := w.Team().Collective(ctx, "allgather")
			if err != nil {
				return err
			}
			require.NoError(t, c.Hand(ctx, 1, 0, 1, 0, mine, 8, 0))
			require.NoError(t, c.Slip(1-w.Rank(), mem.Of(theirs)))
			require.EqualValues(t, 1-w.Rank(), theirs[0])
			require.NoError(t, c.End(nil))
		}
		c, err := w.Team().Collective(ctx, "allgather")
		if err != nil {
			return err
		}
		if err = c.Hand(ctx, 1, 0, 1, 0, mem.Range{}, 8, 0); err == nil { // what lies there is of an earlier turn
			err = c.Slip(1-w.Rank(), mem.Of(theirs))
		} // else the other one has said so
		require.ErrorIs(t, c.End(err), pgsync.ErrMismatch)
		return over
	})
	for _, err := range errs {
		require.ErrorIs(t, err, over)
	}
}
