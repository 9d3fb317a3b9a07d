// Package model runs random traces of one-sided operations by several ranks against a sequential oracle.
//
// A trace is a list of phases that a fence separates. In each phase every element of every part belongs to one rank, or to
// all for one commutative operation, or is only read. Within that the ranks do what they like, in any order and by any
// call; so the outcome of the phase is determined, and every rank computes it from the seed.
package model

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/regmgr"
	pgsync "gopgas/sync"
	"gopgas/window"
)

var long = flag.Int("model.traces", 0, "traces of each configuration; 0: 6, and with -short 2")

func TestMain(m *testing.M) { os.Exit(pgastest.Main(m)) }

func traces() uint64 {
	switch {
	case *long > 0:
		return uint64(*long)
	case testing.Short():
		return 2
	}
	return 6
}

// The size of a trace.
const (
	elements = 300
	phases   = 5
	opsEach  = 60 // operations of one rank in one phase
)

// patience is how long a world may take on a machine that is slow, as an emulated one is.
const patience = 5 * time.Minute

// use is what may be done to an element in a phase.
type use uint8

const (
	shared   use = iota // all ranks apply the phase's operation
	readOnly            // all ranks may read
	owned               // owned+r: rank r does what it likes
)

// plan is one phase: the same on all ranks.
type plan struct {
	uses [][]use // by target, element
	op   pgsync.Op
}

func TestTraces(t *testing.T) {
	first := firstSeed()
	for _, path := range pgastest.Paths() {
		for _, n := range path.Worlds([]int{1, 2, 3, 5}) {
			t.Run(fmt.Sprintf("%s-%d", path.Name, n), func(t *testing.T) {
				path.TimeLimit = patience
				for i := range traces() {
					s := first + i
					pgastest.RunConfig(t, n, path.Config, func(ctx context.Context, w *pgas.World) error {
						return trace(ctx, w, s)
					})
					if t.Failed() {
						t.Fatalf("replay with -model.seed=%d", s)
					}
				}
			})
		}
	}
}

// TestTracesUnderEveryPolicy registers what other paths copy: transfers from 8 bytes on, where 16 pages may be registered.
func TestTracesUnderEveryPolicy(t *testing.T) {
	for name := range strings.SplitSeq(regmgr.Policies(), ", ") {
		t.Run(name, func(t *testing.T) {
			c := pgastest.Config{NIC: true, Reg: name, RegLeast: 8, RegLimit: 16 * 4096}
			if name == regmgr.LeavePinnedNoEvict.String() {
				c.RegLimit = 0 // it would fail, as it should
			}
			first := firstSeed()
			for i := range traces() {
				pgastest.RunConfig(t, 3, c, func(ctx context.Context, w *pgas.World) error { return trace(ctx, w, first+i) })
				if t.Failed() {
					t.Fatalf("replay with -model.seed=%d", first+i)
				}
			}
		})
	}
}

// TestTracesUnderEveryProtocol forces each way of small and of large transfers in turn, with a random size between the two,
// on every NIC; and leaves the choice to the costs there. With -short each NIC has every second way.
func TestTracesUnderEveryProtocol(t *testing.T) {
	first := firstSeed()
	rnd := rand.New(rand.NewPCG(first, 0xfade))
	bulks := strings.Split("auto, register, lease, superpipe, copy, flat, onthefly, pipelined", ", ")
	eagers := strings.Split("auto, inline, bounce, bypass", ", ")
	for turn, path := range pgastest.Paths() {
		if !path.NIC {
			continue
		}
		t.Run(path.Name, func(t *testing.T) {
			for i, bulk := range bulks {
				if testing.Short() && (turn+i)%2 != 0 {
					continue
				}
				c := path.Config
				c.TimeLimit = patience
				if c.Bulk != "" && bulk != "register" {
					bulk = c.Bulk // there are no pipes on it
				}
				c.Bulk, c.Eager, c.RegLeast = bulk, eagers[(uint64(i)+first)%uint64(len(eagers))], int64(1+rnd.IntN(400))
				pgastest.RunConfig(t, 3, c, func(ctx context.Context, w *pgas.World) error { return trace(ctx, w, first+uint64(i)) })
				if t.Failed() {
					t.Fatalf("bulk=%s,eager=%s,least=%d: replay with -model.seed=%d", c.Bulk, c.Eager, c.RegLeast, first)
				}
			}
			for _, eager := range eagers {
				if raceEnabled {
					break // the same code again, with thresholds that are not random
				}
				c := path.Config
				c.Eager, c.TimeLimit = eager, patience
				pgastest.RunConfig(t, 2, c, func(ctx context.Context, w *pgas.World) error { return trace(ctx, w, first) })
				if t.Failed() {
					t.Fatalf("eager=%s: replay with -model.seed=%d", eager, first)
				}
			}
		})
	}
}

// TestTracesBetweenProcesses is the same with ranks that are processes, over every path between processes.
func TestTracesBetweenProcesses(t *testing.T) {
	first := firstSeed()
	for _, p := range slices.Concat(pgastest.ProcPaths(), pgastest.ProcNodes()) {
		if raceEnabled && (p.Name == "soft" || strings.HasPrefix(p.Name, "nodes")) {
			continue // what orders two processes is out of the detector's sight, so it would report what is no race
		}
		t.Run(p.Name, func(t *testing.T) {
			p.Env = append(p.Env, fmt.Sprintf("%s=%d", seedVariable, first))
			pgastest.RunProcsConfig(t, 3, p.Procs, func(ctx context.Context, w *pgas.World) error {
				for i := range traces() {
					if err := trace(ctx, w, first+i); err != nil {
						return fmt.Errorf("-model.seed=%d: %w", first+i, err)
					}
				}
				return nil
			})
		})
	}
}

// trace runs one trace for two element types.
func trace(ctx context.Context, w *pgas.World, s uint64) error {
	if err := traceOf[uint64](ctx, w, s); err != nil {
		return fmt.Errorf("uint64: %w", err)
	}
	if err := traceOf[int32](ctx, w, s); err != nil {
		return fmt.Errorf("int32: %w", err)
	}
	return nil
}

type element interface{ ~uint64 | ~int32 }

// runner is one rank in one trace.
type runner[T element] struct {
	w      *pgas.World
	win    *window.Window[T]
	lock   *pgsync.Lock
	oracle [][]T // by target: the memory as it must be at the end of the phase
	before [][]T // at its beginning
	want   []getCheck[T]
}

// getCheck is a get under way and what it must bring.
type getCheck[T element] struct {
	h         window.Handle
	got, want []T
}

func traceOf[T element](ctx context.Context, w *pgas.World, s uint64) error {
	win, err := windowOf[T](ctx, w, s)
	if err != nil {
		return err
	}
	lock, err := pgsync.NewLock(ctx, w.Team())
	if err != nil {
		return err
	}
	r := &runner[T]{w: w, win: win, lock: lock}
	for range w.Size() {
		r.oracle = append(r.oracle, make([]T, elements))
		r.before = append(r.before, make([]T, elements))
	}
	for p := range phases {
		rnd := rand.New(rand.NewPCG(s, uint64(p))) // equal on all ranks
		if err := r.phase(ctx, rnd, s, p); err != nil {
			return fmt.Errorf("phase %d: %w", p, err)
		}
	}
	if err := lock.Free(ctx); err != nil {
		return err
	}
	return win.Free(ctx)
}

func (r *runner[T]) phase(ctx context.Context, rnd *rand.Rand, s uint64, number int) error {
	pl := newPlan(rnd, r.w.Size())
	for t := range r.oracle {
		copy(r.before[t], r.oracle[t])
	}
	// All ranks go through all ranks' operations, and perform their own.
	for rank := range r.w.Size() {
		ops := rand.New(rand.NewPCG(s^0x5eed, uint64(number*1000+rank)))
		for range opsEach {
			if err := r.step(ctx, ops, pl, rank, rank == r.w.Rank()); err != nil {
				return err
			}
		}
	}
	for _, c := range r.want {
		if err := c.h.Wait(ctx); err != nil {
			return err
		}
		if err := equal("get", c.got, c.want); err != nil {
			return err
		}
	}
	r.want = r.want[:0]
	if err := r.win.Fence(ctx); err != nil {
		return err
	}
	if err := equal("local part", r.win.Local(), r.oracle[r.w.Rank()]); err != nil {
		return err
	}
	return r.w.Barrier(ctx) // nobody writes before all have looked
}

func equal[T element](what string, got, want []T) error {
	for i := range want {
		if got[i] != want[i] {
			return fmt.Errorf("%s: element %d is %v, want %v", what, i, got[i], want[i])
		}
	}
	return nil
}

// newPlan deals the elements out in runs.
func newPlan(rnd *rand.Rand, ranks int) plan {
	pl := plan{op: []pgsync.Op{pgsync.Sum, pgsync.Xor, pgsync.Max, pgsync.Min, pgsync.Or, pgsync.And}[rnd.IntN(6)]}
	for range ranks {
		part := make([]use, elements)
		for i := 0; i < elements; {
			u := use(rnd.IntN(ranks + 2))
			for n := 1 + rnd.IntN(40); n > 0 && i < elements; n, i = n-1, i+1 {
				part[i] = u
			}
		}
		pl.uses = append(pl.uses, part)
	}
	return pl
}

// run finds a random stretch of target's elements with the same use as a random one; it returns where and how long.
func (pl plan) run(rnd *rand.Rand, target int) (at, n int, u use) {
	at = rnd.IntN(elements)
	u = pl.uses[target][at]
	most := 1 + rnd.IntN(48)
	for n = 1; n < most && at+n < elements && pl.uses[target][at+n] == u; n++ {
	}
	return at, n, u
}

// step is one operation of rank: applied to the oracle always, performed if it is this rank's.
func (r *runner[T]) step(ctx context.Context, rnd *rand.Rand, pl plan, rank int, mine bool) error {
	target := rnd.IntN(r.w.Size())
	at, n, u := pl.run(rnd, target)
	values := make([]T, n)
	for i := range values {
		values[i] = T(rnd.Uint64() >> 40)
	}
	kind := rnd.IntN(12)
	switch {
	case u == readOnly:
		return r.read(kind, target, at, n, mine)
	case u == shared:
		return r.share(pl.op, kind, target, at, values, mine)
	case u == owned+use(rank):
		return r.own(ctx, kind, target, at, values, mine)
	}
	return nil // another rank's
}

// read gets elements that nobody changes in this phase.
func (r *runner[T]) read(kind, target, at, n int, mine bool) error {
	if !mine {
		return nil
	}
	c := getCheck[T]{got: make([]T, n), want: r.before[target][at : at+n]}
	var err error
	switch kind {
	case 0: // every other element
		if err = r.win.GetStrided(target, at, 2, c.got, 2, (n+1)/2); err == nil {
			err = equal("strided get", everyOther(c.got), everyOther(c.want))
		}
		return err
	case 1: // one by one, the last one first
		if err = r.win.GetIndexed(target, downwards(at, n), c.got); err == nil {
			err = equal("indexed get", reversed(c.got), c.want)
		}
		return err
	case 2, 3, 4, 5:
		if err = r.win.Get(target, at, c.got); err == nil {
			err = equal("get", c.got, c.want)
		}
		return err
	}
	c.h, err = r.win.GetNB(target, at, c.got)
	r.want = append(r.want, c)
	return err
}

// share applies the phase's operation to elements that all ranks change by it.
func (r *runner[T]) share(op pgsync.Op, kind, target, at int, values []T, mine bool) error {
	if kind < 3 {
		values = values[:1]
	}
	for i, v := range values {
		o := &r.oracle[target][at+i]
		switch op {
		case pgsync.Sum:
			*o += v
		case pgsync.Xor:
			*o ^= v
		case pgsync.Max:
			*o = max(*o, v)
		case pgsync.Min:
			*o = min(*o, v)
		case pgsync.Or:
			*o |= v
		case pgsync.And:
			*o &= v
		}
	}
	if !mine {
		return nil
	}
	var err error
	switch {
	case kind < 2 && op == pgsync.Sum:
		_, err = fetchAdd(r.win, target, at, values[0])
	case kind < 3: // waited for at the end of the phase; what it finds others determine
		c := getCheck[T]{got: make([]T, 1)}
		c.h, err = begin(r.win, op, target, at, values[0], &c.got[0])
		r.want = append(r.want, c)
	case kind < 6:
		err = scatter(r.win, backwards(target, at, len(values)), reversed(values), op, kind == 5)
	default:
		err = accumulate(r.win, target, at, values, op)
	}
	return err
}

// own does to an element of this rank what it likes, and knows what it finds.
func (r *runner[T]) own(ctx context.Context, kind, target, at int, values []T, mine bool) error {
	part := r.oracle[target]
	old := part[at]
	switch kind {
	case 0, 1: // swap
		part[at] = values[0]
		if mine {
			return r.after(target, func() (T, error) { return swap(r.win, target, at, values[0], kind == 1) }, old)
		}
	case 2, 3: // compare-swap, right and wrong
		expect := old
		if kind == 3 {
			expect++
		} else {
			part[at] = values[0]
		}
		if mine {
			return r.after(target, func() (T, error) { return compareSwap(r.win, target, at, expect, values[0], at%2 == 0) }, old)
		}
	case 4: // read, change, write under the lock
		part[at]++
		if mine {
			return r.locked(ctx, target, at)
		}
	case 5: // put, flush, get
		copy(part[at:], values)
		if mine {
			if err := r.win.Order(target); err != nil { // without it a later put may become visible before an earlier one
				return err
			}
			if err := r.win.Put(target, at, values); err != nil {
				return err
			}
			if err := r.win.Flush(target); err != nil {
				return err
			}
			got := make([]T, len(values))
			if err := r.win.Get(target, at, got); err != nil {
				return err
			}
			return equal("get after flush", got, values)
		}
	case 6:
		copy(part[at:], values)
		if mine {
			if err := r.win.Order(target); err != nil {
				return err
			}
			_, err := r.win.PutNB(target, at, values)
			return err
		}
	case 7: // every other element
		for i := 0; i < len(values); i += 2 {
			part[at+i] = values[i]
		}
		if mine {
			if err := r.win.Order(target); err != nil {
				return err
			}
			return r.win.PutStrided(target, at, 2, values, 2, (len(values)+1)/2)
		}
	case 8: // one by one, the last one first
		copy(part[at:], values)
		if mine {
			if err := r.win.Order(target); err != nil {
				return err
			}
			return r.win.PutIndexed(target, downwards(at, len(values)), reversed(values))
		}
	default:
		copy(part[at:], values)
		if mine {
			if err := r.win.Order(target); err != nil {
				return err
			}
			return r.win.Put(target, at, values)
		}
	}
	return nil
}

// after checks the old value that an atomic returns. Earlier puts by this rank come before it only when flushed.
func (r *runner[T]) after(target int, atomic func() (T, error), old T) error {
	if err := r.win.Flush(target); err != nil {
		return err
	}
	if got, err := atomic(); err != nil || got != old {
		return fmt.Errorf("an atomic found %v, want %v: %w", got, old, err)
	}
	return nil
}

// locked increments an element with plain accesses.
func (r *runner[T]) locked(ctx context.Context, target, at int) error {
	if err := r.lock.Lock(ctx); err != nil {
		return err
	}
	if err := r.win.Flush(target); err != nil {
		return err
	}
	one := make([]T, 1)
	if err := r.win.Get(target, at, one); err != nil {
		return err
	}
	one[0]++
	if err := r.win.Put(target, at, one); err != nil {
		return err
	}
	return r.lock.Unlock()
}
