package firehose

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// op is a request that a random system has made.
type op struct {
	rank int
	q    *Request
}

// local is a pin of a random system.
type local struct {
	rank int
	run  Run
}

// world is a net with random doings.
type world struct {
	*net
	rng    *rand.Rand
	ops    []op
	pins   []local
	nextID uint32
	ranges [][]Range // by owner: exposed now
	gone   [][]Range // by owner: the last one not any more
	going  []map[uint32]bool
	seen   map[string]int
}

// buckets is the size of a random system's ranges, in units: small, so that requests meet.
const buckets = 16

func newWorld(t testing.TB, rng *rand.Rand) *world {
	c := config{ranks: 2 + rng.IntN(3), f: 1 + rng.Int64N(8), v: rng.Int64N(7)}
	if rng.IntN(2) == 0 {
		c.payload = LeastPayload + rng.IntN(40)
	}
	w := &world{net: newNet(t, c), rng: rng, seen: map[string]int{}, nextID: 2}
	for rank := range c.ranks {
		w.ranges, w.gone = append(w.ranges, nil), append(w.gone, nil)
		w.going = append(w.going, map[uint32]bool{})
		for range 2 {
			w.expose(rank)
		}
	}
	return w
}

func (w *world) expose(rank int) {
	r := Range{ID: w.nextID, Start: start + uint64(w.nextID)*bigRange + uint64(w.rng.IntN(2*unit)), Bytes: buckets * unit}
	w.nextID++
	require.NoError(w.t, w.owners[rank].s.Expose(r))
	w.ranges[rank] = append(w.ranges[rank], r)
}

// note counts a state that was reached.
func (w *world) note(state string) { w.seen[state]++ }

// other returns a rank that lives, and a living peer of it; ok is false when there are not two.
func (w *world) pair() (rank, peer int, ok bool) {
	rank, peer = w.rng.IntN(len(w.owners)), w.rng.IntN(len(w.owners))
	return rank, peer, rank != peer && !w.dead[rank] && w.holders[rank].peers[peer].err == nil
}

func (w *world) step() {
	switch k := w.rng.IntN(100); {
	case k < 34:
		w.acquire()
	case k < 58 && len(w.way) > 0:
		i := w.rng.IntN(len(w.way))
		if i > 0 {
			w.note("out of order")
		}
		w.deliver(i)
	case k < 82 && len(w.ops) > 0:
		w.finish(w.rng.IntN(len(w.ops)))
	case k < 86:
		w.pinLocally()
	case k < 88:
		w.foresee()
	case k < 94 && len(w.pins) > 0:
		i := w.rng.IntN(len(w.pins))
		w.owners[w.pins[i].rank].s.Unpin(w.pins[i].run)
		w.pins = slices.Delete(w.pins, i, i+1)
	case k == 94:
		w.refusals()
	case k == 95:
		w.stuck[w.rng.IntN(len(w.stuck))] = w.rng.IntN(2) == 0
	case k == 96:
		w.withdraw()
	case k == 97 && w.rng.IntN(40) == 0:
		w.die()
	case k == 98:
		w.owners[w.rng.IntN(len(w.owners))].s.Shed(w.rng.Int64N(3 * unit))
	case k == 99:
		w.interleave()
	}
	for rank := range w.owners {
		w.send(rank)
		w.resume(rank)
		for id := range w.going[rank] {
			if w.owners[rank].s.Withdrawn(id) {
				delete(w.going[rank], id)
				w.note("withdrawn")
				w.expose(rank)
			}
		}
	}
	w.check()
}

// where returns a view of peer and bytes in it.
func (w *world) where(rank, peer int) (v *View, off, n uint64) {
	known := w.ranges[peer]
	if w.rng.IntN(30) == 0 && len(w.gone[peer]) > 0 {
		known = w.gone[peer]
	}
	v, err := w.holders[rank].View(peer, known[w.rng.IntN(len(known))])
	require.NoError(w.t, err)
	if w.rng.IntN(20) == 0 {
		require.NoError(w.t, w.holders[rank].Fix(v, uint8(w.rng.IntN(int(w.budget.MaxOrder())+1))))
		w.note(fmt.Sprintf("order %d", v.Order()))
	}
	off = min(w.rng.Uint64N(buckets*unit), w.rng.Uint64N(buckets*unit)) // some are hotter than others
	n = w.holders[rank].Piece(v, off, min(1+w.rng.Uint64N(1<<w.rng.IntN(15)), buckets*unit-off))
	return v, off, n
}

func (w *world) acquire() {
	rank, peer, ok := w.pair()
	if !ok || len(w.ops) > 12 {
		return
	}
	h := w.holders[rank]
	v, off, n := w.where(rank, peer)
	q := new(Request)
	switch w.rng.IntN(6) {
	case 0:
		held := h.Held(v, off, n)
		ok := h.Try(v, q, off, n)
		w.must(n == 0 || held == ok, "held %v, try %v", held, ok)
		if !ok {
			return
		}
		w.note("try")
	case 1:
		at, bytes := h.Partial(v, q, off, n)
		if bytes == 0 {
			return
		}
		w.must(at >= off && at+bytes <= off+n, "partial: %d bytes at %d of %d at %d", bytes, at, n, off)
		w.note("partial")
	default:
		if w.rng.IntN(3) == 0 {
			q.Put = make([]byte, min(n, 5))
		}
		before := h.Stats()
		state := h.Acquire(v, q, off, n)
		after := h.Stats()
		switch {
		case state == Failed:
			w.must(errors.Is(q.Err(), ErrWithdrawn) || errors.Is(q.Err(), ErrRefused), "%v", q.Err())
			w.note("failed at once")
			return
		case after.Blocked > before.Blocked:
			w.note("blocked")
		case after.Joins > before.Joins:
			w.note("join")
		case after.Misses > before.Misses:
			w.note("miss")
			if after.Moves > before.Moves {
				w.note("moved")
			}
		default:
			w.note("hit")
		}
		if after.Sheds > before.Sheds {
			w.note("shed")
		}
	}
	w.ops = append(w.ops, op{rank, q})
}

// foresee does what a predictor does, right or wrong.
func (w *world) foresee() {
	rank, peer, ok := w.pair()
	if !ok {
		return
	}
	h := w.holders[rank]
	v, off, n := w.where(rank, peer)
	b := v.r.Run(w.budget.Shift, v.Order(), off, max(1, n)).First
	if w.rng.IntN(20) == 0 {
		b += Bucket(w.rng.Uint64N(1 << 50)) // of another range, or none
	}
	due := int64(w.rng.IntN(4))
	switch w.rng.IntN(4) {
	case 0:
		if h.Yield(v, b) {
			w.note("yielded")
		}
	case 1:
		h.Expect(v, b, due)
	default:
		known, before := h.Knows(v, b), h.Stats().Ahead
		done := h.Ahead(v, b, due)
		made := h.Stats().Ahead > before
		w.must(done == h.Knows(v, b) || known, "asked ahead: %v, known %v", done, h.Knows(v, b))
		w.must(made == (done && !known), "asked ahead %v, known before %v, a move was made %v", done, known, made)
		switch {
		case made:
			w.note("ahead")
		case !done:
			w.note("ahead: no room")
		}
	}
}

// finish ends an operation if it can.
func (w *world) finish(i int) {
	for range 5 {
		if w.ops[i].q.State() == Waiting {
			i = w.rng.IntN(len(w.ops))
		}
	}
	o := w.ops[i]
	switch o.q.State() {
	case Ready:
		w.keys(o)
		w.holders[o.rank].Release(o.q)
	case Failed:
		w.note("failed")
	case Waiting:
		if w.rng.IntN(10) > 0 {
			return
		}
		w.holders[o.rank].Abandon(o.q)
		w.note("abandoned")
	}
	if o.q.Carried() {
		w.note("carried")
	}
	w.ops = slices.Delete(w.ops, i, i+1)
}

// keys checks what an RDMA operation would meet: every key is good at the owner, for the bucket meant.
func (w *world) keys(o op) {
	v := o.q.v
	if w.dead[v.peer] || w.dead[o.rank] {
		return
	}
	for i := range o.q.Run().Count {
		w.must(w.owners[v.peer].keys[o.q.Key(i)] == o.q.Run().At(i), "rank %d would use a key that is not good for %v", o.rank, o.q.Run().At(i))
	}
}

func (w *world) pinLocally() {
	rank := w.rng.IntN(len(w.owners))
	known := w.ranges[rank]
	r := known[w.rng.IntN(len(known))]
	order := uint8(w.rng.IntN(int(w.budget.MaxOrder()) + 1))
	off := w.rng.Uint64N(buckets * unit)
	run := r.Run(w.budget.Shift, order, off, min(1+w.rng.Uint64N(2*unit), buckets*unit-off))
	_, err := w.owners[rank].s.Pin(run, nil)
	switch {
	case err == nil:
		w.pins = append(w.pins, local{rank, run})
		w.note("pin")
	case errors.Is(err, ErrBusy):
		w.note("pin: busy")
	default:
		w.must(errors.Is(err, ErrTooLarge) || errors.Is(err, ErrWithdrawn) || errors.Is(err, errFull), "%v", err)
	}
}

// refusals makes a machine refuse registrations now and then, or not any more.
func (w *world) refusals() {
	o := w.owners[w.rng.IntN(len(w.owners))]
	o.refuse = nil
	if w.rng.IntN(2) == 0 {
		rng := newRand(w.rng.Uint64())
		o.refuse = func(Run) error {
			if rng.IntN(3) == 0 {
				w.note("refused")
				return errFull
			}
			return nil
		}
	}
}

// withdraw takes a range back; its holders hear of it at once or not at all before its last moves.
func (w *world) withdraw() {
	rank := w.rng.IntN(len(w.owners))
	if w.dead[rank] || len(w.ranges[rank]) < 2 {
		return
	}
	r := w.ranges[rank][0]
	w.ranges[rank], w.gone[rank] = w.ranges[rank][1:], []Range{r}
	w.owners[rank].s.Withdraw(r.ID)
	for peer := range w.owners {
		if !w.dead[peer] {
			w.holders[peer].Withdraw(rank, r.ID)
		}
	}
	w.going[rank][r.ID] = true
}

// die ends a rank; the others learn of it.
func (w *world) die() {
	if len(w.owners) < 3 || slices.Contains(w.dead, true) {
		return
	}
	rank := w.rng.IntN(len(w.owners))
	w.dead[rank] = true
	w.ops = slices.DeleteFunc(w.ops, func(o op) bool { return o.rank == rank })
	for peer := range w.owners {
		if peer != rank {
			w.owners[peer].s.Lost(rank)
			w.holders[peer].Lost(rank, errGone)
		}
	}
	w.note("died")
}

// interleave makes something happen while a Registrar works.
func (w *world) interleave() {
	o := w.owners[w.rng.IntN(len(w.owners))]
	o.during = func() {
		before := o.s.Stats().Deferred + uint64(len(o.s.late))
		for range 3 {
			switch {
			case w.rng.IntN(2) == 0 && len(w.way) > 0:
				w.deliver(w.rng.IntN(len(w.way)))
			default:
				w.pinLocally()
			}
		}
		w.note("during a registration")
		if o.s.Stats().Deferred+uint64(len(o.s.late)) > before {
			w.note("deferred")
		}
	}
}

// drain lets everything come to its end and checks that it does.
func (w *world) drain() {
	for i := range w.owners {
		w.stuck[i] = false
		w.owners[i].refuse, w.owners[i].during = nil, nil
	}
	for rank := range w.owners {
		w.send(rank)
	}
	for _, p := range w.pins {
		w.owners[p.rank].s.Unpin(p.run)
	}
	w.pins = nil
	for rounds := 0; len(w.ops) > 0 || len(w.way) > 0; rounds++ {
		w.must(rounds < 10_000, "%d operations never end: %v", len(w.ops), w.ops)
		for rank := range w.owners {
			w.send(rank)
			w.resume(rank)
		}
		for len(w.way) > 0 {
			w.deliver(w.rng.IntN(len(w.way)))
		}
		for i := len(w.ops) - 1; i >= 0; i-- {
			switch o := w.ops[i]; o.q.State() {
			case Ready:
				w.keys(o)
				w.holders[o.rank].Release(o.q)
			case Waiting:
				continue
			}
			w.ops = slices.Delete(w.ops, i, i+1)
		}
		for rank := range w.owners {
			w.send(rank)
		}
		w.check()
	}
	w.quiet()
	for rank, o := range w.owners {
		for id := range w.going[rank] {
			w.must(w.dead[rank] || o.s.Withdrawn(id), "rank %d: range %d is not withdrawn", rank, id)
		}
	}
}

// TestRandomSystems runs random systems with random delivery, refusals, deaths and withdrawals for 100 000 steps. Every
// invariant is recounted after each, and all that was begun must come to an end.
func TestRandomSystems(t *testing.T) {
	const systems, steps = 250, 400
	seen := map[string]int{}
	for seed := range uint64(systems) {
		w := newWorld(t, newRand(seed))
		func() {
			defer func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			for range steps {
				w.step()
			}
			w.drain()
		}()
		for s, k := range w.seen {
			seen[s] += k
		}
	}
	states := make([]string, 0, len(seen))
	for s := range seen {
		states = append(states, s)
	}
	sort.Strings(states)
	var report strings.Builder
	for _, s := range states {
		fmt.Fprintf(&report, "  %s %d\n", s, seen[s])
	}
	t.Logf("%d steps reached:\n%s", systems*steps, report.String())
	for _, must := range []string{
		"hit", "join", "miss", "moved", "blocked", "shed", "try", "partial", "carried", "failed", "failed at once", "abandoned", "refused",
		"pin", "pin: busy", "out of order", "withdrawn", "died", "during a registration", "deferred", "order 0", "order 1", "order 2",
		"ahead", "ahead: no room", "yielded",
	} {
		require.Positive(t, seen[must], "never reached: %s", must)
	}
}

// FuzzSystems is the same from seeds that the fuzzer thinks of.
func FuzzSystems(f *testing.F) {
	f.Add(uint64(1), uint16(100))
	f.Fuzz(func(t *testing.T, seed uint64, steps uint16) {
		w := newWorld(t, newRand(seed))
		for range steps % 2000 {
			w.step()
		}
		w.drain()
	})
}
