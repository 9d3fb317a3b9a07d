package pgsync

import (
	"fmt"
	"sync"
	"sync/atomic"

	"gopgas/internal/agree"
	"gopgas/internal/mem"
	"gopgas/internal/peers"
	"gopgas/internal/proto"
	"gopgas/internal/racecheck"
	"gopgas/internal/shape"
)

// The control block of a team, in bytes on each member: words for trouble, the flags of all lanes, two outboxes for each
// lane, and what members need that have lost others (package agree).
const (
	poisonWord  = 0   // not 0: members disagree, and who found that; see poison
	abandonWord = 8   // not 0: a member has left a collective before its end, and which; see spoil
	unmadeWord  = 16  // and behind it, for each lane: which making of a team a member has left, and which member; see origin
	agreeWords  = 64  // agree.WordsBytes
	closingWord = 96  // of the world's team: not 0: this member closes its world
	headBytes   = 256 // behind them the flags

	laneCount  = 4  // collectives of one team that can go on at once
	maxRounds  = 20 // of a phase: a million members
	flagStride = 64 // a cache line for each flag
	flagBytes  = int(shape.Areas) * maxRounds * flagStride

	boxesOff     = headBytes + laneCount*flagBytes
	outboxBytes  = 16 << 10 // or more: see boxBytes
	outboxHeader = 64       // the call that the member is in
)

// boxBytes is the size of an outbox in a team of n.
func boxBytes(n int) int { return max(outboxBytes, (outboxHeader+leastSlot*n+63)&^63) }

// boxPayload is what an outbox holds beside its header.
func boxPayload(n int) int { return boxBytes(n) - outboxHeader }

// boxOff is where outbox number i of a lane lies.
func boxOff(n, lane, i int) int { return boxesOff + (2*lane+i)*boxBytes(n) }

// newsOff is where the words for survivors begin: one for each member, and behind them a set of members.
func newsOff(n int) int { return boxOff(n, laneCount, 0) }

// setOff is where the agreed set of members lies, of agree.SetBytes.
func setOff(n int) int { return newsOff(n) + 8*n }

// controlBytes is the size of the control block in a team of n.
func controlBytes(n int) int { return setOff(n) + agree.SetBytes(n) }

// lane is a set of flags and outboxes on every member, in which one call's rounds take place at a time. Only who has
// been served may use it.
type lane struct {
	number  int
	gen     uint64           // barriers begun
	sum     uint64           // over the purposes of all barriers up to gen
	before  uint64           // the same without the last one
	round   uint64           // rounds of outboxes so far
	serving atomic.Uint64    // tickets that are done with the lane
	kept    atomic.Uint32    // 1: a call that has gone ahead keeps it
	board   *racecheck.Board // nil: races are not looked for
}

// core is what a team shares with the views of it that started calls work on.
type core struct {
	lanes   [laneCount]lane
	running *running
	freed   atomic.Bool
	origin  atomic.Pointer[origin] // nil: all members have this team
	broken  atomic.Pointer[error]  // why collectives no longer work; nil: they do
	table   agree.Table            // of survivors, whose goroutine has made Team.busy true

	surviving surviving // likewise

	calls atomic.Uint64 // begun

	mu      sync.Mutex // guards the fields below; never held while waiting
	started int        // calls begun by Start that have not ended
	marks   int        // given out by Mark
}

// running is shared by all teams of a world.
type running struct {
	world   *Team        // that of all ranks
	started atomic.Int64 // calls begun by Start that have not ended
	quit    atomic.Bool  // the world ends without the others
	owed    atomic.Int32 // attempts at a team of survivors that were left in their second agreement: the others may count on this rank

	mu      sync.Mutex   // guards the field below
	without map[int]bool // ranks that a team of survivors has left out
}

// next numbers a call and gives it its place in the queue of its lane: calls take the lanes in turn, so that all
// members use the same lane for the same call.
func (c *core) next() (call uint64, l *lane, ticket uint64) {
	call = c.calls.Add(1)
	return call, &c.lanes[call%laneCount], (call - 1) / laneCount
}

// mark gives out the next number.
func (c *core) mark() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.marks++
	return c.marks
}

// free notes that the team is freed, and returns whether it was.
func (c *core) free() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.freed.Swap(true)
}

// fail makes the team unusable for collectives because of err, the first time.
func (c *core) fail(err error) { c.broken.CompareAndSwap(nil, &err) }

// failure returns why collectives do not work any more, or nil.
func (c *core) failure() error {
	if why := c.broken.Load(); why != nil {
		return *why
	}
	return nil
}

// abandonment returns failure as calls report it. Where there is none it is but a load.
func (c *core) abandonment() error {
	if c.broken.Load() == nil {
		return nil
	}
	return c.abandonedFor()
}

func (c *core) abandonedFor() error { return fmt.Errorf("%w: %w", ErrAbandoned, c.failure()) }

// Footprint returns the bytes that a world of size ranks takes on each rank before anything is allocated, how
// many of them come with each further rank, and those that a team whose members all map each other takes on each from its first long call on.
func Footprint(size int) (perRank, perPeer, long int) {
	perPeer = peers.BlockBytes(1) - peers.BlockBytes(0) + mem.SizeOf[proto.Remote]() + 8
	return peers.BlockBytes(size) + controlBytes(size), perPeer, 2 * roomBytes
}
