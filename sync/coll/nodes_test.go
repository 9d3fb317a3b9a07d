package coll_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/sync/coll"
)

// shuffled compares the all-to-alls with what they must give: k elements from each to each, or of some more, of some none.
func shuffled(ctx context.Context, t *pgsync.Team, k int) error {
	n, me := t.Size(), t.Rank()
	var src, want, srcV, wantV [][3]uint16
	var send, recv []int
	for m := range n {
		src, want = append(src, pair(me, m, k)...), append(want, pair(m, me, k)...)
		send, recv = append(send, count(me, m, k)), append(recv, count(m, me, k))
		srcV, wantV = append(srcV, pair(me, m, send[m])...), append(wantV, pair(m, me, recv[m])...)
	}
	dst, dstV := make([][3]uint16, len(want)), make([][3]uint16, len(wantV))
	if err := errors.Join(coll.AllToAll(ctx, t, dst, src), coll.AllToAllV(ctx, t, dstV, recv, srcV, send)); err != nil {
		return err
	}
	return errors.Join(same(fmt.Sprintf("alltoall of %d", k), dst, want), same(fmt.Sprintf("alltoallv of %d", k), dstV, wantV))
}

// sliced does so with an all-to-all by nodes in slices that are no multiple of anything.
func sliced(ctx context.Context, t *pgsync.Team, k int) error {
	c, err := t.Collective(ctx, "slices")
	if err != nil {
		return err
	}
	if c.Nodes() == 1 || k == 0 {
		return c.End(c.Turn(ctx, 1, 0, 0, 0))
	}
	var src, want [][3]uint16
	for m := range t.Size() {
		src, want = append(src, pair(t.Rank(), m, k)...), append(want, pair(m, t.Rank(), k)...)
	}
	dst := make([][3]uint16, len(want))
	if err := c.End(c.ShuffleParts(ctx, 6, len(src), 7, mem.Of(dst), mem.Of(src))); err != nil {
		return err
	}
	return same(fmt.Sprintf("slices of %d", k), dst, want)
}

// dealt compares gathers and scatters with what they must give, to and from each of some roots.
func dealt(ctx context.Context, t *pgsync.Team, k int) error {
	n, me := t.Size(), t.Rank()
	for _, root := range roots(n) {
		var counts []int
		var all, allV []int32
		for m := range n {
			counts = append(counts, count(m, root, k))
			all, allV = append(all, elements(m, k)...), append(allV, elements(m, counts[m])...)
		}
		mine, mineV := elements(me, k), elements(me, counts[me])
		got, gotV, every := make([]int32, len(all)), make([]int32, len(allV)), make([]int32, len(allV))
		back, backV := make([]int32, k), make([]int32, len(mineV))
		if me != root {
			got, gotV = nil, nil
		}
		err := errors.Join(coll.Gather(ctx, t, got, mine, root), coll.GatherV(ctx, t, gotV, counts, mineV, root), coll.AllGatherV(ctx, t, every, counts, mineV))
		if me == root {
			err = errors.Join(err, same("gather", got, all), same("gatherv", gotV, allV))
			err = errors.Join(err, coll.Scatter(ctx, t, back, all, root), coll.ScatterV(ctx, t, backV, allV, counts, root))
		} else {
			err = errors.Join(err, coll.Scatter(ctx, t, back, nil, root), coll.ScatterV(ctx, t, backV, nil, nil, root))
		}
		err = errors.Join(err, same("allgatherv", every, allV), same("scatter", back, mine), same("scatterv", backV, mineV))
		if err != nil {
			return fmt.Errorf("%d elements, root %d of %d: %w", k, root, n, err)
		}
	}
	return nil
}

// TestPartsOfNodes: on nodes of all sorts, of teams in the order of ranks and of such whose members lie across the nodes, by every way that lengths lead to.
func TestPartsOfNodes(t *testing.T) {
	for _, c := range []pgastest.SimConfig{
		{Ranks: 5, RanksPerNode: 4, Mapped: true, Seed: 1},
		{Ranks: 13, RanksPerNode: 4, Mapped: true, Seed: 2},
		{Ranks: 17, RanksPerNode: 6, Mapped: true, Seed: 3},
		{Ranks: 29, RanksPerNode: 8, Mapped: true, Seed: 4},
		{Ranks: 40, RanksPerNode: 18, Mapped: true, Seed: 5}, // 20 elements go by nodes, in slices
	} {
		lengths := []int{0, 1, 7, 20, 60, 350, 1000, 5000}
		if raceEnabled { // nothing is concurrent in a simulated world, and the detector makes it long
			lengths = []int{0, 1, 60, 350}
		}
		if c.Ranks > 30 {
			lengths = []int{0, 20, 60}
		}
		if raceEnabled && c.Ranks > 13 || testing.Short() && c.Ranks > 17 {
			continue
		}
		t.Run(fmt.Sprintf("%d by %d", c.Ranks, c.RanksPerNode), func(t *testing.T) {
			pgastest.RunSim(t, c, func(ctx context.Context, w *pgas.World) error {
				across, err := w.Team().Split(ctx, 0, w.Rank()%5)
				if err != nil {
					return err
				}
				some, err := w.Team().Split(ctx, w.Rank()%3/2, -w.Rank()) // backwards, on nodes of different sizes
				if err != nil {
					return err
				}
				for _, k := range lengths {
					for _, team := range []*pgsync.Team{w.Team(), across, some} {
						if err := errors.Join(dealt(ctx, team, k), shuffled(ctx, team, min(k, 1000)), sliced(ctx, team, min(k, 20))); err != nil {
							return err
						}
					}
				}
				return errors.Join(some.Free(ctx), across.Free(ctx))
			})
		})
	}
}

// direct moves bytes of each member, or for each, as if there were no nodes: a turn in which all read from their owners. reads says from whom this one does.
func direct(ctx context.Context, t *pgsync.Team, op string, bytes int, reads func(m int) bool) error {
	c, err := t.Collective(ctx, op)
	if err != nil {
		return err
	}
	if err := c.Turn(ctx, 1, 0, bytes, 0); err != nil {
		return c.End(err)
	}
	all := make([]byte, t.Size()*bytes)
	return c.End(c.ReadAll(mem.Of(all), func(m int) (from, to, n int) {
		if !reads(m) {
			return 0, 0, 0
		}
		return 0, m * bytes, bytes
	}))
}

// TestStagesOfNodes: in virtual time, a network of 100 Gbit/s, what goes by nodes takes less than reads from the owners do, and fewer messages.
func TestStagesOfNodes(t *testing.T) {
	const calls = 5
	type world struct{ ranks, node int }
	run := func(w world, calls int, f func(ctx context.Context, t *pgsync.Team) error) pgastest.SimResult {
		return pgastest.RunSim(t, pgastest.SimConfig{Ranks: w.ranks, RanksPerNode: w.node, Mapped: true, Seed: 1}, func(ctx context.Context, w *pgas.World) error {
			for range calls {
				if err := f(ctx, w.Team()); err != nil {
					return err
				}
			}
			return w.Barrier(ctx)
		})
	}
	for _, w := range []world{{16, 4}, {32, 8}, {64, 8}, {128, 8}} {
		if (raceEnabled || testing.Short()) && w.ranks > 32 {
			continue // nothing is concurrent in a simulated world
		}
		none := run(w, 0, nil)
		cost := func(f func(ctx context.Context, t *pgsync.Team) error) (each time.Duration, messages uint64) {
			all := run(w, calls, f)
			return (all.Elapsed - none.Elapsed) / calls, (all.NIC.Ops() - none.NIC.Ops()) / calls
		}
		for _, bytes := range []int{8, 200} {
			for op, f := range map[string][2]func(ctx context.Context, t *pgsync.Team) error{
				"gather": {
					func(ctx context.Context, t *pgsync.Team) error {
						return coll.Gather(ctx, t, make([]byte, t.Size()*bytes)[:t.Size()*bytes*root0(t)], make([]byte, bytes), 0)
					},
					func(ctx context.Context, t *pgsync.Team) error {
						return direct(ctx, t, "gather", bytes, func(int) bool { return t.Rank() == 0 })
					},
				},
				"scatter": {
					func(ctx context.Context, t *pgsync.Team) error {
						return coll.Scatter(ctx, t, make([]byte, bytes), make([]byte, t.Size()*bytes)[:t.Size()*bytes*root0(t)], 0)
					},
					func(ctx context.Context, t *pgsync.Team) error {
						return direct(ctx, t, "scatter", bytes, func(m int) bool { return m == 0 })
					},
				},
				"alltoall": {
					func(ctx context.Context, t *pgsync.Team) error {
						return coll.AllToAll(ctx, t, make([]byte, t.Size()*bytes), make([]byte, t.Size()*bytes))
					},
					func(ctx context.Context, t *pgsync.Team) error {
						return direct(ctx, t, "alltoall", bytes, func(int) bool { return true })
					},
				},
			} {
				took, messages := cost(f[0])
				without, more := cost(f[1])
				t.Logf("%d ranks, %d on a node, %s of %d bytes: %v and %d messages, by reads from their owners %v and %d", w.ranks, w.node, op, bytes, took, messages, without, more)
				require.LessOrEqual(t, took, without+without/50, "%+v %s of %d", w, op, bytes)
				require.LessOrEqual(t, messages, more, "%+v %s of %d", w, op, bytes)
				if w.node == 8 && (op != "scatter" || w.ranks > 64) { // few read theirs from root, which is sooner
					require.Less(t, messages, more, "%+v %s of %d", w, op, bytes)
				}
			}
		}
	}
}

// inPairs is an all-to-all of which all is read from the owners, as many parts at a time as fit into an outbox.
func inPairs(ctx context.Context, t *pgsync.Team, part int) error {
	c, err := t.Collective(ctx, "pairs")
	if err != nil {
		return err
	}
	n, me := t.Size(), t.Rank()
	dst, out := make([]byte, n*part), make([]byte, part)
	for s, k := 1, c.Payload()/part; s < n; s += k {
		for q := range min(k, n-s) {
			c.Write(q*part, mem.Of(out))
		}
		if err := c.Turn(ctx, 1, 0, part, 0); err != nil {
			return c.End(err)
		}
		err := c.ReadAll(mem.Of(dst), func(m int) (from, to, bytes int) {
			if q := (me-m+n)%n - s; q >= 0 && q < k {
				return q * part, m * part, part
			}
			return 0, 0, 0
		})
		if err != nil {
			return c.End(err)
		}
	}
	return c.End(nil)
}

// TestSlicesOfNodes: in virtual time, all-to-alls of more than an outbox holds go by nodes where that takes less than reads from the owners, and not where it
// takes more.
func TestSlicesOfNodes(t *testing.T) {
	if raceEnabled || testing.Short() {
		return // nothing is concurrent in a simulated world, and it is large
	}
	for _, c := range []struct {
		ranks, node, part int
		less              float64 // than so much of the other way's time
	}{
		{64, 8, 256, 0.85},
		{64, 8, 512, 0.95},
		{64, 8, 1000, 1.02},
		{32, 8, 512, 1.02},
		{64, 16, 1000, 0.9},
		{64, 16, 3000, 1.02},
	} {
		run := func(f func(ctx context.Context, t *pgsync.Team) error, calls int) time.Duration {
			return pgastest.RunSim(t, pgastest.SimConfig{Ranks: c.ranks, RanksPerNode: c.node, Mapped: true, Seed: 1}, func(ctx context.Context, w *pgas.World) error {
				for range calls {
					if err := f(ctx, w.Team()); err != nil {
						return err
					}
				}
				return w.Barrier(ctx)
			}).Elapsed
		}
		cost := func(f func(ctx context.Context, t *pgsync.Team) error) time.Duration {
			return (run(f, 2) - run(f, 0)) / 2
		}
		took := cost(func(ctx context.Context, t *pgsync.Team) error {
			return coll.AllToAll(ctx, t, make([]byte, t.Size()*c.part), make([]byte, t.Size()*c.part))
		})
		without := cost(func(ctx context.Context, t *pgsync.Team) error { return inPairs(ctx, t, c.part) })
		t.Logf("%d ranks, %d on a node, parts of %d bytes: %v, by reads from their owners %v", c.ranks, c.node, c.part, took, without)
		require.LessOrEqual(t, float64(took), c.less*float64(without), "%+v", c)
	}
}

// root0 is 1 on the first member.
func root0(t *pgsync.Team) int {
	if t.Rank() == 0 {
		return 1
	}
	return 0
}
