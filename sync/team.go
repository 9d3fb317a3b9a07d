package pgsync

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/internal/proto"
	"gopgas/internal/racecheck"
	"gopgas/internal/sched"
	"gopgas/internal/symheap"
	"gopgas/transport"
)

// The control block of a team, in bytes per member: flags of the barrier's rounds, one cache line each, then
// the two outboxes.
const (
	maxRounds    = 32
	flagStride   = 64
	outboxOff    = maxRounds * flagStride
	outboxBytes  = 32 << 10 // or more: see boxBytes
	outboxHeader = 64       // the call that the member is in
	payloadBytes = outboxBytes - outboxHeader
)

// boxBytes is the size of an outbox in a team of n.
func boxBytes(n int) int { return max(outboxBytes, outboxHeader+leastSlot*n) }

// boxPayload is what an outbox holds beside its header.
func boxPayload(n int) int { return boxBytes(n) - outboxHeader }

// controlBytes is the size of the control block in a team of n.
func controlBytes(n int) int { return outboxOff + 2*boxBytes(n) }

// boardOff is where the clocks of a race check follow.
func boardOff(n int) int { return (controlBytes(n) + 7) &^ 7 }

// Sentinels; match with errors.Is.
var (
	// ErrAbandoned: an earlier collective of this team ended early on this rank.
	ErrAbandoned = errors.New("an earlier collective of this team was abandoned")
	// ErrMember: a rank that is not a member of the team.
	ErrMember = errors.New("no such member")
	// ErrMismatch: members called a collective with different arguments.
	ErrMismatch = errors.New("members disagree")
	// ErrState: a call that the object's state does not allow, such as the release of a lock not held.
	ErrState = errors.New("not allowed now")
)

// Team is an ordered set of ranks. World.Team is the team of all; Split makes others.
type Team struct {
	e     *proto.Engine
	ranks []int // the members' ranks in the world
	me    int
	heap  *symheap.Heap
	peers []proto.Remote // the control blocks, by member
	local mem.Range      // this member's

	busy    atomic.Bool // a goroutine of this rank is in a collective
	gen     uint64      // barriers begun
	sum     uint64      // over the purposes of all barriers up to gen
	pending bool        // barrier gen was left before its end
	round   uint64      // rounds of outboxes so far
	broken  error       // why collectives no longer work
	freed   atomic.Bool

	races *racecheck.Checker // nil: they are not looked for
	board *racecheck.Board
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
	block, err := heap.Alloc(ctx, proto.RankBlockBytes(e.Size))
	if err != nil {
		return nil, err
	}
	t, err := newTeam(ctx, e, heap, ranks, e.Rank, check)
	if err != nil {
		return nil, err
	}
	e.Join(block.Local(), block.Remotes())
	return t, check.Join(ctx, heap)
}

// newTeam allocates the control block from heap, which has an exchange of its own until the team can serve.
func newTeam(ctx context.Context, e *proto.Engine, heap *symheap.Heap, ranks []int, me int, check *racecheck.Checker) (*Team, error) {
	control, err := heap.Alloc(ctx, boardOff(len(ranks))+check.BoardBytes())
	if err != nil {
		return nil, err
	}
	t := &Team{e: e, ranks: ranks, me: me, heap: heap, peers: control.Remotes(), local: control.Local(), races: check}
	t.board = check.Board(t.peers, t.local, boardOff(len(ranks)))
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

// Interrupted implements sched.Watch: a team's wait ends when a member is gone, or this rank's NIC.
func (t *Team) Interrupted() error {
	if _, err := t.e.Peers.CheckAny(t.ranks); err != nil {
		return err
	}
	return t.e.Alive()
}

// waitError is the error of a wait for rank that ended early; where a member is gone it names that one.
func (t *Team) waitError(op string, rank int, err error) error {
	if errors.Is(err, transport.ErrPeerGone) {
		if gone, _ := t.e.Peers.CheckAny(t.ranks); gone >= 0 {
			rank = gone
		}
	}
	return transport.NewOpError(op, rank, err)
}

// enter keeps other goroutines of this rank out of the team's collectives until leave.
func (t *Team) enter(ctx context.Context, op string) error {
	if t.freed.Load() {
		return fmt.Errorf("%s: team: %w", op, transport.ErrClosed)
	}
	if t.busy.CompareAndSwap(false, true) {
		return nil
	}
	sp := t.e.Sched.Begin(ctx, sched.What{Op: op, Peer: -1}, nil)
	defer sp.End()
	for !t.busy.CompareAndSwap(false, true) {
		if err := sp.Step(); err != nil {
			return transport.NewOpError(op, -1, err)
		}
	}
	return nil
}

func (t *Team) leave() { t.busy.Store(false) }

// Split divides the team by color: members that give the same color form a new team, ordered by key and then
// by rank. A negative color joins none and gets nil. Collective over t.
func (t *Team) Split(ctx context.Context, color, key int) (*Team, error) {
	var mine [16]byte
	binary.LittleEndian.PutUint64(mine[:], uint64(color))
	binary.LittleEndian.PutUint64(mine[8:], uint64(key))
	cards, err := t.Exchange(ctx, mine[:])
	if err != nil {
		return nil, err
	}
	type entry struct{ key, member int }
	var same []entry
	for m, c := range cards {
		if len(c) != 16 {
			return nil, fmt.Errorf("split: member %d: %w", m, ErrMismatch)
		}
		if int(int64(binary.LittleEndian.Uint64(c))) == color {
			same = append(same, entry{int(int64(binary.LittleEndian.Uint64(c[8:]))), m})
		}
	}
	if color < 0 {
		same = nil
	}
	slices.SortFunc(same, func(a, b entry) int {
		if a.key != b.key {
			if a.key < b.key {
				return -1
			}
			return 1
		}
		return a.member - b.member
	})
	members := make([]int, len(same))
	ranks := make([]int, len(same))
	me := 0
	for i, s := range same {
		members[i], ranks[i] = s.member, t.ranks[s.member]
		if s.member == t.me {
			me = i
		}
	}
	// All members of t take part in the two exchanges of an allocation, whatever team they land in.
	x := &subset{t, members}
	if color < 0 {
		for range 2 {
			if _, err := x.Exchange(ctx, nil); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	return newTeam(ctx, t.e, symheap.New(t.e, x, ranks, me), ranks, me, t.races)
}

// SplitNode returns the team of t's members on this rank's node, in t's order. Collective over t.
func (t *Team) SplitNode(ctx context.Context) (*Team, error) {
	return t.Split(ctx, t.e.Nodes[t.e.Rank], t.me)
}

// subset is the exchange of a part of a team while the new team has none of its own.
type subset struct {
	t       *Team
	members []int
}

// Exchange implements proto.Exchanger.
func (s *subset) Exchange(ctx context.Context, card []byte) ([][]byte, error) {
	all, err := s.t.Exchange(ctx, card)
	if err != nil {
		return nil, err
	}
	out := make([][]byte, len(s.members))
	for i, m := range s.members {
		out[i] = all[m]
	}
	return out, nil
}

// Free gives the team's memory back. Collective; the team cannot be used afterwards.
func (t *Team) Free(ctx context.Context) error {
	if err := t.Barrier(ctx); err != nil {
		return err
	}
	if t.board != nil {
		t.board = nil // the others may still be reading it
		if err := t.Barrier(ctx); err != nil {
			return err
		}
	}
	if t.freed.Swap(true) {
		return nil
	}
	return t.heap.Close()
}

// FirstChunk is the size of a heap's first chunk, in bytes per member.
const FirstChunk = symheap.FirstChunk

// Footprint returns the bytes that a world of size ranks takes on each rank before anything is allocated, and how
// many of them come with each further rank.
func Footprint(size int) (perRank, perPeer int) {
	return proto.RankBlockBytes(size) + controlBytes(size), proto.RankBlockBytes(1) - proto.RankBlockBytes(0) + mem.SizeOf[proto.Remote]()
}
