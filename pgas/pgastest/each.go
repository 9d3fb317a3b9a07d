package pgastest

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"

	"gopgas/pgas"
)

// mostRanksVariable bounds the worlds of Each where a machine is too small for the larger ones.
const mostRanksVariable = "PGAS_TEST_RANKS"

// manyRanks is the size of the larger worlds that race builds run on the paths that are like others.
const manyRanks = 5

// Worlds returns those of some numbers of ranks, ascending, in which a test of them all is to run on this path. PGAS_TEST_RANKS=4 leaves
// out the worlds of more than 4 ranks, but for the first number if all are larger. Under the race detector, which makes everything
// ten times as long, and with -short, only mapped memory and one NIC get all numbers, and the other paths the largest up to five: the accesses of
// further worlds are the same ones, and other builds compare their results. With -short that NIC gets every second number, from the largest.
func (p Named) Worlds(ranks []int) []int {
	most, err := strconv.Atoi(os.Getenv(mostRanksVariable))
	some := p.worlds(ranks, most, err == nil, raceEnabled || testing.Short())
	if testing.Short() && p.Name == "nic-good" {
		some = halved(some)
	}
	return some
}

func halved(ranks []int) (some []int) {
	for i, n := range ranks {
		if (len(ranks)-1-i)%2 == 0 {
			some = append(some, n)
		}
	}
	return some
}

func (p Named) worlds(ranks []int, most int, bounded, few bool) []int {
	var out []int
	for i, n := range ranks {
		if !bounded || n <= most || i == 0 {
			out = append(out, n)
		}
	}
	if !few || p.Name == "mapped" || p.Name == "nic-good" || len(out) == 0 {
		return out
	}
	last := 0
	for i, n := range out {
		if n <= manyRanks {
			last = i
		}
	}
	return out[last : last+1]
}

// Each runs f in a world of each number of ranks on every one of PathsOf, each in a subtest of its own, but for those that
// Named.Worlds leaves out; and twice in virtual time, over simulated NICs, in the largest world of up to five, with and without nodes of two ranks. So f must keep to what
// RunSim says of such programs; EachReal is for what does not. PGAS_TEST_PATHS, -short and race builds leave virtual time out.
func Each(t *testing.T, ranks []int, f func(ctx context.Context, w *pgas.World, t *testing.T) error) {
	t.Helper()
	EachReal(t, ranks, f)
	if raceEnabled || testing.Short() || os.Getenv(PathsVariable) != "" {
		return // nothing is concurrent there
	}
	for _, n := range (Named{Name: "sim"}).worlds(ranks, 0, false, true) {
		t.Run(fmt.Sprintf("sim-%d", n), func(t *testing.T) {
			RunSim(t, SimConfig{Ranks: n, Seed: 1}, func(ctx context.Context, w *pgas.World) error { return f(ctx, w, t) })
		})
		t.Run(fmt.Sprintf("sim-nodes-%d", n), func(t *testing.T) {
			c := SimConfig{Ranks: n, RanksPerNode: 2, Mapped: true, Seed: 1}
			RunSim(t, c, func(ctx context.Context, w *pgas.World) error { return f(ctx, w, t) })
		})
	}
}

// EachReal is Each in real time only: for programs that block in other calls than the library's, such as on goroutines of their own.
func EachReal(t *testing.T, ranks []int, f func(ctx context.Context, w *pgas.World, t *testing.T) error) {
	t.Helper()
	for _, p := range PathsOf(t) {
		for _, n := range p.Worlds(ranks) {
			t.Run(fmt.Sprintf("%s-%d", p.Name, n), func(t *testing.T) {
				RunConfig(t, n, p.Config, func(ctx context.Context, w *pgas.World) error { return f(ctx, w, t) })
			})
		}
	}
}
