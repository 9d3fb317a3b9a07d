package pgsync_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
)

// TestPairReduces: two members that do not map each other combine all of what is not too long and half of what is, with the same result in either way, in place too, where
// what one reads the other is about to change.
func TestPairReduces(t *testing.T) {
	cases := []struct{ elems, turns int }{{offeredElems, 2}, {pgsync.MostPartial / 8, 2}, {pgsync.MostPartial/8 + 1, 3}}
	if testing.Short() {
		cases = cases[:1]
	}
	for _, c := range cases {
		t.Run(fmt.Sprint(c.elems), func(t *testing.T) {
			pgastest.RunConfig(t, 2, pgastest.Config{NIC: true, TimeLimit: time.Minute}, func(ctx context.Context, w *pgas.World) error {
				team := w.Team()
				src, dst := make([]float64, c.elems), make([]float64, c.elems)
				took := map[int]bool{}
				for seed := range 12 {
					into, root := dst, seed/2%3-1 // everyone, 0, 1
					if seed%2 == 0 {
						into = src
					}
					for i := range src {
						src[i] = given(seed, team.Rank(), i)
					}
					before := team.Barriers()
					var err error
					if root < 0 {
						err = pgsync.AllReduce(ctx, team, into, src, pgsync.Sum)
					} else {
						err = pgsync.Reduce(ctx, team, into, src, pgsync.Sum, root)
					}
					if err != nil {
						return err
					}
					took[int(team.Barriers()-before)] = true
					if root >= 0 && root != team.Rank() {
						continue
					}
					for i, v := range into {
						if want := given(seed, 0, i) + given(seed, 1, i); v != want {
							return fmt.Errorf("reduction %d to %d: element %d is %v, not %v", seed, root, i, v, want)
						}
					}
				}
				if !took[c.turns] {
					return fmt.Errorf("no call of %d elements took %d turns, but %v", c.elems, c.turns, took)
				}
				return nil
			})
		})
	}
}
