package traces

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/regmgr"
	pgsync "gopgas/sync"
	"gopgas/transport/transporttest"
	"gopgas/window"
)

var (
	seed = flag.Uint64("traces.seed", 0, "run only the trace of this seed, of every element type")
	long = flag.Bool("traces.long", false, "run traces for ten minutes")
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(pgastest.Main(m))
}

// anyConfig is one of the ways in which ranks reach each other: the usual ones, or a NIC with random shortcomings.
func anyConfig(rng *rand.Rand) (string, pgastest.Config) {
	paths := pgastest.Paths()
	if i := rng.IntN(len(paths) + 4); i < len(paths) {
		return paths[i].Name, paths[i].Config
	}
	f := transporttest.FabricConfig{
		Seed: rng.Uint64(), MaxPost: 1 + rng.IntN(6), MaxMessage: 64 << rng.IntN(10), MaxInline: rng.IntN(64),
		NoInline: rng.IntN(3) == 0, NotCPU: rng.IntN(3) == 0, NoWriteImm: rng.IntN(3) == 0,
		Jitter: time.Duration(rng.IntN(3)*rng.IntN(60)) * time.Microsecond,
	}
	if rng.IntN(4) == 0 { // then atomics go as messages, which need a header
		f.NoAtomics, f.MaxMessage = true, max(f.MaxMessage, 128)
	}
	c := pgastest.Config{NIC: true, Fabric: f}
	if rng.IntN(2) == 0 { // then what others copy is registered, until too much is
		some := []regmgr.Policy{regmgr.LeavePinned, regmgr.OnDemand, regmgr.Pipelined, regmgr.PipelinedLeavePinned}
		c.Reg, c.RegLeast, c.RegLimit = some[rng.IntN(len(some))].String(), 1<<rng.IntN(12), 4096<<rng.IntN(6)
	}
	return fmt.Sprintf("%+v %s from %d, limit %d", f, c.Reg, c.RegLeast, c.RegLimit), c
}

// trace runs the trace of a seed for T.
func trace[T comparable](t *testing.T, seed uint64, k kit[T], f fetching[T], order func(a, b T) int) {
	rng := rand.New(rand.NewPCG(seed, 1))
	ranks, elems, phases := 1+rng.IntN(5), 1+rng.IntN(60), 1+rng.IntN(6)
	if rng.IntN(8) == 0 {
		elems *= 700 // some larger than a slot
	}
	name, c := anyConfig(rng)
	c.TimeLimit = 30 * time.Second
	ph := plan(k, rng, ranks, elems, phases)
	got := &answers[T]{of: map[[2]int][]T{}}
	errs := pgastest.Errors(t, ranks, c, func(ctx context.Context, w *pgas.World) error {
		own := rand.New(rand.NewPCG(seed, uint64(2+w.Rank())))
		return play(ctx, k, f, w, ph, got, own)
	})
	failed := false
	report := func(err error) {
		if !failed {
			t.Errorf("%d ranks, %d elements of %T over %s; again: go test ./test/traces -traces.seed=%d", ranks, elems, *new(T), name, seed)
		}
		failed = true
		t.Error(err)
	}
	for _, err := range errs {
		if err != nil {
			report(err)
		}
	}
	for no := range ph {
		for i, s := range ph[no].sets {
			have, want := got.of[[2]int{no, i}], clone(s.given)
			slices.SortFunc(have, order)
			slices.SortFunc(want, order)
			if !slices.Equal(have, want) && !failed {
				report(fmt.Errorf("phase %d: atomics on element %d of rank %d returned %v, should be %v", no, s.disp, s.target, have, want))
			}
		}
	}
}

// combine is the arithmetic of pgsync's operations, written down once more.
func combine[T uint64 | int32 | uint8](how pgsync.Op, a, b T) T {
	switch how {
	case pgsync.Sum:
		return a + b
	case pgsync.Prod:
		return a * b
	case pgsync.Min:
		return min(a, b)
	case pgsync.Max:
		return max(a, b)
	case pgsync.And:
		return a & b
	case pgsync.Or:
		return a | b
	}
	return a ^ b
}

var integerOps = []pgsync.Op{pgsync.Sum, pgsync.Prod, pgsync.Min, pgsync.Max, pgsync.And, pgsync.Or, pgsync.Xor}

func words[T uint64 | int32](align int) (kit[T], fetching[T]) {
	k := kit[T]{
		random: func(r *rand.Rand) T { return T(r.Uint64()) >> r.IntN(8) }, ops: integerOps, combine: combine[T],
		plus: func(v T, n int) T { return v + T(n) }, word: true, align: align,
	}
	f := fetching[T]{
		add: window.FetchAdd[T], swap: window.Swap[T], cas: window.CompareSwap[T], acc: window.Accumulate[T],
	}
	return k, f
}

// one runs the trace of a seed for every element type.
func one(t *testing.T, seed uint64) {
	k64, f64 := words[uint64](1)
	trace(t, seed, k64, f64, cmp.Compare[uint64])
	k32, f32 := words[int32](2)
	trace(t, seed, k32, f32, cmp.Compare[int32])
	trace(t, seed, kit[uint8]{
		random: func(r *rand.Rand) uint8 { return uint8(r.Uint32()) }, ops: integerOps, combine: combine[uint8],
		plus: func(v uint8, n int) uint8 { return v + uint8(n) }, align: 8,
	}, fetching[uint8]{acc: window.Accumulate[uint8]}, cmp.Compare[uint8])
	trace(t, seed, kit[float64]{ // small integers, so that sums are exact in every order
		random: func(r *rand.Rand) float64 { return float64(r.IntN(2000) - 1000) },
		ops:    []pgsync.Op{pgsync.Sum, pgsync.Min, pgsync.Max},
		combine: func(how pgsync.Op, a, b float64) float64 {
			switch how {
			case pgsync.Sum:
				return a + b
			case pgsync.Min:
				return min(a, b)
			}
			return max(a, b)
		},
		plus: func(v float64, n int) float64 { return v + float64(n) }, word: true, align: 1,
	}, fetching[float64]{
		add: window.FetchAdd[float64], swap: window.Swap[float64], cas: window.CompareSwap[float64], acc: window.Accumulate[float64],
	}, cmp.Compare[float64])
	trace(t, seed, kit[[3]byte]{
		random: func(r *rand.Rand) [3]byte { v := r.Uint32(); return [3]byte{byte(v), byte(v >> 8), byte(v >> 16)} }, align: 1,
	}, fetching[[3]byte]{}, func(a, b [3]byte) int { return slices.Compare(a[:], b[:]) })
}

func TestRandomTraces(t *testing.T) {
	if *seed != 0 {
		one(t, *seed)
		return
	}
	limit := 6 * time.Second
	switch {
	case *long:
		limit = 10 * time.Minute
	case testing.Short():
		limit = time.Second
	}
	began, traces := time.Now(), 0
	for s := rand.Uint64() | 1; time.Since(began) < limit && !t.Failed(); s += 2 {
		one(t, s)
		traces++
	}
	t.Logf("%d traces of each of 5 element types", traces)
}
