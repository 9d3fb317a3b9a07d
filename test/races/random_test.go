//go:build !race

package races_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/transport"
	"gopgas/transport/transporttest"
	"gopgas/window"
)

// Random programs of loads and stores, that nobody declares, of puts and of gets, in rounds that end in a barrier or a fence. Each
// element lies on a page of its own, so that every first use of it in a round is seen.

const (
	randomElems = 3
	pageElems   = 512
)

// use is an access of a random program.
type use struct {
	what         string // as reports call it; "flush": all of the rank's puts are done
	rank, target int
	elem         int
	round, turn  int
	done         int // the round in which it has come about
}

func (u use) writes() bool { return u.what == "put" || u.what == "local write" }

// randomProgram returns each rank's uses, and which rounds end in a fence.
func randomProgram(rng *rand.Rand) (uses [ranks][]use, fences []bool) {
	for round := range 1 + rng.IntN(3) {
		fences = append(fences, rng.IntN(2) == 0)
		for rank := range uses {
			for range rng.IntN(4) {
				u := use{rank: rank, target: rng.IntN(ranks), elem: rng.IntN(randomElems), round: round, turn: len(uses[rank]), done: round}
				remote := u.target != rank
				switch more := rng.IntN(2) == 0; {
				case rng.IntN(6) == 0:
					u.what = "flush"
				case remote && more:
					u.what, u.done = "put", math.MaxInt
				case remote:
					u.what = "get"
				case more:
					u.what = "local write"
				default:
					u.what = "local read"
				}
				uses[rank] = append(uses[rank], u)
			}
		}
	}
	for rank := range uses {
		for i := range uses[rank] {
			u := &uses[rank][i]
			for round := u.round; u.what == "put" && round < len(fences) && u.done == math.MaxInt; round++ {
				if fences[round] {
					u.done = round
				}
			}
			for _, f := range uses[rank][i:] {
				if u.what == "put" && f.what == "flush" {
					u.done = min(u.done, f.round)
				}
			}
		}
	}
	return uses, fences
}

// races reports whether two uses are in conflict, and nothing orders them.
func (u use) races(o use, all [ranks][]use) bool {
	if u.target != o.target || u.elem != o.elem || !u.writes() && !o.writes() || u.what == "flush" || o.what == "flush" {
		return false
	}
	if u.rank != o.rank {
		return u.done >= o.round && o.done >= u.round
	}
	if u.turn > o.turn {
		u, o = o, u
	}
	if u.what != "put" || u.done < o.round {
		return false
	}
	for _, f := range all[u.rank][u.turn:o.turn] {
		if f.what == "flush" {
			return false
		}
	}
	return true
}

func playRandom(ctx context.Context, w *pgas.World, uses []use, fences []bool) error {
	win, err := window.Allocate[int64](ctx, w.Team(), randomElems*pageElems)
	if err != nil {
		return err
	}
	r, mine, one := &rig{}, win.Local(), []int64{1}
	for round, fence := range fences {
		for _, u := range uses {
			if u.round != round {
				continue
			}
			at := u.elem * pageElems
			switch u.what {
			case "flush":
				err = win.FlushAll()
			case "put":
				err = win.Put(u.target, at, one)
			case "get":
				err = win.Get(u.target, at, make([]int64, 1))
			case "local write":
				mine[at] = 1
			case "local read":
				r.look(mine[at])
			}
			if err != nil {
				return err
			}
		}
		if err = w.Barrier(ctx); fence {
			err = win.Fence(ctx)
		}
		if err != nil {
			return err
		}
	}
	return win.Free(ctx)
}

// supported is unseen as a test's reason not to run.
func supported() error {
	if err := unseen(); err != nil {
		return fmt.Errorf("%w: %w", transport.ErrUnsupported, err)
	}
	return nil
}

// report is how a race between two uses is told.
var report = regexp.MustCompile(`^race: rank (\d) ([a-z ]+) at \S+(?: \(done when flushed\))? and rank (\d) ([a-z ]+) at \S+: elements \[(\d+), (\d+)\) of rank (\d)'s part`)

// TestRandomUses: every report is of two uses that race, and of every element that only one kind of pairs races on, that kind is
// reported.
func TestRandomUses(t *testing.T) {
	transporttest.SkipUnless(t, supported())
	seeds := 60
	if testing.Short() {
		seeds = 20
	}
	clean, local := 0, 0
	for seed := range uint64(seeds) {
		uses, fences := randomProgram(rand.New(rand.NewPCG(seed, 7)))
		said := underCheck(t, pgastest.Config{}, func(ctx context.Context, w *pgas.World) error {
			return playRandom(ctx, w, uses[w.Rank()], fences)
		})
		kinds := map[[2]int]map[string]bool{} // of pairs that race, by target and element
		pairs := map[string]bool{}
		for _, one := range uses {
			for _, u := range one {
				for _, other := range uses {
					for _, o := range other {
						if (u.rank != o.rank || u.turn != o.turn) && u.races(o, uses) {
							at := [2]int{u.target, u.elem}
							if kinds[at] == nil {
								kinds[at] = map[string]bool{}
							}
							kinds[at][min(u.what, o.what)+"+"+max(u.what, o.what)] = true
							pairs[fmt.Sprint(at, u.rank, u.what, o.rank, o.what)] = true
						}
					}
				}
			}
		}
		told := map[string]bool{}
		for _, s := range said[:len(said)-1] {
			m := report.FindStringSubmatch(s)
			require.NotNil(t, m, "seed %d: %s", seed, s)
			num := func(i int) int { n, _ := strconv.Atoi(m[i]); return n }
			require.Equal(t, num(5)+1, num(6))
			require.Zero(t, num(5)%pageElems)
			pair := fmt.Sprint([2]int{num(7), num(5) / pageElems}, num(1), m[2], num(3), m[4])
			require.Contains(t, pairs, pair, "seed %d: %s\n%+v %v", seed, s, uses, fences)
			told[min(m[2], m[4])+"+"+max(m[2], m[4])] = true
		}
		for at, k := range kinds {
			for kind := range k {
				if len(k) == 1 {
					require.Contains(t, told, kind, "seed %d, element %v\n%v\n%+v %v", seed, at, said, uses, fences)
				}
				if strings.Contains(kind, "local") {
					local++
				}
			}
		}
		if len(kinds) == 0 {
			clean++
			require.Equal(t, []string{"race check: no races found"}, said, "seed %d", seed)
		}
	}
	require.Positive(t, clean)
	require.Greater(t, local, seeds/4)
}
