package proto

import (
	"fmt"
	"slices"
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// The rank block is memory of a rank, reachable for all, in which the others leave word: who is gone, and the
// bell that wakes it. Offsets in bytes; what different ranks write lies on different cache lines.
const (
	blockState = 0   // State of the owner
	blockBell  = 128 // rings, sleepers: 4 bytes each
	blockAny   = 256 // not 0: some rank is gone; the first one + 1, where known
	blockPost  = 320 // the owner's seats.Post: bytes and gap
	blockGone  = 384 // a word for each rank: 0, or the Cause
)

// RankBlockBytes is the size of a rank block in a world of size ranks.
func RankBlockBytes(size int) int { return blockGone + 8*size }

// State of a rank, as its block tells.
type State uint64

// The states. A rank that ends in another state than Left is gone.
const (
	Starting State = iota
	Up
	Left
)

// Cause says how a rank was lost, in a word that fits shared memory.
type Cause uint64

// Kinds of causes; the low 16 bits hold the exit code or signal.
const (
	causeExit Cause = (iota + 1) << 16
	causeSignal
	causeVanished
	causeSilent
	causeReturned
)

// Exited is the cause of a rank that ended with an exit code.
func Exited(code int) Cause { return causeExit | Cause(code&0xffff) }

// Signalled is the cause of a rank that a signal ended.
func Signalled(sig int) Cause { return causeSignal | Cause(sig&0xffff) }

// Causes without a number.
const (
	Vanished = causeVanished // its process ended, nobody told how
	Silent   = causeSilent   // its NIC does not answer
	Returned = causeReturned // its function returned without Close
)

func (c Cause) String() string {
	switch c &^ 0xffff {
	case causeExit:
		return fmt.Sprintf("exited with code %d", c&0xffff)
	case causeSignal:
		return fmt.Sprintf("was killed by signal %d", c&0xffff)
	case causeSilent:
		return "does not answer"
	case causeReturned:
		return "returned without closing its world"
	default:
		return "ended without closing its world"
	}
}

// Peers is what this rank knows of the others' lives. The words lie in its rank block, where the ranks that
// notice a death write them.
type Peers struct {
	block  atomic.Pointer[mem.Range]
	watch  []peerWatch
	others []Remote                 // the rank blocks, by rank; set by Join
	bells  []sched.Bell             // of the ranks whose block is mapped; zero elsewhere
	story  []atomic.Pointer[string] // what a launcher told of a rank's end, in better words than a Cause has
}

// NewPeers returns a table of size ranks, all alive.
func NewPeers(size int) *Peers {
	p := &Peers{watch: make([]peerWatch, size), bells: make([]sched.Bell, size), story: make([]atomic.Pointer[string], size)}
	for r := range p.watch {
		p.watch[r] = peerWatch{p, r}
	}
	block := mem.Of(make([]uint64, RankBlockBytes(size)/8))
	p.block.Store(&block)
	return p
}

// Join moves the table into this rank's block in shared memory, announces the rank as up, and makes its waits
// sleep on the block's bell. blocks are the rank blocks by rank.
func (e *Engine) Join(local mem.Range, blocks []Remote) {
	p := e.Peers
	p.others = blocks
	for r := range blocks {
		if m := blocks[r].Mapped; m.Bytes != 0 {
			p.bells[r] = bellOf(e.Sched, m)
		}
	}
	old := *p.block.Load()
	p.block.Store(&local)
	for r := range blocks {
		if c := old.Word64(blockGone + 8*r).Load(); c != 0 {
			p.mark(local, r, Cause(c))
		}
	}
	e.Sched.SetBell(bellOf(e.Sched, local))
	e.openBoard(local, blocks)
	local.Word64(blockState).Store(uint64(Up))
}

func bellOf(s *sched.Sched, block mem.Range) sched.Bell {
	return s.NewBell(block.Word32(blockBell), block.Word32(blockBell+4))
}

// Leave announces that this rank needs nobody any more.
func (p *Peers) Leave() { p.block.Load().Word64(blockState).Store(uint64(Left)) }

// part moves the table out of shared memory, which is about to be unmapped. Nobody else uses the table meanwhile.
func (p *Peers) part() {
	block := mem.Of(make([]uint64, RankBlockBytes(len(p.watch))/8))
	old := p.block.Load()
	for off := 0; off < block.Bytes; off += 8 { // word by word: a peer whose NIC still works may be telling news
		block.Word64(off).Store(old.Word64(off).Load())
	}
	p.block.Store(&block)
	p.others = nil
	clear(p.bells)
}

// StateOf reads the state of a rank whose block is mapped; ok is false for others.
func (p *Peers) StateOf(rank int) (s State, ok bool) {
	if rank >= len(p.others) || p.others[rank].Mapped.Bytes == 0 {
		return 0, false
	}
	return State(p.others[rank].Mapped.Word64(blockState).Load()), true
}

func (p *Peers) mark(block mem.Range, rank int, c Cause) bool {
	news := block.Word64(blockGone+8*rank).CompareAndSwap(0, uint64(c))
	// Always, after the word: whoever set the word before may have died between the two.
	block.Word64(blockAny).CompareAndSwap(0, uint64(rank)+1)
	return news
}

// MarkGone records that rank is gone, tells all ranks whose block is mapped, and ends their waits for it. It
// reports whether that was news to this rank.
func (p *Peers) MarkGone(rank int, c Cause) bool {
	own := *p.block.Load()
	news := p.mark(own, rank, c)
	// Who is lost because of another one's end must not be known before that one, so the older news goes along.
	first := int(own.Word64(blockAny).Load()) - 1
	for r := range p.others {
		if m := p.others[r].Mapped; m.Bytes != 0 {
			if c := p.cause(first); first != rank && c != 0 {
				p.mark(m, first, c)
			}
			p.mark(m, rank, c)
			p.bells[r].Ring()
		}
	}
	return news
}

// Tell is MarkGone with the words of somebody who knows more: "exited with 3 after 0.2 s".
func (p *Peers) Tell(rank int, story string) bool {
	p.story[rank].Store(&story)
	return p.MarkGone(rank, Vanished)
}

// AnyGone reports whether some rank is known to be gone.
func (p *Peers) AnyGone() bool { return p.block.Load().Word64(blockAny).Load() != 0 }

// cause returns why rank is gone, or 0.
func (p *Peers) cause(rank int) Cause {
	return Cause(p.block.Load().Word64(blockGone + 8*rank).Load())
}

// Check returns an error wrapping transport.ErrPeerGone if rank is gone.
func (p *Peers) Check(rank int) error {
	b := p.block.Load()
	if b.Word64(blockAny).Load() == 0 {
		return nil
	}
	if c := b.Word64(blockGone + 8*rank).Load(); c != 0 {
		if story := p.story[rank].Load(); story != nil {
			return fmt.Errorf("%w: rank %d %s", transport.ErrPeerGone, rank, *story)
		}
		return fmt.Errorf("%w: rank %d %s", transport.ErrPeerGone, rank, Cause(c))
	}
	return nil
}

// CheckAny returns an error for one of ranks that is gone, and that rank: the one that was lost first if it is among
// them, since the others may have left because of it.
func (p *Peers) CheckAny(ranks []int) (int, error) {
	first := int(p.block.Load().Word64(blockAny).Load()) - 1
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
func (p *Peers) Watch(rank int) sched.Watch { return &p.watch[rank] }

// Ring wakes rank's parked waits, if its block is mapped.
func (p *Peers) Ring(rank int) {
	if rank < len(p.others) && p.others[rank].Mapped.Bytes != 0 {
		p.bells[rank].Ring()
	}
}

// peerWatch ends a wait for one rank.
type peerWatch struct {
	p    *Peers
	rank int
}

// Interrupted implements sched.Watch.
func (w *peerWatch) Interrupted() error { return w.p.Check(w.rank) }
