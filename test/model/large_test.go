package model

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"gopgas/eager"
	"gopgas/internal/proto"
	"gopgas/internal/selector"
	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/transport/sim"
	"gopgas/transport/transporttest"
	"gopgas/window"
)

// way is how large transfers are forced to travel.
type way struct {
	name  string
	bulk  string            // by the settings
	force selector.Protocol // by the engine, transfers of all sizes; None: not
	path  proto.Path        // that they are counted on; PathBounce: not looked at
}

var ways = []way{
	{name: "auto", path: proto.PathBounce},
	{name: "superpipe", bulk: "superpipe", path: proto.PathPipe},
	{name: "copy", bulk: "copy", path: proto.PathPipe},
	{name: "flat", bulk: "flat", path: proto.PathPipe},
	{name: "onthefly", bulk: "onthefly", path: proto.PathPipe},
	{name: "pipelined", bulk: "pipelined", path: proto.PathPipe},
	{name: "lease", bulk: "lease", path: proto.PathLease},
	{name: "register", bulk: "register", path: proto.PathDirect},
	{name: "direct", force: selector.Direct, path: proto.PathDirect},
	{name: "hybrid", force: selector.Hybrid, path: proto.PathPipe},
}

// large is one configuration of a trace of large transfers.
type large struct {
	way
	eager   string
	least   int // bytes from which transfers are large; 0: as it is by default
	learn   int // bytes of the transfers that the costs of small ones are learned by; 0: they are not
	seed    uint64
	moves   int
	virtual bool
	fabric  transporttest.FabricConfig
}

const (
	largeRanks = 3
	virtual    = "sim"
)

// largePaths are the NICs of all paths; where nobody has picked some also one that has room for the workspace of pipes but not for
// the memory, one on which the blocks of leases have flags, and one in virtual time.
func largePaths() []pgastest.Named {
	var all []pgastest.Named
	for _, p := range pgastest.Paths() {
		if p.NIC && p.Nodes == nil { // what is mapped goes by none of the ways
			all = append(all, p)
		}
	}
	if os.Getenv(pgastest.PathsVariable) != "" {
		return all
	}
	nic := func(name string, f transporttest.FabricConfig) pgastest.Named {
		return pgastest.Named{Name: name, Config: pgastest.Config{NIC: true, Fabric: f}}
	}
	return append(all, nic("nic-order", transporttest.FabricConfig{InOrder: true}), nic("nic-snug", transporttest.FabricConfig{MaxPinned: roomy}),
		pgastest.Named{Name: virtual})
}

// TestLargeTracesUnderEveryProtocol moves odd lengths from and to odd places, many chunks of a pipe among them, under every way of large
// transfers and, in turn, of small ones, on every NIC, and looks whether they have gone that way. With -short each NIC has a third of the ways.
func TestLargeTracesUnderEveryProtocol(t *testing.T) {
	few := testing.Short() || raceEnabled
	first := firstSeed()
	eagers := []string{"bounce", "inline", "bypass"}
	for i, p := range largePaths() {
		t.Run(p.Name, func(t *testing.T) {
			for k, w := range ways {
				if p.Bulk != "" && w.bulk != "" && w.bulk != "register" {
					continue // there are no pipes on it, and to force them is an error
				}
				if few && (i+k)%3 != 0 || p.Fabric.InOrder && w.path != proto.PathLease {
					continue
				}
				l := large{
					way: w, eager: eagers[(uint64(i+k)+first)%uint64(len(eagers))], least: 3000, seed: first + uint64(k), moves: 30,
					virtual: p.Name == virtual, fabric: p.Fabric,
				}
				switch {
				case raceEnabled:
					l.moves = 6
				case few:
					l.moves = 10
				}
				if w.bulk == "" && w.force == selector.None {
					l.eager, l.least, l.learn = "auto", 0, 32<<10
				}
				if f := p.Fabric; f.MaxMessage > 0 {
					l.learn = min(l.learn, f.MaxMessage)
				}
				t.Run(w.name, func(t *testing.T) {
					l.run(t, p)
					if t.Failed() {
						t.Fatalf("eager=%s: replay with -model.seed=%d", l.eager, first)
					}
				})
			}
		})
	}
}

func (l large) run(t *testing.T, p pgastest.Named) {
	t.Helper()
	if l.virtual {
		pgastest.RunSim(t, pgastest.SimConfig{ // on a machine where registering takes so long that a hybrid has a tail
			Model: sim.Graphene(), Ranks: largeRanks, Seed: l.seed, TimeLimit: patience, RegLeast: int64(l.least), Eager: l.eager, Bulk: l.bulk,
		}, l.trace)
		return
	}
	c := p.Config
	c.Eager, c.Bulk, c.RegLeast, c.TimeLimit = l.eager, l.bulk, int64(l.least), patience
	if l.force == selector.Hybrid {
		c.IdleCores = "always" // or there would be no helper
	}
	pgastest.RunConfig(t, largeRanks, c, l.trace)
}

// trace makes one rank's moves.
func (l large) trace(ctx context.Context, w *pgas.World) error {
	me, ranks := w.Rank(), w.Size()
	win, err := window.Allocate[byte](ctx, w.Team(), lane*ranks)
	if err != nil {
		return err
	}
	e := w.Team().Engine()
	if l.learn > 0 {
		if err := l.small(win, (me+1)%ranks); err != nil {
			return err
		}
	}
	m := &mover{win: win, base: me * lane, want: make([][]byte, ranks)}
	for i := range m.want {
		m.want[i] = make([]byte, lane)
	}
	for i := range m.kept {
		m.kept[i] = make([]byte, most+16+2*margin)
	}
	moves := movesOf(l.seed, me, ranks, l.moves)
	before := e.Stats()
	e.Force(l.force)
	for i, v := range moves {
		if err := m.move(ctx, v); err != nil {
			return fmt.Errorf("move %d, %+v: %w", i, v, err)
		}
	}
	if err := m.settle(ctx); err != nil {
		return err
	}
	if err := l.taken(e, moves, before); err != nil {
		return err
	}
	if err := l.helped(e, m, (me+1)%ranks, moves); err != nil {
		return err
	}
	e.Force(selector.None)
	if err := win.Fence(ctx); err != nil {
		return err
	}
	if err := same(win.Local(), partAfter(l.seed, me, ranks, l.moves)); err != nil {
		return fmt.Errorf("the local part: %w", err)
	}
	if err := w.Barrier(ctx); err != nil { // nobody frees before all have looked
		return err
	}
	return win.Free(ctx)
}

// small makes as many small transfers as it takes until their costs are measured, and some more.
func (l large) small(win *window.Window[byte], to int) error {
	buf := make([]byte, l.learn)
	for k := range (4<<20)/l.learn + 100 {
		if k == (4<<20)/l.learn && !l.virtual && l.fabric.MaxPinned == 0 { // they are being measured beside
			if _, err := win.Team().Engine().Estimates(selector.Query{Bytes: l.learn, Waited: true, Uses: 1}); err != nil {
				return err
			}
		}
		if err := win.Get(to, 0, buf); err != nil {
			return err
		}
	}
	return nil
}

// Least room that a NIC may register for there to be workspace of pipes, and buckets for what is not the library's.
const roomy = 8 << 20

// expects returns how many of a rank's moves must have gone the way that is forced.
func (l large) expects(moves []move) (least uint64) {
	buckets := l.fabric.MaxPinned > 0
	switch {
	case l.path == proto.PathBounce, buckets && l.fabric.MaxPinned < roomy:
		return 0
	case l.path == proto.PathLease && l.fabric.MaxMessage > 0:
		return 0 // requests for leases are longer
	case l.path == proto.PathLease, buckets:
		return 1 // what there is no lease for now goes another way, and so does what there is no room to register here, or there
	}
	for _, v := range moves {
		if !v.inRows() && (l.force != selector.None || v.bytes() >= l.least) {
			least++
		}
	}
	return least
}

// taken says whether transfers have gone the way that was forced, or how small ones travel was asked of the usage table.
func (l large) taken(e *proto.Engine, moves []move, before map[proto.Path]proto.Count) error {
	if l.learn > 0 && !l.virtual && l.fabric.MaxPinned == 0 { // in virtual time nothing is measured, nor where there is no room for that
		return l.asked(e)
	}
	now, was, expect := e.Stats()[l.path], before[l.path], l.expects(moves)
	if n := now.Ops - was.Ops; n < expect {
		return fmt.Errorf("%d transfers went by %v, want %d at least: %v", n, l.path, expect, e.Stats())
	}
	return nil
}

// helped says whether a helper has registered the tail of a hybrid. One that comes to a transfer that is over does not, so there are as many
// transfers of what a lane holds anyway as it takes.
func (l large) helped(e *proto.Engine, m *mover, to int, moves []move) error {
	if l.force != selector.Hybrid || l.expects(moves) == 0 || l.fabric.MaxPinned > 0 { // there may be no room for a tail
		return nil
	}
	for range 1000 {
		if r, _, _ := e.Registered(); r.Registrations > 0 {
			return nil
		}
		if err := m.win.Put(to, m.base, m.want[to][:most]); err != nil {
			return err
		}
		if err := m.win.Flush(to); err != nil {
			return err
		}
	}
	return errors.New("no helper has registered the tail of a hybrid")
}

// asked says whether the usage table was asked of small transfers, if asking pays for their size by what was measured.
func (l large) asked(e *proto.Engine) error {
	s, ok := e.Bypasses()
	if !ok {
		return fmt.Errorf("the costs of small transfers are not known after %d bytes of them", 4<<20)
	}
	c, err := eager.New(eager.Config{Costs: e.SmallCosts(false), Gets: e.SmallCosts(true), Limits: eager.Limits{Slot: l.learn}})
	if err != nil {
		return err
	}
	if uses, pays := c.Threshold(true, l.learn); pays && s.Buffers == 0 { // of a larger size than the least that pays it may not pay, by measured costs
		return fmt.Errorf("the usage table was not asked, though %d bytes are to be registered after %d uses: %+v", l.learn, uses, s)
	}
	return nil
}
