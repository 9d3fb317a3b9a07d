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

// TestLongerThanARoom: what takes several turns where members map each other's memory, and turns move the most.
func TestLongerThanARoom(t *testing.T) {
	const k = 70_000 // elements of each member, or for each: 280 KB
	for _, p := range pgastest.PathsOf(t) {
		if p.NIC {
			continue // outboxes are small there
		}
		for _, n := range p.Worlds([]int{2, 5}) {
			t.Run(fmt.Sprintf("%s-%d", p.Name, n), func(t *testing.T) {
				p.TimeLimit = 30 * time.Second
				pgastest.RunConfig(t, n, p.Config, func(ctx context.Context, w *pgas.World) error {
					for round := range 2 {
						if err := errors.Join(scatterOf(ctx, w.Team(), k, round, round%n), longOnes(ctx, w.Team(), k, round)); err != nil {
							return err
						}
					}
					return nil
				})
			})
		}
	}
}

// longOnes are the other collectives of k elements, one behind the other.
func longOnes(ctx context.Context, t *pgsync.Team, k, round int) error {
	n, me := t.Size(), t.Rank()
	part := func(from, to int) []int32 { return tagged(10*round+from, to, k-from-to) }
	var out, in, counts, want []int32
	var send, recv, lengths []int
	for m := range n {
		out, want = append(out, part(me, m)...), append(want, part(m, me)...)
		send, recv = append(send, k-me-m), append(recv, k-me-m)
		lengths = append(lengths, k-m)
		counts = append(counts, tagged(round, m, k)[:k-m]...)
	}
	in = make([]int32, len(want))
	if err := coll.AllToAllV(ctx, t, in, recv, out, send); err != nil {
		return err
	}
	if err := same("alltoallv", in, want); err != nil {
		return err
	}
	out, want = nil, nil
	for m := range n {
		out, want = append(out, tagged(10*round+me, m, k)...), append(want, tagged(10*round+m, me, k)...)
	}
	in = make([]int32, len(want))
	if err := coll.AllToAll(ctx, t, in, out); err != nil {
		return err
	}
	if err := same("alltoall", in, want); err != nil {
		return err
	}
	in = make([]int32, len(counts))
	if err := coll.AllGatherV(ctx, t, in, lengths, tagged(round, me, k)[:k-me]); err != nil {
		return err
	}
	if err := same("allgatherv", in, counts); err != nil {
		return err
	}
	in = make([]int32, len(counts))
	if err := coll.GatherV(ctx, t, in, lengths, tagged(round, me, k)[:k-me], round%n); err != nil {
		return err
	}
	if me == round%n {
		if err := same("gatherv", in, counts); err != nil {
			return err
		}
	}
	in = make([]int32, k)
	if err := coll.Scan(ctx, t, in, tagged(round, me, k), pgsync.Xor); err != nil {
		return err
	}
	want = make([]int32, k)
	for m := range me + 1 {
		for i, v := range tagged(round, m, k) {
			want[i] ^= v
		}
	}
	return same("scan", in, want)
}
