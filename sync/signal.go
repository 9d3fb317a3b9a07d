package pgsync

import (
	"context"
	"fmt"
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/internal/proto"
	"gopgas/internal/racecheck"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// Cmp is a comparison of a signal with a value: Equal, NotEqual, Greater, GreaterOrEqual, Less, or LessOrEqual.
type Cmp uint8

// The comparisons that WaitUntil can wait for.
const (
	Equal Cmp = iota
	NotEqual
	Greater
	GreaterOrEqual
	Less
	LessOrEqual
)

func (c Cmp) holds(have, want uint64) bool {
	switch c {
	case Equal:
		return have == want
	case NotEqual:
		return have != want
	case Greater:
		return have > want
	case GreaterOrEqual:
		return have >= want
	case Less:
		return have < want
	default:
		return have <= want
	}
}

// Signals is a set of 64-bit words on every member of a team.
type Signals struct {
	held
	peers []proto.Remote
	local mem.Range
	kept  mem.Range // what local held when the signals were freed
	n     int
	race  *racecheck.Shelf // nil: races are not looked for
}

// signalBytes keeps signals on cache lines of their own: different ranks set different ones.
const signalBytes = 64

// mostSignals keeps their bytes from overflowing.
const mostSignals = 1 << 40

// NewSignals returns n signals on every member, all 0. Collective.
func NewSignals(ctx context.Context, t *Team, n int) (*Signals, error) {
	if n < 1 || n > mostSignals {
		return nil, t.Refuse(ctx, "signals", transport.NewOpError("signals", -1,
			fmt.Errorf("%w: %d signals asked for, needed at least 1 and at most %d", ErrState, n, mostSignals)))
	}
	clocks := t.races.Clocks(n)
	s := &Signals{n: n}
	if err := s.hold(ctx, t, n*signalBytes+t.races.ShelfBytes(clocks, 0)); err != nil {
		return nil, err
	}
	s.peers, s.local = s.block.Remotes(), s.block.Local()
	proto.Shows(s.peers)
	s.shut = func() { s.kept = keepsake(s.local) }
	s.race = t.races.Shelf(s.peers, n*signalBytes, clocks, 0)
	return s, nil
}

// FollowFailed has this rank set the signals behind puts that have failed, too, as flags of collectives are, and leave the errors of those to flushes. It is for layers above, whose signals
// show what they have put themselves to members that wait for it, whatever becomes of the program's puts. It is called before any is set.
func (s *Signals) FollowFailed() { proto.FollowFailed(s.peers) }

// Signal names one signal of the set. It panics if i is out of range.
func (s *Signals) Signal(i int) Signal {
	if i < 0 || i >= s.n {
		// bug: an index out of range, as with a slice
		panic(fmt.Sprintf("pgsync: signal %d of %d", i, s.n))
	}
	return Signal{s, i * signalBytes}
}

// Free gives the signals back; this rank can still Load what its words were. Collective.
func (s *Signals) Free(ctx context.Context) error { return s.free(ctx) }

// Signal is one 64-bit word on every member. It is a small value; copy it freely.
type Signal struct {
	s   *Signals
	off int
}

// Set makes the target's word v, after all earlier puts of this rank to that rank. It does not wait. Where one of those is known to have failed, and no flush has told of it,
// this does, and the word stays. Where one fails while the signal is under way the word stays, too, and the next flush tells: who waits for the signal does so until this rank sets it
// again, or ends.
func (g Signal) Set(target int, v uint64) error {
	r, err := g.at("signal", target)
	if err != nil {
		return err
	}
	if err := g.s.t.e.Gone("signal", r.Rank); err != nil {
		return err
	}
	g.s.race.Release(target, g.off/signalBytes, racecheck.CarryAll)
	return g.s.t.e.Store64(r, g.off, v)
}

// Add adds v to the target's word atomically, after all earlier puts of this rank to that rank. A word to which
// some rank adds must not be Set at the same time. A put that has failed, or does so meanwhile, ends it as it ends Set; but it waits for its end, and returns an error.
func (g Signal) Add(target int, v uint64) error {
	r, err := g.at("signal", target)
	if err != nil {
		return err
	}
	if err := g.s.t.e.Gone("signal", r.Rank); err != nil {
		return err
	}
	g.s.race.Release(target, g.off/signalBytes, racecheck.CarryAll)
	return g.s.t.e.SignalAdd(r, g.off, v)
}

// Check returns the error that Set would return before anything moves: the signals were freed, or there is no such target; or that the target is not rank, by the
// world's number: the signals are another team's. It is for the layers above.
func (g Signal) Check(target, rank int) error {
	const op = "signal"
	r, err := g.at(op, target)
	if err == nil && r.Rank != rank {
		err = transport.NewOpError(op, rank, fmt.Errorf("%w: the signal's member %d is rank %d, not %d: it is of another team", ErrMember, target, r.Rank, rank))
	}
	return err
}

func (g Signal) at(op string, target int) (*proto.Remote, error) {
	if g.s == nil {
		return nil, refused(op, nil, target, true)
	}
	gone := g.s.gone.Load()
	if gone || uint(target) >= uint(len(g.s.peers)) {
		return nil, refused(op, g.s.peers, target, gone)
	}
	return &g.s.peers[target], nil
}

// refused is why there is no such target: what peers have was freed, or the team has no such member. It names the member's rank in the world, or what the program has said.
func refused(op string, peers []proto.Remote, target int, freed bool) error {
	named := target
	if uint(target) < uint(len(peers)) {
		named = peers[target].Rank
	}
	if freed {
		return transport.NewOpError(op, named, transport.ErrClosed)
	}
	return transport.NewOpError(op, named, fmt.Errorf("%w: target %d of a team of %d", ErrMember, target, len(peers)))
}

// Load returns this rank's word.
func (g Signal) Load() uint64 {
	v := g.word().Load()
	g.seen()
	return v
}

// seen tells those that look for races that this rank comes after who has set its word.
func (g Signal) seen() {
	g.s.t.e.Sched.Seen()
	if !g.s.gone.Load() {
		g.s.race.Acquire(g.s.t.me, g.off/signalBytes)
	}
}

// Store sets this rank's own word, to use the signal again.
func (g Signal) Store(v uint64) { g.word().Store(v) }

// word is this rank's word, or what is left of it.
func (g Signal) word() *atomic.Uint64 {
	if g.s.gone.Load() {
		return g.s.kept.Word64(g.off)
	}
	return g.s.local.Word64(g.off)
}

// WaitUntil returns this rank's word when it compares to v as asked. What was put before the signal was set is
// visible then. It fails when a member of the team is gone, since any member might be the one to set it, and when another goroutine frees
// the signals.
func (g Signal) WaitUntil(ctx context.Context, c Cmp, v uint64) (uint64, error) {
	const op = "wait-until"
	if _, err := g.at(op, 0); err != nil {
		return 0, err
	}
	word, t := g.s.local.Word64(g.off), g.s.t
	if have := g.word().Load(); c.holds(have, v) {
		g.seen()
		return have, nil
	}
	sp := t.e.Sched.Begin(ctx, sched.What{Op: op, Peer: sched.Anyone}, t)
	defer sp.End()
	for !g.s.gone.Load() {
		have := word.Load()
		if g.s.gone.Load() {
			break // what the look saw may be others' by now
		}
		if c.holds(have, v) {
			g.seen()
			t.e.NoteWait(&sp, &g.s.peers[t.me])
			return have, nil
		}
		if err := sp.Step(); err != nil {
			return 0, t.waitError(op, -1, err)
		}
	}
	return 0, transport.NewOpError(op, -1, transport.ErrClosed)
}
