package main

import (
	"context"
	"errors"
	"fmt"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/sync/coll"
	"gopgas/window"
)

// collectSizes are the payloads of the rows of collectives: bytes that a member gives, to each other one in an exchange of all with all.
var collectSizes = [...]int{8, 8 << 10, 1 << 20}

// exchange is what the members of a team give and get in a collective.
type exchange struct {
	w        *pgas.World
	src, dst []float64 // dst has room for what all members give
	each     int       // elements that a member gives
}

// given is element i of what rank gives.
func (e *exchange) given(rank, i int) float64 { return float64(rank*10 + i%7) }

// collectives are the calls measured; want is element i of dst behind them, on rank me of size.
var collectives = []struct {
	name, title, api string
	call             func(ctx context.Context, e *exchange, round int) error
	want             func(e *exchange, me, size, i int) float64
	many             bool // dst is as long as what all give
}{
	{
		name: "allreduce", title: "sum of all ranks' doubles, on all", api: "pgsync.AllReduce",
		call: func(ctx context.Context, e *exchange, _ int) error {
			return pgsync.AllReduce(ctx, e.w.Team(), e.dst[:e.each], e.src[:e.each], pgsync.Sum)
		},
		want: func(e *exchange, _, size, i int) (sum float64) {
			for r := range size {
				sum += e.given(r, i)
			}
			return sum
		},
	},
	{
		// Roots take turns: a root of many would run ahead of the others.
		name: "broadcast", title: "broadcast, from each rank in turn", api: "pgsync.Broadcast",
		call: func(ctx context.Context, e *exchange, round int) error {
			root, buf := round%e.w.Size(), e.dst[:e.each]
			if root == e.w.Rank() {
				buf = e.src[:e.each]
			}
			return pgsync.Broadcast(ctx, e.w.Team(), buf, root)
		},
		want: func(e *exchange, me, size, i int) float64 {
			last := size - 1 // the last root: of as many rounds as are a multiple of the ranks
			if me == last && size > 1 {
				last--
			}
			return e.given(last, i)
		},
	},
	{
		name: "allgather", title: "all ranks' doubles, to all", api: "pgsync.AllGather", many: true,
		call: func(ctx context.Context, e *exchange, _ int) error {
			return pgsync.AllGather(ctx, e.w.Team(), e.dst, e.src[:e.each])
		},
		want: func(e *exchange, _, _, i int) float64 { return e.given(i/e.each, i%e.each) },
	},
	{
		name: "alltoall", title: "doubles of each rank for each", api: "coll.AllToAll", many: true,
		call: func(ctx context.Context, e *exchange, _ int) error {
			return coll.AllToAll(ctx, e.w.Team(), e.dst, e.src)
		},
		want: func(e *exchange, me, _, i int) float64 { return e.given(i/e.each, me*e.each+i%e.each) },
	},
}

// leastWindowed is the size from which it matters that what members give lies in a window.
const leastWindowed = 64 << 10

// collectRows are collectives one behind the other, as a program's iterations call them, beside the same of other libraries.
func collectRows() (rows []row) {
	add := func(c, bytes int, api string, windowed bool) {
		k := &collectives[c]
		rows = append(rows, row{
			name: "coll_" + k.name + "_" + sizeName(bytes), title: fmt.Sprintf("%s, %s", k.title, sizeName(bytes)), api: api, unit: unitNanos,
			measure: func(ctx context.Context, b *bench, r *row) (int, []float64, error) {
				return b.collect(ctx, r, c, bytes, windowed)
			},
		})
	}
	for c := range collectives {
		for _, bytes := range collectSizes {
			add(c, bytes, collectives[c].api, false)
			if bytes >= leastWindowed {
				add(c, bytes, collectives[c].api+", memory of a window", true)
			}
		}
	}
	return rows
}

// collectRounds is how many collectives of so many bytes are a repeat: a multiple of the ranks.
func collectRounds(barriers, ranks, bytes int) int {
	if ranks > 2 {
		barriers = barriers/8 + 1
	}
	return (barriers/(2+bytes>>9)/ranks + 2) * ranks
}

// collect measures collective c of so many bytes, and looks at what the last of them brought.
func (b *bench) collect(ctx context.Context, r *row, c, bytes int, windowed bool) (ops int, values []float64, err error) {
	size, k := b.w.Size(), &collectives[c]
	all := bytes / 8 * size
	var memory []float64
	if windowed {
		win, werr := window.Allocate[float64](ctx, b.w.Team(), 2*all)
		if werr != nil {
			return 0, nil, werr
		}
		defer func() { err = errors.Join(err, win.Free(ctx)) }()
		memory = win.Local()
	} else {
		memory = make([]float64, 2*all)
	}
	e := &exchange{w: b.w, each: bytes / 8, src: memory[:all:all], dst: memory[all:]}
	for i := range e.src {
		e.src[i] = e.given(b.w.Rank(), i)
	}
	rounds := collectRounds(b.set.rounds, size, bytes)
	return b.collective(ctx, r, rounds, func(i int) error { return k.call(ctx, e, i) }, func() error { return e.check(c) })
}

// check looks at every element that collective c has brought.
func (e *exchange) check(c int) error {
	k, have := &collectives[c], e.dst
	if !k.many {
		have = have[:e.each]
	}
	if k.name == "broadcast" && e.w.Size() == 1 {
		return nil // nothing was to be brought
	}
	for i, v := range have {
		if want := k.want(e, e.w.Rank(), e.w.Size(), i); v != want {
			return fmt.Errorf("wrong result: element %d is %v, want %v", i, v, want)
		}
	}
	return nil
}
