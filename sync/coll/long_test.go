package coll_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/sync/coll"
	"gopgas/transport/transporttest"
)

// tagged are elements that no other round has.
func tagged(round, m, n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = element(m, i) ^ int32(round<<24)
	}
	return out
}

// longScatter scatters what takes two turns, and compares.
func longScatter(ctx context.Context, t *pgsync.Team, round, root int) error {
	return scatterOf(ctx, t, 6000, round, root)
}

func scatterOf(ctx context.Context, t *pgsync.Team, k, round, root int) error {
	var src []int32
	for m := 0; m < t.Size() && t.Rank() == root; m++ {
		src = append(src, tagged(round, m, k)...)
	}
	dst := make([]int32, k)
	if err := coll.Scatter(ctx, t, dst, src, root); err != nil {
		return err
	}
	return same(fmt.Sprintf("scatter %d from %d", round, root), dst, tagged(round, t.Rank(), k))
}

// TestScattersOneAfterAnother: root writes into outboxes of others, which they use themselves in calls before and after, and in started calls
// meanwhile.
func TestScattersOneAfterAnother(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, _ *testing.T) error {
		n, me := w.Size(), w.Rank()
		var started []*pgsync.Request
		for round := range 3 {
			started = append(started, w.Team().Start(func(ctx context.Context, t *pgsync.Team) error {
				return errors.Join(longScatter(ctx, t, 40+round, (round+1)%n), longScatter(ctx, t, 50+round, round%n))
			}))
		}
		for round := range 6 {
			if err := longScatter(ctx, w.Team(), round, round%n); err != nil {
				return err
			}
			all := make([]int32, 5000*n)
			if err := pgsync.AllGather(ctx, w.Team(), all, tagged(round, me, 5000)); err != nil {
				return err
			}
			for m := range n {
				if err := same("allgather", all[m*5000:(m+1)*5000], tagged(round, m, 5000)); err != nil {
					return err
				}
			}
		}
		for _, r := range started {
			if err := r.Wait(ctx); err != nil {
				return err
			}
		}
		return nil
	}, 2, 5)
}

// TestPushesArriveBeforeTheBarrier: member 3 of 4 never hears from root, 0, itself, and its data may take longer than the word of the others.
func TestPushesArriveBeforeTheBarrier(t *testing.T) {
	c := pgastest.Config{NIC: true, Fabric: transporttest.FabricConfig{Jitter: 2 * time.Millisecond, Seed: 1}, TimeLimit: 30 * time.Second}
	pgastest.RunConfig(t, 4, c, func(ctx context.Context, w *pgas.World) error {
		for round := range 30 {
			if err := scatterOf(ctx, w.Team(), 1100, round, 0); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestAllToAllVOfFewLongParts: one part is long, which goes in the order of src, and one that is long among others that are not short, which
// goes in pairs.
func TestAllToAllVOfFewLongParts(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, _ *testing.T) error {
		n, me := w.Size(), w.Rank()
		for _, short := range []int{0, 1, 4000} {
			length := func(from, to int) int {
				if from == 1 && to == 2 {
					return 7000
				}
				return short
			}
			var src, want [][3]uint16
			var send, recv []int
			for m := range n {
				send, recv = append(send, length(me, m)), append(recv, length(m, me))
				src = append(src, pair(me, m, send[m])...)
				want = append(want, pair(m, me, recv[m])...)
			}
			dst := make([][3]uint16, len(want))
			if err := coll.AllToAllV(ctx, w.Team(), dst, recv, src, send); err != nil {
				return err
			}
			if err := same(fmt.Sprintf("alltoallv of %d", short), dst, want); err != nil {
				return err
			}
		}
		return nil
	}, 5)
}
