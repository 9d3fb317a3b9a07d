package pgsync_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
)

// everywhere runs f mapped, over the loop-back NIC, and in virtual time.
func everywhere(t *testing.T, n int, f func(ctx context.Context, w *pgas.World) error) {
	t.Run(fmt.Sprint(n, " mapped"), func(t *testing.T) { pgastest.Run(t, n, f) })
	t.Run(fmt.Sprint(n, " loopback"), func(t *testing.T) { pgastest.RunConfig(t, n, pgastest.Config{NIC: true}, f) })
	if (raceEnabled || testing.Short()) && n > 8 {
		return // as simulated says
	}
	t.Run(fmt.Sprint(n, " simulated"), func(t *testing.T) { pgastest.RunSim(t, pgastest.SimConfig{Ranks: n, Seed: 3}, f) })
}

func TestGatheredCardsOfAnyLengths(t *testing.T) {
	card := func(rank, round int) []byte {
		return bytes.Repeat([]byte{byte(rank + 1)}, []int{0, 7 * rank, 700 - rank, 3}[(round+rank)%4])
	}
	for _, n := range []int{1, 2, 3, 8, 13} {
		everywhere(t, n, func(ctx context.Context, w *pgas.World) error {
			for round := range 5 {
				cards, err := w.Team().Exchange(ctx, card(w.Rank(), round))
				if err != nil {
					return err
				}
				for r, c := range cards {
					if !bytes.Equal(c, card(r, round)) {
						return fmt.Errorf("round %d: card of rank %d is %v", round, r, c)
					}
				}
			}
			return nil
		})
	}
}

// TestCollectivesShortAndLong crosses the lengths at which gathers give way to reading everybody's outbox.
func TestCollectivesShortAndLong(t *testing.T) {
	for _, n := range []int{3, 9, 16, 21} {
		everywhere(t, n, func(ctx context.Context, w *pgas.World) error {
			for _, length := range []int{0, 1, 5, 64, 65, 5000} {
				src, sum := make([]int64, length), make([]int64, length)
				for i := range src {
					src[i] = int64(w.Rank()*1000 + i)
				}
				all := make([]int64, length*n)
				if err := pgsync.AllGather(ctx, w.Team(), all, src); err != nil {
					return err
				}
				if err := pgsync.AllReduce(ctx, w.Team(), sum, src, pgsync.Sum); err != nil {
					return err
				}
				if err := pgsync.AllReduce(ctx, w.Team(), src, src, pgsync.Max); err != nil {
					return err
				}
				for i := range length {
					for r := range n {
						if all[r*length+i] != int64(r*1000+i) {
							return fmt.Errorf("%d elements: element %d of rank %d is %d", length, i, r, all[r*length+i])
						}
					}
					if want := int64(n*(n-1)/2*1000 + n*i); sum[i] != want || src[i] != int64((n-1)*1000+i) {
						return fmt.Errorf("%d elements: sum %d is %d, not %d; max %d", length, i, sum[i], want, src[i])
					}
				}
			}
			return nil
		})
	}
}

// TestAllReduceIsTheSameEverywhere: sums of floating-point numbers depend on their order, which is the ranks'.
func TestAllReduceIsTheSameEverywhere(t *testing.T) {
	for _, n := range []int{5, 12} {
		everywhere(t, n, func(ctx context.Context, w *pgas.World) error {
			value := func(r int) float64 { return []float64{1e16, 1, -1e16, 0.1}[r%4] }
			sum, want := []float64{0}, value(0)
			if err := pgsync.AllReduce(ctx, w.Team(), sum, []float64{value(w.Rank())}, pgsync.Sum); err != nil {
				return err
			}
			for r := 1; r < n; r++ {
				want += value(r)
			}
			if sum[0] != want {
				return fmt.Errorf("sum %v, not %v", sum[0], want)
			}
			return nil
		})
	}
}

// TestAllLearnOfAMismatch has one rank make another call than the others: all get an error, nobody waits for ever.
func TestAllLearnOfAMismatch(t *testing.T) {
	const n, odd = 13, 4
	var errs [n]error // returning one would end the rank, and the others would find a dead one first
	f := func(ctx context.Context, w *pgas.World) error {
		team, err := w.Team().Split(ctx, 0, w.Rank()) // the world's own team is still needed
		if err != nil {
			return err
		}
		if w.Rank() == odd {
			err = pgsync.AllReduce(ctx, team, []int64{0}, []int64{1}, pgsync.Sum)
		} else {
			_, err = team.Exchange(ctx, []byte("card"))
		}
		if _, again := team.Exchange(ctx, nil); again == nil {
			return fmt.Errorf("the team goes on after %w", err)
		}
		errs[w.Rank()] = err
		return nil
	}
	for name, run := range map[string]func(t *testing.T){
		"loopback":  func(t *testing.T) { pgastest.RunConfig(t, n, pgastest.Config{NIC: true}, f) },
		"mapped":    func(t *testing.T) { pgastest.Run(t, n, f) },
		"simulated": func(t *testing.T) { pgastest.RunSim(t, pgastest.SimConfig{Ranks: n, Seed: 5}, f) },
	} {
		t.Run(name, func(t *testing.T) {
			clear(errs[:])
			run(t)
			for r, err := range errs {
				require.ErrorIs(t, err, pgsync.ErrMismatch, "rank %d", r)
			}
		})
	}
}

// TestMismatchIsNotHiddenByDepartures has all ranks end with their error: those beside the odd one say what was wrong, even
// where others are gone before they are through.
func TestMismatchIsNotHiddenByDepartures(t *testing.T) {
	const n, odd = 13, 4
	seeds := uint64(10)
	if raceEnabled || testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		r := pgastest.SimErrors(t, pgastest.SimConfig{Ranks: n, RanksPerNode: 4, Seed: seed}, func(ctx context.Context, w *pgas.World) error {
			if w.Rank() == odd {
				return pgsync.AllReduce(ctx, w.Team(), []int64{0}, []int64{1}, pgsync.Sum)
			}
			_, err := w.Team().Exchange(ctx, []byte("card"))
			return err
		})
		require.Nil(t, r.Stuck, "seed %d", seed)
		for _, rank := range []int{odd, odd + 1} { // these two hear of it in the first round
			require.ErrorIs(t, r.Errors[rank], pgsync.ErrMismatch, "seed %d: rank %d", seed, rank)
		}
		for rank, err := range r.Errors {
			require.Error(t, err, "seed %d: rank %d", seed, rank)
		}
	}
}
