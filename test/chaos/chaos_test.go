// Package chaos has many goroutines of each rank do everything at once: transfers of all kinds, atomics, flushes, locks, signals, collectives,
// windows that come and go, and contexts that end; and in some worlds one rank ends amid that, with its goroutines under way.
//
// What is done follows from a seed, when it is done does not. Yet the outcome is known: each goroutine has elements of its own on every
// part, of which it knows the contents; what all change together is added up in the end.
package chaos

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

var (
	seedFlag = flag.Uint64("chaos.seed", 0, "replay the moves of this seed, once on each path; 0: new ones")
	lastFlag = flag.Duration("chaos.for", 10*time.Second, "how long both tests take together; with -short each path has one small world of each")
)

func TestMain(m *testing.M) { os.Exit(pgastest.Main(m)) }

// plan is what the ranks of a world do; they derive the rest from its seed.
type plan struct {
	seed    uint64
	ranks   int
	workers int // goroutines of a rank that move data, beside those that do other things
	steps   int // of each goroutine
	dead    int // the rank that ends before the others; -1: none
	dies    int // after so many steps of its goroutines together
	kills   bool
}

func (p plan) String() string {
	return fmt.Sprintf("-chaos.seed %d: %d ranks, %d workers, %d steps, rank %d ends at step %d", p.seed, p.ranks, p.workers, p.steps, p.dead, p.dies)
}

// planOf is the plan of a seed.
func planOf(seed uint64, deadly, small bool) plan {
	r := rand.New(rand.NewPCG(seed, 0))
	p := plan{seed: seed, ranks: 2 + r.IntN(3), workers: 1 + r.IntN(8), steps: 20 + r.IntN(100), dead: -1}
	if small {
		p.ranks, p.workers, p.steps = 3, 3, 12
	}
	if deadly {
		p.ranks = max(p.ranks, 3)
		p.dead, p.dies, p.kills = r.IntN(p.ranks), r.IntN(p.steps*p.workers), r.IntN(2) == 0
	}
	return p
}

// rng is the source of decisions of one goroutine of one rank.
func (p plan) rng(rank, id int) *rand.Rand {
	return rand.New(rand.NewPCG(p.seed, uint64(1+rank)<<32|uint64(id)))
}

func TestStorm(t *testing.T) { rounds(t, false) }

func TestStormWithADeath(t *testing.T) { rounds(t, true) }

// rounds runs worlds on each path, until its share of the time is over.
func rounds(t *testing.T, deadly bool) {
	paths := pgastest.PathsOf(t)
	share := *lastFlag / time.Duration(2*len(paths))
	for _, path := range paths {
		t.Run(path.Name, func(t *testing.T) {
			for began := time.Now(); ; {
				seed := *seedFlag
				if seed == 0 {
					seed = rand.Uint64()
				}
				world(t, path.Config, planOf(seed, deadly, testing.Short()))
				if testing.Short() || *seedFlag != 0 || time.Since(began) > share || t.Failed() {
					return
				}
			}
		})
	}
}

// errEnd is what the rank ends with that ends before the others.
var errEnd = errors.New("this rank ends here")

// world runs one plan on one path and judges how its ranks have ended.
func world(t *testing.T, c pgastest.Config, p plan) {
	t.Helper()
	var fabric *transporttest.Fabric
	c.Made = func(f *transporttest.Fabric) { fabric = f }
	c.TimeLimit = 5 * time.Minute // the machine may be slow
	c.Say = func(string) {}       // of registrations that were refused
	var leftovers, opening, living sync.WaitGroup
	opening.Add(p.ranks)
	living.Add(p.ranks - 1)
	errs := pgastest.Errors(t, p.ranks, c, func(ctx context.Context, w *pgas.World) error {
		s := &scene{plan: p, w: w, nic: c.NIC, leftovers: &leftovers, opening: &opening, living: &living}
		if w.Rank() == p.dead && p.kills && c.NIC && c.Over == "" {
			s.kill = func() { fabric.Kill(w.Rank()) }
		}
		return s.play(ctx)
	})
	leftovers.Wait()
	for rank, err := range errs {
		switch {
		case p.dead < 0:
			require.NoError(t, err, "rank %d of %v", rank, p)
		case rank == p.dead:
			require.ErrorIs(t, err, errEnd, "rank %d of %v", rank, p)
		default: // who has gone on without the dead ends well
			require.NoError(t, err, "rank %d of %v", rank, p)
		}
	}
}

// tolerate returns nil for an error that says of the rank that ends that it is gone, and of no other.
func (p plan) tolerate(err error) error {
	var gone *transport.OpError
	if p.dead >= 0 && errors.Is(err, transport.ErrPeerGone) && errors.As(err, &gone) && gone.Rank == p.dead {
		return nil
	}
	return err
}
