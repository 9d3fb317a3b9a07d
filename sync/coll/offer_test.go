package coll_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/sync/coll"
	"gopgas/window"
)

// reused is memory of a member for long collectives, again and again: from the second one on it is offered.
type reused struct {
	t        *pgsync.Team
	k        int
	mine     []int32 // of one member
	out, in  []int32 // of all
	from, to []int   // lengths of parts that are not alike: one member sends nothing, and one gets nothing of another
	lengths  []int   // what members give: one gives nothing
}

func newReused(t *pgsync.Team, k int, whole []int32) *reused {
	n := t.Size()
	r := &reused{t: t, k: k, mine: whole[:k], out: whole[k : (n+1)*k], in: whole[(n+1)*k : (2*n+1)*k]}
	for m := range n {
		r.from, r.to, r.lengths = append(r.from, r.length(t.Rank(), m)), append(r.to, r.length(m, t.Rank())), append(r.lengths, r.given(m))
	}
	return r
}

func (r *reused) length(from, to int) int {
	if from == 1 || from == to {
		return 0
	}
	return r.k - from - to
}

func (r *reused) given(m int) int {
	if m == 1 {
		return 0
	}
	return r.k - m
}

// value is element i of what a member gives another one in a round.
func value(round, from, to, i int) int32 { return element(from, i) ^ int32(round<<24) ^ int32(to<<20) }

// fill puts what this member gives the others into out, of whose parts length tells the lengths, and returns what it takes.
func (r *reused) fill(round int, length func(from, to int) int) []int32 {
	at, me := 0, r.t.Rank()
	for m := range r.t.Size() {
		for i := range length(me, m) {
			r.out[at] = value(round, me, m, i)
			at++
		}
	}
	return r.out[:at]
}

// check compares what has come of all members.
func (r *reused) check(what string, round, to int, in []int32, length func(from, to int) int) error {
	at := 0
	for m := range r.t.Size() {
		for i := range length(m, to) {
			if in[at] != value(round, m, to, i) {
				return fmt.Errorf("%s %d: element %d of member %d is %#x", what, round, i, m, in[at])
			}
			at++
		}
	}
	if at != len(in) {
		return fmt.Errorf("%s: %d elements, not %d", what, len(in), at)
	}
	return nil
}

// round makes each call once.
func (r *reused) round(ctx context.Context, round int) error {
	t, me, n, root := r.t, r.t.Rank(), r.t.Size(), round%r.t.Size()
	alike := func(int, int) int { return r.k }
	out := r.fill(round, alike)
	if err := coll.AllToAll(ctx, t, r.in, out); err != nil {
		return err
	}
	if err := r.check("alltoall", round, me, r.in, alike); err != nil {
		return err
	}
	out, in := r.fill(round, r.length), r.in[:sum(r.to)]
	if err := coll.AllToAllV(ctx, t, in, r.to, out, r.from); err != nil {
		return err
	}
	if err := r.check("alltoallv", round, me, in, r.length); err != nil {
		return err
	}
	out = r.fill(round, alike)
	if err := coll.Scatter(ctx, t, r.mine, out, root); err != nil {
		return err
	}
	fromRoot := func(from, _ int) int {
		if from != root {
			return 0
		}
		return r.k
	}
	if err := r.check("scatter", round, me, r.mine, fromRoot); err != nil {
		return err
	}
	for i := range r.mine {
		r.mine[i] = value(round, me, 0, i)
	}
	if err := coll.Gather(ctx, t, r.in, r.mine, root); err != nil {
		return err
	}
	if me == root {
		if err := r.check("gather", round, 0, r.in, alike); err != nil {
			return err
		}
	}
	some := func(m, _ int) int { return r.given(m) }
	for _, everyone := range []bool{false, true} {
		in = r.in[:sum(r.lengths)]
		clear(in)
		var err error
		if everyone {
			err = coll.AllGatherV(ctx, t, in, r.lengths, r.mine[:r.given(me)])
		} else {
			err = coll.GatherV(ctx, t, in, r.lengths, r.mine[:r.given(me)], root)
		}
		if err == nil && (everyone || me == root) {
			err = r.check("gatherv", round, 0, in, some)
		}
		if err != nil {
			return err
		}
	}
	mine := r.mine[:r.given(me)]
	at := 0
	for m := range n {
		for i := range r.given(m) {
			r.out[at] = value(round, root, m, i)
			at++
		}
	}
	if err := coll.ScatterV(ctx, t, mine, r.out[:at], r.lengths, root); err != nil {
		return err
	}
	return r.check("scatterv", round, me, mine, func(from, to int) int {
		if from != root {
			return 0
		}
		return r.given(to)
	})
}

func sum(of []int) (n int) {
	for _, v := range of {
		n += v
	}
	return n
}

// TestOffered: long collectives of memory that is used again, where nobody maps another's, and of library memory, where all do.
func TestOffered(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		if p.Nodes != nil {
			continue
		}
		for _, n := range p.Worlds([]int{2, 3}) {
			t.Run(fmt.Sprintf("%s-%d", p.Name, n), func(t *testing.T) {
				p.TimeLimit = 30 * time.Second
				pgastest.RunConfig(t, n, p.Config, func(ctx context.Context, w *pgas.World) error {
					const k = 140_000 // 560 kB
					whole := make([]int32, (2*n+1)*k)
					if !p.NIC {
						win, err := window.Allocate[int32](ctx, w.Team(), len(whole))
						if err != nil {
							return err
						}
						whole = win.Local()
					}
					r := newReused(w.Team(), k, whole)
					for round := range 4 {
						if err := r.round(ctx, round); err != nil {
							return err
						}
					}
					return nil
				})
			})
		}
	}
}
