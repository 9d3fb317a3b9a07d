package peers

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// Table is what this rank knows of the others' lives. The words lie in its rank block, where the ranks that
// notice a death write them. Any goroutine may ask it at any time, without waiting.
type Table struct {
	block  atomic.Pointer[mem.Range]
	first  atomic.Pointer[atomic.Uint64] // the word of block that says who was lost first: all that is asked as long as nobody is
	watch  []watch
	shared sync.RWMutex             // held by who reads the others' blocks at any time, and by Join and Part
	mapped func(rank int) mem.Range // the rank blocks, empty where they are not mapped; set by Join
	bells  []sched.Bell             // of the ranks whose block is mapped; zero elsewhere
	story  []atomic.Pointer[string] // what a launcher told of a rank's end, in better words than a Cause has
}

// New returns a table of size ranks, all alive.
func New(size int) *Table {
	p := &Table{watch: make([]watch, size), bells: make([]sched.Bell, size), story: make([]atomic.Pointer[string], size)}
	for r := range p.watch {
		p.watch[r] = watch{p, r}
	}
	p.use(mem.Of(make([]uint64, BlockBytes(size)/8)))
	return p
}

// Join moves the table into this rank's block in shared memory, and makes its waits sleep on the block's bell. mapped
// returns the rank blocks by rank; an empty one is not mapped.
func (p *Table) Join(s *sched.Sched, local mem.Range, mapped func(rank int) mem.Range) {
	p.shared.Lock()
	defer p.shared.Unlock()
	p.mapped = mapped
	for r := range p.bells {
		if m := mapped(r); m.Bytes != 0 {
			p.bells[r] = bellOf(s, m)
		}
	}
	old := *p.block.Load()
	p.use(local)
	for r := range p.bells {
		if c := old.Word64(GoneOff(r)).Load(); c != 0 {
			p.mark(local, r, Cause(c))
		}
	}
	s.SetBell(bellOf(s, local))
}

// use makes block the table's memory.
func (p *Table) use(block mem.Range) {
	p.block.Store(&block)
	p.first.Store(block.Word64(FirstOff))
}

// Announce tells that this rank is up.
func (p *Table) Announce() { p.block.Load().Word64(blockState).Store(uint64(Up)) }

func bellOf(s *sched.Sched, block mem.Range) sched.Bell {
	return s.NewBell(block.Word32(blockBell), block.Word32(blockBell+4))
}

// Leave announces that this rank needs nobody any more.
func (p *Table) Leave() { p.block.Load().Word64(blockState).Store(uint64(Left)) }

// Part moves the table out of shared memory, which is about to be unmapped. Nobody else uses the table meanwhile, but for Ended and StateOf.
func (p *Table) Part() {
	p.shared.Lock()
	defer p.shared.Unlock()
	block := mem.Of(make([]uint64, BlockBytes(len(p.watch))/8))
	old := p.block.Load()
	for off := 0; off < block.Bytes; off += 8 { // word by word: a peer whose NIC still works may be telling news
		block.Word64(off).Store(old.Word64(off).Load())
	}
	p.use(block)
	p.mapped = nil
	clear(p.bells)
}

// StateOf reads the state of a rank whose block is mapped; ok is false for others, and for all after Part.
func (p *Table) StateOf(rank int) (s State, ok bool) {
	p.shared.RLock()
	defer p.shared.RUnlock()
	return p.stateOf(rank)
}

// Ended reports whether rank is gone, or is known to have left. A NIC that still makes connections asks while the world closes, too.
func (p *Table) Ended(rank int) bool {
	p.shared.RLock()
	defer p.shared.RUnlock()
	s, ok := p.stateOf(rank)
	return ok && s == Left || p.Check(rank) != nil
}

func (p *Table) stateOf(rank int) (s State, ok bool) {
	if p.mapped == nil || rank >= len(p.bells) {
		return 0, false
	}
	m := p.mapped(rank)
	if m.Bytes == 0 {
		return 0, false
	}
	return State(m.Word64(blockState).Load()), true
}

func (p *Table) mark(block mem.Range, rank int, c Cause) bool {
	news := block.Word64(GoneOff(rank)).CompareAndSwap(0, uint64(c))
	// Always, after the word: whoever set the word before may have died between the two.
	block.Word64(FirstOff).CompareAndSwap(0, uint64(rank)+1)
	return news
}

// MarkGone records that rank is gone, tells all ranks whose block is mapped, and ends their waits for it. It
// reports whether that was news to this rank.
func (p *Table) MarkGone(rank int, c Cause) bool {
	own := *p.block.Load()
	news := p.mark(own, rank, c)
	// Who is lost because of another one's end must not be known before that one, so the older news goes along.
	first := int(own.Word64(FirstOff).Load()) - 1
	if p.mapped == nil {
		return news
	}
	for r := range p.bells {
		if m := p.mapped(r); m.Bytes != 0 {
			if c := p.Cause(first); first != rank && c != 0 {
				p.mark(m, first, c)
			}
			p.mark(m, rank, c)
			p.bells[r].Ring()
		}
	}
	return news
}

// Tell is MarkGone with the words of somebody who knows more: "exited with 3".
func (p *Table) Tell(rank int, story string) bool {
	p.story[rank].Store(&story)
	return p.MarkGone(rank, Vanished)
}

// AnyGone reports whether some rank is known to be gone.
func (p *Table) AnyGone() bool { return p.First() != 0 }

// First returns the rank that was lost first, plus one; 0 where none was, or it is not known.
func (p *Table) First() uint64 { return p.first.Load().Load() }

// FirstLost returns the rank that was lost first, and how it was, by whoever knows the exit code; -1: none was, or it is not known.
func (p *Table) FirstLost() (rank int, c Cause) {
	if rank = int(p.First()) - 1; rank < 0 {
		return rank, 0
	}
	c = p.Cause(rank)
	if story := p.story[rank].Load(); story != nil && (c == Silent || c == Vanished) {
		var code int
		if n, _ := fmt.Sscanf(*story, "exited with %d", &code); n == 1 && code != 0 { // with 0: it has not left as it should have
			c = Exited(code)
		}
	}
	return rank, c
}

// Cause returns why rank is gone, or 0.
func (p *Table) Cause(rank int) Cause {
	return Cause(p.block.Load().Word64(GoneOff(rank)).Load())
}

// Check returns an error wrapping transport.ErrPeerGone if rank is gone.
func (p *Table) Check(rank int) error {
	if p.first.Load().Load() == 0 {
		return nil
	}
	return p.gone(rank)
}

// Gone is the error of Check and CheckAny: an ErrPeerGone that says which rank is gone.
type Gone struct {
	Rank int
	How  string
}

// Error implements error.
func (g *Gone) Error() string {
	return fmt.Sprintf("%v: rank %d %s", transport.ErrPeerGone, g.Rank, g.How)
}

// Unwrap makes it an ErrPeerGone.
func (g *Gone) Unwrap() error { return transport.ErrPeerGone }

// gone is Check where somebody is.
func (p *Table) gone(rank int) error {
	b := p.block.Load()
	if c := b.Word64(GoneOff(rank)).Load(); c != 0 {
		if story := p.story[rank].Load(); story != nil {
			return &Gone{rank, *story}
		}
		return &Gone{rank, Cause(c).String()}
	}
	return nil
}

// CheckAny returns an error for one of ranks that is gone, and that rank: the one that was lost first if it is among
// them, since the others may have left because of it.
func (p *Table) CheckAny(ranks []int) (int, error) {
	first := int(p.block.Load().Word64(FirstOff).Load()) - 1
	if first < 0 {
		return -1, nil
	}
	if first < len(p.watch) && slices.Contains(ranks, first) {
		if err := p.Check(first); err != nil {
			return first, err
		}
	}
	for _, r := range ranks {
		if err := p.Check(r); err != nil {
			return r, err
		}
	}
	return -1, nil
}

// Watch returns what ends a wait for rank.
func (p *Table) Watch(rank int) sched.Watch { return &p.watch[rank] }

// Ring wakes rank's parked waits, if its block is mapped.
func (p *Table) Ring(rank int) {
	if b := p.bells[rank]; b != (sched.Bell{}) {
		b.Ring()
	}
}

// watch ends a wait for one rank.
type watch struct {
	p    *Table
	rank int
}

// Interrupted implements sched.Watch.
func (w *watch) Interrupted() error { return w.p.Check(w.rank) }
