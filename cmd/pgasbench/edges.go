package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	pgsync "gopgas/sync"
	"gopgas/window"
)

// edge is a working set by what firehose's budget says of it: beyond F buckets, this rank's share, each use is a move, and beyond F and V,
// what the owner keeps for nobody, each is a registration too. V is what it can keep beside all else, found out by using more.
type edge struct {
	name string
	f, v int64 // hundredths of F and V
}

// edges lie on both sides of both places, and between them.
var edges = []edge{
	{"F/2", 50, 0},
	{"0.98F", 98, 0},
	{"1.02F", 102, 0},
	{"F+V/4", 100, 25},
	{"F+V/2", 100, 50},
	{"F+3V/4", 100, 75},
	{"0.98(F+V)", 98, 98},
	{"1.02(F+V)", 102, 102},
	{"1.25(F+V)", 125, 125},
	{"2(F+V)", 200, 200},
}

// places is the edge's number of buckets.
func (e edge) places(share, victims int64) int {
	return int(max(1, (e.f*share+e.v*victims+50)/100))
}

// edgeRows are rows of working sets around the edges, each bucket used once in a round. compute is how long the program does something else
// between two uses, which does not count.
func edgeRows(op string, compute time.Duration) ([]row, error) {
	if op != opPut && op != opGet {
		return nil, fmt.Errorf("--op %q: want put or get", op)
	}
	if compute < 0 {
		return nil, fmt.Errorf("--compute %v: want 0 or more", compute)
	}
	var rows []row
	for _, e := range edges {
		rows = append(rows, row{
			name: "edge_" + op + "_" + e.name, unit: unitNanos, two: true, bytes: 1, // as measured
			title: fmt.Sprintf("%s %s, round as many buckets as %s", op, sizeName(setPut), e.name),
			api:   "Window." + blockOps[op] + ", Flush each",
			measure: func(ctx context.Context, b *bench, r *row) (int, []float64, error) {
				return measureEdge(ctx, b, r, op, e, compute)
			},
		})
	}
	return rows, nil
}

// Rounds before those that are measured: they fill the share, and where there is time between uses a helper learns them.
const (
	warmRounds  = 2
	learnRounds = 8
)

// measureEdge measures rounds through a working set. The row's title says what a use met at rank 0, and had its owner register.
func measureEdge(ctx context.Context, b *bench, r *row, op string, e edge, compute time.Duration) (int, []float64, error) {
	budget := b.w.Team().Engine().FirehoseBudget()
	if budget.Share == 0 {
		return 0, nil, fmt.Errorf("%w: nothing is registered in buckets; set PGAS_TRANSPORT, PGAS_LOCAL=off, and PGAS_MAX_PINNED below --span", errNotHere)
	}
	unit := int(budget.Unit())
	win, err := bucketWindow(ctx, b, unit, b.set.bytes)
	if err != nil {
		return 0, nil, err
	}
	if op == opGet {
		fillPattern(win.Local(), 2)
		if err := win.Fence(ctx); err != nil {
			return 0, nil, err
		}
	}
	priv := make([]byte, setPut)
	fillPattern(priv, 1)
	victims, err := b.kept(ctx, win, op, priv, unit, int(budget.Share+budget.Victims))
	if err != nil {
		return 0, nil, err
	}
	victims -= budget.Share
	places := e.places(budget.Share, victims)
	if places*unit > b.set.bytes {
		return 0, nil, errors.Join(fmt.Errorf("%w: a set of %d bytes; give a larger --span", errNotHere, places*unit), win.Free(ctx))
	}
	rounds := warmRounds
	if compute > 0 {
		rounds = learnRounds
	}
	for range rounds {
		if _, err := b.edgeRound(win, op, priv, unit, places, compute); err != nil {
			return 0, nil, err
		}
	}
	before, err := b.edgeCounts(ctx)
	if err != nil {
		return 0, nil, err
	}
	var values []float64
	for i := range b.set.reps {
		took, err := b.edgeRound(win, op, priv, unit, places, compute)
		if err != nil {
			return 0, nil, err
		}
		values = append(values, float64(took)/float64(places))
		if b.w.Rank() == 0 {
			b.progress.part(i+1, b.set.reps)
		}
	}
	after, err := b.edgeCounts(ctx)
	if err != nil {
		return 0, nil, err
	}
	uses := float64(b.set.reps * places)
	if b.w.Rank() == 0 { // ranks of one process share the rows
		r.bytes = places * unit
		r.title += fmt.Sprintf(" (%d); of 100: %.1f misses, %.1f foreseen, %.1f late, %.1f registrations", places,
			100*float64(after[0]-before[0])/uses, 100*float64(after[1]-before[1])/uses, 100*float64(after[2]-before[2])/uses, 100*float64(after[3]-before[3])/uses)
	}
	if err := b.agree(ctx, checkSet(b, win.Local(), priv, op, places, unit)); err != nil {
		return 0, nil, err
	}
	if err := win.Free(ctx); err != nil {
		return 0, nil, err
	}
	return places, values, b.w.Team().Engine().FixBuckets(0)
}

// kept returns how many buckets the peer keeps registered, those that are held included, when more were used than it can: what it has
// registered otherwise leaves it less than the budget says.
func (b *bench) kept(ctx context.Context, win *window.Window[byte], op string, priv []byte, unit, all int) (int64, error) {
	if _, err := b.edgeRound(win, op, priv, unit, min(2*all, b.set.bytes/unit), 0); err != nil {
		return 0, err
	}
	if err := b.w.Barrier(ctx); err != nil {
		return 0, err
	}
	_, served := b.w.Team().Engine().Firehoses()
	pinned := []int64{served.Pinned}
	err := pgsync.Broadcast(ctx, b.w.Team(), pinned, b.peer)
	return pinned[0], err
}

// edgeRound has rank 0 use each place once, and returns how long it was in the calls.
func (b *bench) edgeRound(win *window.Window[byte], op string, priv []byte, unit, places int, compute time.Duration) (took time.Duration, err error) {
	if b.w.Rank() != 0 {
		return 0, nil
	}
	do := win.Put
	if op == opGet {
		do = win.Get
	}
	for i := range places {
		time.Sleep(compute)
		began := time.Now()
		if err := do(b.peer, i*unit, priv); err != nil {
			return 0, err
		}
		if err := win.Flush(b.peer); err != nil {
			return 0, err
		}
		took += time.Since(began)
	}
	return took, nil
}

// edgeCounts returns rank 0's misses, foreseen and late uses, and how many buckets its peer has registered.
func (b *bench) edgeCounts(ctx context.Context) ([4]uint64, error) {
	if err := b.w.Barrier(ctx); err != nil {
		return [4]uint64{}, err
	}
	origin, served := b.w.Team().Engine().Firehoses()
	mine, theirs := []uint64{origin.Misses, origin.Foreseen, origin.Late}, []uint64{served.Registered}
	if err := pgsync.Broadcast(ctx, b.w.Team(), mine, 0); err != nil {
		return [4]uint64{}, err
	}
	err := pgsync.Broadcast(ctx, b.w.Team(), theirs, b.peer)
	return [4]uint64{mine[0], mine[1], mine[2], theirs[0]}, err
}
