package racecheck

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
	"gopgas/internal/proto"
	"gopgas/internal/symheap"
	"gopgas/internal/touch"
	"gopgas/transport"
)

// errGone ends the check: the shelf that is waited for may have been locked by the rank that is gone.
var errGone = errors.New("a rank is gone")

// Checker is the race check of one rank: its clock, and what it has found. All methods may be called by any goroutine,
// and those of a nil Checker do nothing.
type Checker struct {
	e    *proto.Engine
	n    int
	say  func(text string)
	off  atomic.Bool // nothing is checked any more
	gave atomic.Bool // this rank has ended it
	root []proto.Remote
	over *atomic.Uint64 // not 0: some rank has ended it
	seer *touch.Watch   // nil: undeclared accesses of this rank to its own memory are not seen
	seen sync.Mutex     // held while they are entered; this rank waits for it in steps (lockSeen)

	mu      sync.Mutex // guards what follows; it is not held while this rank waits
	time    *state
	sites   sites
	windows []*Window
	waits   []*Transfer
	told    [notes]bool
	known   map[string]bool // the races that this rank has seen reported
	stats   Stats
}

// Stats counts what a rank has checked.
type Stats struct {
	Accesses int // one-sided and declared ones of this rank
	Elements int // of those accesses
	Races    int // that this rank reported
	Lost     int // accesses that were forgotten: there was no room for them
	Seen     int // of Accesses, those of the program to memory of its own that it has not declared
}

// New returns the check of the engine's rank. say is given each report, a line without its end, by any goroutine.
func New(e *proto.Engine, say func(text string)) (*Checker, error) {
	if e.Size > MaxRanks {
		return nil, fmt.Errorf("%w: a race check of %d ranks; at most %d can be checked: run with fewer", transport.ErrUnsupported, e.Size, MaxRanks)
	}
	c := &Checker{e: e, n: e.Size, say: say, time: newState(e.Size, e.Rank), known: make(map[string]bool)}
	c.sites.ids = make(map[caller]Site)
	c.sites.known = make(map[string]Site)
	return c, nil
}

// Join gives the check the memory that all ranks share: the texts of call sites, and on rank 0 the list of the races that
// were found. Collective over the world, whose heap it is; a barrier follows. Of a nil Checker it does nothing.
func (c *Checker) Join(ctx context.Context, heap *symheap.Heap) error {
	if c == nil {
		return nil
	}
	block, err := heap.Alloc(ctx, worldBytes)
	if err != nil {
		return fmt.Errorf("memory for the race check: %w", err)
	}
	c.use(block.Remotes(), block.Local())
	return nil
}

func (c *Checker) use(root []proto.Remote, local mem.Range) {
	c.root, c.over = root, local.Word64(overAt)
	c.sites.table = local.Slice(sitesAt, siteSlots*siteSlotBytes)
}

// The memory that Join takes of each rank, in bytes.
const (
	foundAt    = 0 // on rank 0: how many races were found
	keysAt     = 8 // on rank 0: the keys of those that were reported
	keySlots   = 1023
	overAt     = keysAt + keySlots*8 // whether a rank has ended the check
	sitesAt    = overAt + 8
	worldBytes = sitesAt + siteSlots*siteSlotBytes
)

// End ends the check: nothing is looked at any more. Memory that was handed out stays.
func (c *Checker) End() error {
	if c == nil {
		return nil
	}
	c.off.Store(true)
	if c.seer == nil {
		return nil
	}
	return c.seer.Close()
}

// Free takes what Watched has returned away, after End. The program must not use it any more.
func (c *Checker) Free() error {
	if c == nil || c.seer == nil {
		return nil
	}
	return c.seer.Free()
}

// give ends the check because of an error of its own transfers. The program's operations go on, and will meet it too. It ends on all ranks: whose
// checks went on would miss the clocks that this one handed on no longer, and take what is in order for races. So they are told before it goes on.
func (c *Checker) give(err error) {
	if c.gave.Swap(true) || c.ended() {
		return
	}
	for r := range c.root {
		if c.e.Peers.Check(r) == nil {
			_, _ = c.e.Atomic(atom.Replace, atom.Word64(), &c.root[r], overAt, 1, 0) // one that cannot be reached is about to be gone
		}
	}
	c.off.Store(true)
	c.say(fmt.Sprintf("race check: rank %d can check no further, so no rank does: %v", c.e.Rank, err))
}

// ended reports whether the check has ended, by whichever rank.
func (c *Checker) ended() bool {
	if !c.off.Load() && c.over != nil && c.over.Load() != 0 {
		c.off.Store(true)
	}
	return c.off.Load()
}

// Stats returns what was counted so far.
func (c *Checker) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Found returns how many races all ranks have found.
func (c *Checker) Found() (int, error) {
	n, err := c.e.Load64(&c.root[0], foundAt)
	return int(n), err
}

// Flushed says that this rank's puts to a rank are done there. Called before the flush, whose return it stands for, or behind one that may
// end before.
func (c *Checker) Flushed(rank int) {
	if c != nil {
		c.flushed(rank)
	}
}

func (c *Checker) flushed(rank int) {
	c.enterSeen()
	c.mu.Lock()
	c.time.flushed(rank, c.time.cut(rank))
	ended := c.takeWaits(func(t *Transfer) bool { return t.flushedAt(rank) })
	c.mu.Unlock()
	c.settle(ended, "flush")
}

// FlushBegun says that this rank begins to flush a rank, and returns what says that the program knows of the end: of what was begun before,
// and of nothing that it has begun since.
func (c *Checker) FlushBegun(rank int) (ended func()) {
	if c == nil {
		return func() {}
	}
	c.enterSeen()
	c.mu.Lock()
	defer c.mu.Unlock()
	epoch := c.time.cut(rank)
	begun := slices.DeleteFunc(slices.Clone(c.waits), func(t *Transfer) bool { return !t.flushedAt(rank) })
	return func() { c.flushEnded(rank, epoch, begun) }
}

func (c *Checker) flushEnded(rank int, epoch uint32, begun []*Transfer) {
	c.enterSeen()
	c.mu.Lock()
	c.time.flushed(rank, epoch)
	ended := c.takeWaits(func(t *Transfer) bool { return slices.Contains(begun, t) })
	c.mu.Unlock()
	c.settle(ended, "wait")
}

// FlushedAll is Flushed for the ranks of members.
func (c *Checker) FlushedAll(members []proto.Remote) {
	if c == nil {
		return
	}
	for m := range members {
		c.flushed(members[m].Rank)
	}
}

// FlushedLocal says that this rank's memory is free of transfers with a rank.
func (c *Checker) FlushedLocal(rank int) {
	if c != nil {
		c.flushedLocal(rank)
	}
}

func (c *Checker) flushedLocal(rank int) {
	c.enterSeen()
	c.mu.Lock()
	ended := c.takeWaits(func(w *Transfer) bool { return w.rank == rank })
	c.mu.Unlock()
	c.settle(ended, "flush-local")
}

// Ordered says that this rank's earlier puts to a rank come before its later ones.
func (c *Checker) Ordered(rank int) {
	if c != nil {
		c.order(rank)
	}
}

func (c *Checker) order(rank int) {
	c.enterSeen()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.time.order(rank)
}

// text is a fixed-size text in exposed memory: its length in the first byte.
func text(b []byte) string { return string(b[1 : 1+min(int(b[0]), len(b)-1)]) }

// siteOf returns the text of a call site of a rank.
func (c *Checker) siteOf(rank int, s Site) string {
	slot := make([]byte, siteSlotBytes)
	r := &c.root[rank]
	off := sitesAt + int(s)*siteSlotBytes
	if rank == c.e.Rank {
		c.mu.Lock()
		copy(slot, c.sites.table.Slice(off-sitesAt, siteSlotBytes).Data())
		c.mu.Unlock()
	} else if err := c.e.Get(r, off, mem.Of(slot)); err != nil {
		c.give(err)
		return "?"
	}
	return text(slot)
}
