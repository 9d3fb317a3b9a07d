package pgsync_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/proto"
	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/regmgr"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// offered is the memory of a member for calls that go by offers: long, and used again.
type offered struct {
	mine, sum []float64
	all       []float64
}

const offeredElems = (2*pgsync.RoomBytes + 64) / 8

func newOffered(t *pgsync.Team) *offered {
	return &offered{make([]float64, offeredElems), make([]float64, offeredElems), make([]float64, offeredElems*t.Size())}
}

// offeredOf is newOffered for a team of up to n members in memory that may be offered: where members map each other that is library memory, which the members of t allocate.
func offeredOf(ctx context.Context, p pgastest.Named, t *pgsync.Team, n int) (*offered, error) {
	if p.NIC {
		return newOffered(t), nil
	}
	win, err := window.Allocate[float64](ctx, t, offeredElems*(2+n))
	if err != nil {
		return nil, err
	}
	whole := win.Local()
	return &offered{whole[:offeredElems], whole[offeredElems : 2*offeredElems], whole[2*offeredElems:]}, nil
}

// of is the memory for a team of fewer members.
func (o *offered) of(t *pgsync.Team) *offered {
	return &offered{o.mine, o.sum, o.all[:offeredElems*t.Size()]}
}

func (o *offered) give(seed, m int) []float64 {
	for i := range o.mine {
		o.mine[i] = given(seed, m, i)
	}
	return o.mine
}

func given(seed, m, i int) float64 { return float64(seed+m+1) / float64(1+i%7) }

// broadcast, gather, reduce make the calls and compare what they bring.
func (o *offered) broadcast(ctx context.Context, t *pgsync.Team, seed, root int) error {
	buf := o.mine
	if t.Rank() == root {
		o.give(seed, root)
	}
	if err := pgsync.Broadcast(ctx, t, buf, root); err != nil {
		return err
	}
	for i, v := range buf {
		if v != given(seed, root, i) {
			return fmt.Errorf("broadcast %d from %d: element %d is %v", seed, root, i, v)
		}
	}
	return nil
}

func (o *offered) gather(ctx context.Context, t *pgsync.Team, seed int) error {
	if err := pgsync.AllGather(ctx, t, o.all, o.give(seed, t.Rank())); err != nil {
		return err
	}
	for i, v := range o.all {
		if v != given(seed, i/offeredElems, i%offeredElems) {
			return fmt.Errorf("allgather %d: element %d is %v", seed, i, v)
		}
	}
	return nil
}

func (o *offered) reduce(ctx context.Context, t *pgsync.Team, seed, root int, inPlace bool) error {
	sum := o.sum
	o.give(seed, t.Rank())
	if inPlace {
		sum = o.mine
	}
	var err error
	if root < 0 {
		err = pgsync.AllReduce(ctx, t, sum, o.mine, pgsync.Sum)
	} else {
		err = pgsync.Reduce(ctx, t, sum, o.mine, pgsync.Sum, root)
	}
	if err != nil || root >= 0 && root != t.Rank() {
		return err
	}
	for i, v := range sum {
		want := given(seed, 0, i)
		for m := 1; m < t.Size(); m++ {
			want += given(seed, m, i)
		}
		if v != want { // in the order of ranks, bit by bit
			return fmt.Errorf("reduction %d to %d: element %d is %v, not %v", seed, root, i, v, want)
		}
	}
	return nil
}

// calls are some of each.
func (o *offered) calls(ctx context.Context, t *pgsync.Team, seed int) error {
	return errors.Join(
		o.broadcast(ctx, t, seed, seed%t.Size()), o.gather(ctx, t, seed), o.reduce(ctx, t, seed, -1, seed%2 == 0), o.reduce(ctx, t, seed, seed%t.Size(), seed%2 == 1),
	)
}

// alike are the paths on which nobody maps another's memory, or all do.
func alike(t *testing.T, f func(t *testing.T, p pgastest.Named)) {
	t.Helper()
	for _, p := range pgastest.PathsOf(t) {
		if p.Nodes == nil {
			t.Run(p.Name, func(t *testing.T) {
				p.TimeLimit = 60 * time.Second
				f(t, p)
			})
		}
	}
}

// TestOffers: long calls whose memory is used again are right, on the team itself, on one of its own and in started calls, and when that is known they take two turns, a
// reduction three, but for that of two members that do not map each other.
func TestOffers(t *testing.T) {
	alike(t, func(t *testing.T, p pgastest.Named) {
		sizes := []int{2, 5}
		if raceEnabled || testing.Short() {
			sizes = []int{2, 3}
		}
		for _, n := range p.Worlds(sizes) {
			reduction := uint64(3)
			if n == 2 && p.NIC {
				reduction = 2
			}
			pgastest.RunConfig(t, n, p.Config, func(ctx context.Context, w *pgas.World) error {
				o, err := offeredOf(ctx, p, w.Team(), n)
				if err != nil {
					return err
				}
				beside, err := offeredOf(ctx, p, w.Team(), n)
				if err != nil {
					return err
				}
				started := w.Team().Start(func(ctx context.Context, t *pgsync.Team) error {
					return errors.Join(beside.calls(ctx, t, 50), beside.calls(ctx, t, 51))
				})
				for seed := range 3 {
					if err := o.calls(ctx, w.Team(), seed); err != nil {
						return err
					}
				}
				if err := started.Wait(ctx); err != nil {
					return err
				}
				if p.Config.Fabric.MaxPinned != 0 {
					return nil // there is no room for it all
				}
				for _, c := range []struct {
					turns uint64
					call  func() error
				}{
					{2, func() error { return o.gather(ctx, w.Team(), 7) }},
					{2, func() error { return o.broadcast(ctx, w.Team(), 7, 0) }},
					{reduction, func() error { return o.reduce(ctx, w.Team(), 7, -1, true) }},
				} {
					took := uint64(0)
					for k := 0; k < 40 && took != c.turns; k++ { // the calls before have made it that some do not ask
						before := w.Team().Barriers()
						if err := c.call(); err != nil {
							return err
						}
						took = w.Team().Barriers() - before
					}
					if took != c.turns {
						return fmt.Errorf("a call among %d takes %d turns, not %d", n, took, c.turns)
					}
				}
				return nil
			})
		}
	})
}

// TestOfferRefused: memory that nobody has used before is not offered, by one member or by all; the call is right all the same, and calls that find that ask more
// and more seldom.
func TestOfferRefused(t *testing.T) {
	alike(t, func(t *testing.T, p pgastest.Named) {
		pgastest.RunConfig(t, 2, p.Config, func(ctx context.Context, w *pgas.World) error {
			o, err := offeredOf(ctx, p, w.Team(), 2)
			if err != nil {
				return err
			}
			var turns []uint64
			var fresh []*offered // so that no memory comes again
			for seed := range 6 {
				use := o
				if w.Rank() == 1 {
					use = newOffered(w.Team())
					fresh = append(fresh, use)
				}
				before := w.Team().Barriers()
				if err := use.gather(ctx, w.Team(), seed); err != nil {
					return err
				}
				turns = append(turns, w.Team().Barriers()-before)
			}
			if len(fresh) > 0 && len(slices.Compact(turns[1:])) < 2 {
				return fmt.Errorf("turns of calls one of whose members refuses: %v", turns)
			}
			for seed := range 20 {
				if err := o.gather(ctx, w.Team(), seed); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// TestOffersUnderEveryPolicy: whatever registers memory and whenever, calls bring the same.
func TestOffersUnderEveryPolicy(t *testing.T) {
	for policy := range strings.SplitSeq(regmgr.Policies(), ", ") {
		t.Run(policy, func(t *testing.T) {
			c := pgastest.Config{NIC: true, Reg: policy, TimeLimit: 30 * time.Second}
			pgastest.RunConfig(t, 2, c, func(ctx context.Context, w *pgas.World) error {
				o := newOffered(w.Team())
				for seed := range 3 {
					if err := o.calls(ctx, w.Team(), seed); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

// TestOffersUnderEveryBulk: however large transfers are forced to travel, calls bring the same. A lease asks the owner's CPU, which knows nothing of what is offered to a call.
func TestOffersUnderEveryBulk(t *testing.T) {
	for bulk := range strings.SplitSeq(proto.Bulks(), ", ") {
		t.Run(bulk, func(t *testing.T) {
			c := pgastest.Config{NIC: true, Bulk: bulk, Reg: regmgr.OnDemand.String(), TimeLimit: 30 * time.Second}
			pgastest.RunConfig(t, 3, c, func(ctx context.Context, w *pgas.World) error {
				o := newOffered(w.Team())
				for seed := range 3 {
					if err := o.calls(ctx, w.Team(), seed); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

// TestOfferAbandoned: a member leaves a long call at any moment, and uses its memory for something else. The others end, in an error or with what they wanted, and windows still work, so no connection
// has ended since somebody read what was not offered any more.
func TestOfferAbandoned(t *testing.T) {
	rounds, warm := 8, 6
	if raceEnabled {
		rounds, warm = 1, 3
	} else if testing.Short() {
		rounds = 3
	}
	alike(t, func(t *testing.T, p pgastest.Named) {
		pgastest.RunConfig(t, 3, p.Config, func(ctx context.Context, w *pgas.World) error {
			win, err := window.Allocate[int64](ctx, w.Team(), 8)
			if err != nil {
				return err
			}
			mem, err := offeredOf(ctx, p, w.Team(), 3)
			if err != nil {
				return err
			}
			rng := rand.New(rand.NewPCG(uint64(w.Rank()), 5))
			for round := range rounds {
				team, err := w.Team().Split(ctx, 0, 0)
				if err != nil {
					return err
				}
				o := mem.of(team)
				calls := func(ctx context.Context, seed int) error {
					if err := o.gather(ctx, team, seed); err != nil {
						return err
					}
					return o.reduce(ctx, team, seed, -1, true)
				}
				for seed := range warm { // by then all is offered
					if err := calls(ctx, seed); err != nil {
						return err
					}
				}
				if err := w.Team().Barrier(ctx); err != nil { // nobody is in a call still when somebody leaves the next
					return err
				}
				short := ctx
				if w.Rank() == round%3 {
					var cancel context.CancelFunc
					short, cancel = context.WithTimeout(ctx, time.Duration(rng.IntN(3000))*time.Microsecond)
					defer cancel()
				}
				for err = nil; err == nil; {
					err = calls(short, round)
				}
				if !raceEnabled { // others may be reading it
					for i := range o.mine {
						o.mine[i] = -1
					}
				}
				if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, pgsync.ErrAbandoned) {
					return err
				}
				if err := w.Team().Barrier(ctx); err != nil {
					return err
				}
				for m := range w.Size() {
					if _, err := window.FetchAdd(win, m, 0, 1); err != nil {
						return fmt.Errorf("round %d, a sum at rank %d: %w", round, m, err)
					}
				}
				if err := w.Team().Barrier(ctx); err != nil {
					return err
				}
			}
			require.EqualValues(t, 3*rounds, win.Local()[0])
			return nil
		})
	})
}
