package pgsync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"gopgas/internal/agree"
	"gopgas/internal/lock"
	"gopgas/internal/mem"
	"gopgas/internal/peers"
	"gopgas/internal/proto"
	"gopgas/internal/racecheck"
	"gopgas/internal/sched"
	"gopgas/internal/shape"
	"gopgas/internal/symheap"
	"gopgas/transport"
)

// Sentinels; match with errors.Is.
var (
	// ErrAbandoned: a member left a collective of this team before its end, this rank or the one that the error names: its context
	// ended, or something failed there. The team's collectives are of no more use, those that others are in end with this error, too;
	// what needs no collective still works, and Team.Survivors makes a team of the same members if they all live.
	ErrAbandoned = errors.New("an earlier collective of this team was abandoned; puts, gets, atomics, locks and signals still work, and " +
		"Team.Survivors, called by all members, makes a team whose collectives do")
	// ErrMember: a rank that is not a member of the team.
	ErrMember = errors.New("no such member")
	// ErrMismatch: members called a collective with different arguments.
	ErrMismatch = errors.New("members disagree")
	// ErrState: a call that the object's state does not allow, such as the release of a lock not held.
	ErrState = lock.ErrState
)

// Team is an ordered set of ranks. World.Team is the team of all; Split, Sub, Strided and Survivors make others. A team that
// a started call is given is a view of the one that Start was called on.
type Team struct {
	e      *proto.Engine
	ranks  []int // the members' ranks in the world
	all    []int // the members: 0, 1, …
	me     int
	shape  shape.Shape
	heap   *symheap.Heap
	peers  []proto.Remote // the control blocks, by member
	local  mem.Range      // this member's
	mapped bool           // all members map each other's: the same on all; false in a view, whose calls keep to their lane
	alike  bool           // they do, or none does, and all are as far from each other: likewise
	slips  bool           // a few bytes go along with flags: the same on all, see file slip.go
	pushes bool           // and more are pushed: likewise, see file push.go
	apart  bool           // none maps another's, and all are as far from each other: likewise, and in views
	maps   bool           // mapped, in views too
	core   *core
	races  *racecheck.Checker // nil: they are not looked for

	lane *lane       // of a view: what its calls go on
	call uint64      // of a view: the number of the started call
	over atomic.Bool // of a view: that call has ended, and the lane is others'

	busy    atomic.Uint32 // 1: a goroutine of this rank is in a collective
	cur     turns         // that call; the fields here and below are whose goroutine made busy true
	room    room
	slip    slip
	freight freight
	offers  offers
	debts   debts
	trip    []uint64    // where reads of others' outboxes land
	word    [1]uint64   // likewise
	pending bool        // cur is a barrier that was left before its end
	behind  behind      // of that
	unbegun []unbegun   // barriers that were left behind it
	taken   *Team       // the last that a started call has gone on with of those that give memory back; nil: they have
	visit   proto.Visit // the collective that this rank is in, for those who look on
}

// NewWorld returns the team of all ranks: its control block and the ranks' doorbells are set up over x, the
// launcher's exchange. check may be nil: races are not looked for. It is for the composition root; programs get their
// team from the world.
func NewWorld(ctx context.Context, e *proto.Engine, x proto.Exchanger, check *racecheck.Checker) (*Team, error) {
	ranks := make([]int, e.Size)
	for r := range ranks {
		ranks[r] = r
	}
	heap := symheap.New(e, x, ranks, e.Rank)
	block, err := heap.Alloc(ctx, peers.BlockBytes(e.Size))
	if err != nil {
		return nil, err
	}
	t, err := newTeam(ctx, e, heap, ranks, e.Rank, new(running), check)
	if err != nil {
		return nil, err
	}
	t.core.running.world = t
	e.Join(block.Local(), block.Remotes())
	return t, check.Join(ctx, heap)
}

// newTeam allocates the control block from heap, which has an exchange of its own until the team can serve.
func newTeam(ctx context.Context, e *proto.Engine, heap *symheap.Heap, ranks []int, me int, all *running, check *racecheck.Checker) (*Team, error) {
	control, err := heap.Alloc(ctx, controlBytes(len(ranks))+laneCount*check.BoardBytes())
	if err != nil {
		return nil, err
	}
	t := &Team{
		e: e, ranks: ranks, me: me, heap: heap, peers: control.Remotes(), local: control.Local(), mapped: control.CPU(),
		core: &core{running: all}, races: check,
	}
	t.core.table = agree.Table{
		Engine: e, Ranks: ranks, Me: me, Peers: t.peers, Local: t.local, Words: agreeWords, Set: setOff(len(ranks)), Quit: all.quit.Load,
	}
	for i := range t.core.lanes {
		t.core.lanes[i].number = i
		t.core.lanes[i].board = check.Board(t.peers, t.local, controlBytes(len(ranks))+i*check.BoardBytes())
	}
	t.all = make([]int, len(ranks))
	node := make([]int, len(ranks))
	for m, r := range ranks {
		t.all[m], node[m] = m, e.Nodes[r]
	}
	t.shape = shape.Of(node, me, e.Mapper() != nil)
	t.alike = t.mapped || len(t.shape.Phases) == 1 && !t.shape.Phases[0].Near
	t.slips = slippery(&t.shape, t.alike) && (t.mapped || e.Prompt())
	t.pushes = t.slips && !t.mapped
	t.apart, t.maps = t.alike && !t.mapped, t.mapped
	heap.SetExchanger(t)
	return t, nil
}

// Rank returns this rank's number in the team.
func (t *Team) Rank() int { return t.me }

// Size returns the number of members.
func (t *Team) Size() int { return len(t.ranks) }

// WorldRank returns the world's number for a member.
func (t *Team) WorldRank(member int) int { return t.ranks[member] }

// Member returns the team's number for a rank of the world; ok is false if it is not a member.
func (t *Team) Member(worldRank int) (member int, ok bool) {
	member = slices.Index(t.ranks, worldRank)
	return member, member >= 0
}

// Engine and Heap are for the layers above that share the team's memory.
func (t *Team) Engine() *proto.Engine { return t.e }

// RaceCheck returns the check for races, nil if there is none. It is for the layers above, too.
func (t *Team) RaceCheck() *racecheck.Checker { return t.races }

// Heap returns the team's symmetric heap.
func (t *Team) Heap() *symheap.Heap { return t.heap }

// Mark numbers what the members make together, from 1 on: windows, by which Meet tells them apart. All members call it in the
// same order. It is for the layers above.
func (t *Team) Mark() int { return t.core.mark() }

// errLeft: the world of the team was closed.
var errLeft = fmt.Errorf("this rank has left the world: %w", transport.ErrClosed)

// Interrupted implements sched.Watch: a team's wait ends when members disagree, when one is gone, or this rank's NIC.
func (t *Team) Interrupted() error {
	if err := t.poisoned(); err != nil {
		return err
	}
	if t.core.running.quit.Load() {
		return errLeft
	}
	if _, err := t.e.Peers.CheckAny(t.ranks); err != nil {
		return err
	}
	return t.e.Alive()
}

// waitError is the error of a wait for rank that ended early; where a member is gone it names that one.
func (t *Team) waitError(op string, rank int, err error) error {
	var gone *peers.Gone
	switch {
	case errors.As(err, &gone):
		rank = gone.Rank
	case errors.Is(err, transport.ErrPeerGone): // as the NIC has found
		if first, _ := t.e.Peers.CheckAny(t.ranks); first >= 0 {
			rank = first
		}
	}
	return transport.NewOpError(op, rank, err)
}

// enter keeps other goroutines of this rank out of the team's collectives until leave.
func (t *Team) enter(ctx context.Context, op string) error {
	if t.core.freed.Load() {
		return fmt.Errorf("%s: team: %w", op, transport.ErrClosed)
	}
	if t.core.running.quit.Load() {
		return transport.NewOpError(op, -1, errLeft)
	}
	if t.over.Load() {
		return transport.NewOpError(op, -1, fmt.Errorf("%w: the started call whose team this was has ended; use the team that Start was called on", ErrState))
	}
	if !t.busy.CompareAndSwap(0, 1) {
		sp := t.e.Sched.Begin(ctx, sched.What{Op: op, Peer: -1}, nil)
		defer sp.End()
		for !t.busy.CompareAndSwap(0, 1) {
			if err := sp.Step(); err != nil {
				return transport.NewOpError(op, -1, err)
			}
		}
	}
	t.e.Enter(ctx, op, &t.visit)
	return nil
}

// ended is the error of a lone member's call whose context has ended: he waits for nobody, and it is waits that find out. What gives memory back
// goes on all the same: it is what is left to do then, and needs nobody either. Callers of enter ask before it, where it costs those that are
// not alone a comparison and no more.
func ended(ctx context.Context, op string) error {
	err := sched.Ended(ctx)
	if err == nil || op == "free" {
		return nil
	}
	return transport.NewOpError(op, -1, err)
}

func (t *Team) leave() {
	t.e.Leave(&t.visit)
	mem.Publish32(&t.busy, 0)
}
