package racecheck

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/peers"
	"gopgas/internal/proto"
	"gopgas/internal/sched"
)

// The model test runs random programs, one step of one rank at a time, on real checkers that share memory, and beside them
// draws the graph of what happens before what, node by node and edge by edge. Two accesses race if neither's end
// leads to the other's beginning. What the checkers find must be that.

const (
	modelElems   = 6 // of each member's part
	modelSignals = 2
)

// world is a few checkers whose memory is this process's.
type world struct {
	n       int
	checks  []*Checker
	windows []*Window
	signals []*Shelf
	locks   []*Shelf
	boards  []*Board
	said    []string
}

func shared(n, bytes int) []proto.Remote {
	out := make([]proto.Remote, n)
	for r := range out {
		out[r] = proto.Remote{Rank: r, Bytes: bytes, Mapped: mem.Of(make([]uint64, (bytes+7)/8))}
		out[r].Mapped.Bytes = bytes
	}
	return out
}

func newWorld(t *testing.T, n int) *world {
	w := &world{n: n}
	ranks := shared(n, peers.BlockBytes(n))
	var parts, shelves, signals, locks, boards []proto.Remote
	for r := range n {
		e := proto.New(proto.Config{Rank: r, Size: n, Sched: sched.Goroutine(n), Peers: peers.New(n), Nodes: make([]int, n)})
		e.Join(ranks[r].Mapped, ranks)
		c, err := New(e, func(text string) { w.said = append(w.said, text) })
		require.NoError(t, err)
		if r == 0 {
			parts, shelves = shared(n, 8*modelElems), shared(n, c.WindowBytes(n, modelElems))
			signals, locks, boards = shared(n, c.ShelfBytes(modelSignals, 0)), shared(n, c.ShelfBytes(1, 0)), shared(n, c.BoardBytes())
		}
		w.checks = append(w.checks, c)
		w.windows = append(w.windows, c.Window(shelves, modelElems, r, 8, parts[r].Mapped, "int64"))
		w.signals = append(w.signals, c.Shelf(signals, 0, modelSignals, 0))
		w.locks = append(w.locks, c.Shelf(locks, 0, 1, 0))
		w.boards = append(w.boards, c.Board(boards, boards[r].Mapped, 0))
	}
	return w
}

// join gives the world what Join does.
func (w *world) join() *world {
	root := shared(w.n, worldBytes)
	for r, c := range w.checks {
		c.use(root, root[r].Mapped)
	}
	return w
}

// node is a point of the graph; leads are its edges.
type node int

type graph struct{ leads [][]node }

func (g *graph) add(after ...node) node {
	g.leads = append(g.leads, nil)
	at := node(len(g.leads) - 1)
	for _, a := range after {
		g.edge(a, at)
	}
	return at
}

func (g *graph) edge(from, to node) { g.leads[from] = append(g.leads[from], to) }

// reach returns the nodes that from leads to, itself among them.
func (g *graph) reach(from node) []bool {
	seen := make([]bool, len(g.leads))
	seen[from] = true
	for todo := []node{from}; len(todo) > 0; {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, to := range g.leads[at] {
			if !seen[to] {
				seen[to] = true
				todo = append(todo, to)
			}
		}
	}
	return seen
}

// event is an access of the program with its two nodes.
type event struct {
	rank, member, lo, n int
	kind                Kind
	begin, end          node
}

// put is a put or accumulate that may be under way.
type put struct {
	begin, end node
	order      int // how many Orders to its target came before it
}

// release is something that others can acquire: nodes that come before whoever does.
type release []node

// run is a program that is being run.
type run struct {
	t *testing.T
	w *world
	g graph

	last    []node           // by rank
	events  []event          // by site
	puts    map[[2]int][]put // by origin and target
	orders  map[[2]int]int
	signals map[[2]int]release // by target and signal
	atoms   map[[2]int]release // by member and element
	lock    release
	holder  int
	open    []pendingGet
	found   map[[3]int]bool // by member, element, 0: races were reported there
	log     []string
}

type pendingGet struct {
	e       int // event
	t       *Transfer
	rank    int
	learned release
}

func (r *run) step(rank int) node {
	at := r.g.add(r.last[rank])
	r.last[rank] = at
	return at
}

// done returns the ends of the puts of a rank to a target that a release there carries.
func (r *run) done(rank, target int, how Carry) (out []node) {
	key := [2]int{rank, target}
	for _, p := range r.puts[key] {
		if how == CarryAll || how == CarryOrdered && p.order < r.orders[key] {
			out = append(out, p.end)
		}
	}
	return out
}

// access makes an access on the checkers and in the graph.
func (r *run) access(rank, member, lo, n int, kind Kind, done Done) (event int) {
	id := len(r.events)
	at := r.step(rank)
	e := r.note(rank, member, lo, n, kind, at)
	switch done {
	case ByFlush:
		key := [2]int{rank, member}
		e.begin = r.g.add(at)
		e.end = r.g.add(e.begin)
		for _, p := range r.puts[key] {
			if p.order < r.orders[key] {
				r.g.edge(p.end, e.begin)
			}
		}
		r.puts[key] = append(r.puts[key], put{e.begin, e.end, r.orders[key]})
	case ByWait:
		e.end = r.g.add(at)
	}
	a := Access{Kind: kind, Done: done, Site: Site(id)}
	races, lost := r.w.windows[rank].touch(a, member, lo, n)
	r.judge(id, member, races, lost)
	return id
}

func (r *run) note(rank, member, lo, n int, kind Kind, at node) *event {
	r.events = append(r.events, event{rank, member, lo, n, kind, at, at})
	return &r.events[len(r.events)-1]
}

// judge keeps what was reported, to compare it when the graph is whole.
func (r *run) judge(id, member int, races []found, lost int) {
	require.True(r.t, lost == 0, "accesses were forgotten")
	for _, f := range races {
		for i := f.lo; i < f.hi; i++ {
			r.found[[3]int{member, i, 0}] = true
			r.found[[3]int{int(f.with.site()), id, i + 1}] = true
		}
	}
}

// random makes one random step.
func (r *run) random(rng *rand.Rand) {
	rank, member := rng.IntN(r.w.n), rng.IntN(r.w.n)
	lo := rng.IntN(modelElems)
	n := 1 + rng.IntN(min(2, modelElems-lo))
	c, w := r.w.checks[rank], r.w.windows[rank]
	key := [2]int{rank, member}
	what := rng.IntN(17)
	r.log = append(r.log, fmt.Sprintf("%d: rank %d does %d to %d [%d, %d)", len(r.events), rank, what, member, lo, lo+n))
	switch what {
	case 0, 1:
		r.access(rank, member, lo, n, Write, ByFlush)
	case 2:
		r.access(rank, member, lo, n, Read, AtReturn)
	case 3:
		r.access(rank, rank, lo, n, Kind(rng.IntN(2)), AtReturn) // declared
	case 4: // a fetching atomic
		id, changed := len(r.events), rng.IntN(3) > 0
		at, kind := r.step(rank), fetching(rng, changed)
		r.note(rank, member, lo, 1, kind, at)
		slot := [2]int{member, lo}
		for _, from := range r.atoms[slot] {
			r.g.edge(from, at)
		}
		if changed {
			r.atoms[slot] = append(r.atoms[slot], append(r.done(rank, member, CarryOrdered), at)...)
		}
		w.shelf.lock(member)
		races, lost := w.arrive(Access{Kind: kind, Site: Site(id)}, member, lo, 1)
		if changed {
			w.leave(member, lo, 1)
		}
		w.shelf.unlock(member)
		r.judge(id, member, races, lost)
	case 5: // an accumulate
		r.access(rank, member, lo, n, Update, ByFlush)
		for i := lo; i < lo+n; i++ {
			slot := [2]int{member, i}
			r.atoms[slot] = append(r.atoms[slot], append(r.done(rank, member, CarryOrdered), r.last[rank])...)
		}
		w.leave(member, lo, n)
	case 6, 7:
		at := r.step(rank)
		for _, p := range r.puts[key] {
			r.g.edge(p.end, at)
		}
		r.flushed(rank, member, at)
	case 8:
		r.orders[key]++
		c.Ordered(member)
	case 9, 10: // a signal is set
		s := [2]int{member, rng.IntN(modelSignals)}
		at := r.step(rank)
		r.signals[s] = append(r.signals[s], append(r.done(rank, member, CarryAll), at)...)
		r.w.signals[rank].Release(member, s[1], CarryAll)
	case 11, 12: // and seen
		s := [2]int{rank, rng.IntN(modelSignals)}
		at := r.step(rank)
		for _, from := range r.signals[s] {
			r.g.edge(from, at)
		}
		r.w.signals[rank].Acquire(rank, s[1])
	case 13: // a lock
		if r.holder < 0 {
			r.holder = rank
			at := r.step(rank)
			for _, from := range r.lock {
				r.g.edge(from, at)
			}
			r.w.locks[rank].Acquire(0, 0)
		} else if rank = r.holder; true {
			r.holder = -1
			at := r.step(rank)
			for m := range r.w.n {
				for _, p := range r.puts[[2]int{rank, m}] {
					r.g.edge(p.end, at)
				}
				r.flushed(rank, m, at)
			}
			r.lock = append(r.lock, at)
			r.w.locks[rank].Release(0, 0, CarryDone)
		}
	case 14: // all meet, now and then
		if rng.IntN(4) > 0 {
			return
		}
		all := make([]node, r.w.n)
		for k := range all {
			all[k] = r.step(k)
			r.w.boards[k].Enter()
		}
		meet := r.g.add(all...)
		for k := range all {
			r.g.edge(meet, r.step(k))
			r.w.boards[k].Leave()
		}
	case 15: // a get that is waited for, or the wait
		if len(r.open) < 2 && rng.IntN(2) == 0 {
			id := r.access(rank, member, lo, n, Read, ByWait)
			tr := &Transfer{w: w, site: Site(id), rank: member, far: span{w, member, lo, n}}
			tr.Begun()
			r.open = append(r.open, pendingGet{e: id, t: tr, rank: rank})
		} else if len(r.open) > 0 {
			k := rng.IntN(len(r.open))
			o := r.open[k]
			r.open = append(r.open[:k:k], r.open[k+1:]...)
			r.waited(o)
		}
	case 16: // a fetching atomic that is waited for later: what it learns the program knows then
		if len(r.open) == 2 {
			k := rng.IntN(2)
			o := r.open[k]
			r.open = append(r.open[:k:k], r.open[k+1:]...)
			r.waited(o)
			return
		}
		id, at, changed := len(r.events), r.step(rank), rng.IntN(3) > 0
		kind := fetching(rng, changed)
		e := r.note(rank, member, lo, 1, kind, at)
		e.begin = r.g.add(at)
		slot := [2]int{member, lo}
		o := pendingGet{e: id, rank: rank, learned: slices.Clone(r.atoms[slot])}
		for _, from := range o.learned {
			r.g.edge(from, e.begin)
		}
		if changed {
			r.atoms[slot] = append(r.atoms[slot], append(r.done(rank, member, CarryOrdered), at)...)
		}
		o.t = &Transfer{w: w, site: Site(id), rank: member, fetch: true}
		w.shelf.lock(member)
		races, lost := w.arriveNB(o.t, kind, member, lo)
		if changed {
			w.leave(member, lo, 1)
		}
		w.shelf.unlock(member)
		o.t.Begun()
		r.judge(id, member, races, lost)
		r.open = append(r.open, o)
	}
}

// fetching is the kind of a fetching atomic: of those that change nothing some are loads.
func fetching(rng *rand.Rand, changed bool) Kind {
	if !changed && rng.IntN(2) == 0 {
		return Look
	}
	return Update
}

// flushed flushes in step at, which waits for atomics too.
func (r *run) flushed(rank, member int, at node) {
	r.open = slices.DeleteFunc(r.open, func(o pendingGet) bool {
		ends := o.t.fetch && o.rank == rank && o.t.rank == member
		for _, from := range o.learned {
			if ends {
				r.g.edge(from, at)
			}
		}
		return ends
	})
	r.w.checks[rank].Flushed(member)
}

// waited ends what was waited for.
func (r *run) waited(o pendingGet) {
	at := r.step(o.rank)
	r.g.edge(r.events[o.e].end, at)
	for _, from := range o.learned {
		r.g.edge(from, at)
	}
	o.t.Ended()
}

// compare returns what the checkers did wrong, and how many pairs race.
func (r *run) compare() (wrong []string, racing int) {
	ends := make([][]bool, len(r.events))
	for i, e := range r.events {
		ends[i] = r.g.reach(e.end)
	}
	race := make(map[[3]int]bool) // by member, element
	for j, b := range r.events {
		for i, a := range r.events[:j] {
			lo, hi := max(a.lo, b.lo), min(a.lo+a.n, b.lo+b.n)
			if a.member != b.member || lo >= hi || !a.kind.conflicts(b.kind) || ends[i][b.begin] || ends[j][a.begin] {
				for k := lo; k < hi; k++ {
					if r.found[[3]int{i, j, k + 1}] && a.member == b.member {
						wrong = append(wrong, fmt.Sprintf("%d and %d do not race on element %d of rank %d", i, j, k, a.member))
					}
				}
				continue
			}
			racing++
			for k := lo; k < hi; k++ {
				race[[3]int{a.member, k, 0}] = true
			}
		}
	}
	for at := range race {
		if !r.found[at] {
			wrong = append(wrong, fmt.Sprintf("nothing was reported of element %d of rank %d, on which there is a race", at[1], at[0]))
		}
	}
	return wrong, racing
}

// TestRandomPrograms: whatever is reported is a race, and every element with a race is reported.
func TestRandomPrograms(t *testing.T) {
	const seeds = 3000
	clean := 0
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := 2 + int(seed%3)
		r := &run{
			t: t, w: newWorld(t, n), puts: map[[2]int][]put{}, orders: map[[2]int]int{}, signals: map[[2]int]release{},
			atoms: map[[2]int]release{}, holder: -1, found: map[[3]int]bool{},
		}
		for range n {
			r.last = append(r.last, r.g.add())
		}
		for range 4 + rng.IntN(36) {
			r.random(rng)
		}
		wrong, racing := r.compare()
		wrong = append(wrong, r.w.said...)
		require.Empty(t, wrong, "seed %d, %d ranks:\n%v", seed, n, r.log)
		if racing == 0 {
			clean++
		}
	}
	require.Greater(t, clean, seeds/50, "programs without a race")
	require.Less(t, clean, seeds*9/10)
}
