package transporttest

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// The litmus of large transfers into unregistered memory (package internal/superpipe). Their chunks are writes of blocks on a fixed grid, each
// with a flag in its last word; what makes no whole block comes first and begins late. The target looks for one flag after the other while the
// write lands, and reads the payload before each.

const (
	gridBlock   = 4096
	gridPayload = gridBlock - 8
	gridBlocks  = 6 // of a slot
	gridSlots   = 2 // that are written in turn
	gridSlot    = gridBlocks * gridBlock
	gridUser    = gridSlot + 8 // for a payload
)

var gridChecks = []check{
	{"InOrderData/blocks and their flags", func(t *testing.T, s *suite) { testGrid(t, s, gridBlocks, false) }},
	{"InOrderData/blocks and their flags, gathered", func(t *testing.T, s *suite) {
		need(t, s.caps.MaxSGE >= 2, "lists of two entries")
		testGrid(t, s, s.caps.MaxSGE/2, true)
	}},
}

// chunk is what one write of the litmus carries; it follows from the round.
type chunk struct {
	round  int
	bytes  int // of payload
	blocks int
}

// chunkOf varies the length of a round's payload: no whole block, whole blocks, and a short block before them.
func chunkOf(round, most int) chunk {
	n := []int{most * gridPayload, 1, most*gridPayload - 8, gridPayload - 1, (most-1)*gridPayload + 9, 100, most*gridPayload - 1001, gridPayload}[round%8]
	return chunk{round, max(n, 1), max(1, (n+gridPayload-1)/gridPayload)}
}

// slot is where a round's chunk lands.
func (c chunk) slot() int { return c.round % gridSlots * gridSlot }

// lead is how many bytes of the first block are left out, first how many it holds.
func (c chunk) lead() int { return (c.blocks*gridPayload - c.bytes) &^ 7 }

func (c chunk) first() int { return c.bytes - (c.blocks-1)*gridPayload }

// flag is what the last word of a block says: never what it said before, nor what it will say.
func (c chunk) flag(block int) uint64 { return uint64(c.round+1)<<26 | uint64(block)<<2 }

// payload fills b: with words that nobody takes for flags, or with flags of this round and of those around it.
func (c chunk) payload(b mem.Range) {
	for w := range b.Bytes / 8 {
		v := ^uint64(c.round)<<32 | uint64(w)
		if c.round/gridSlots%2 == 1 {
			v = chunk{round: c.round + w%3 - 1}.flag(w % gridBlocks)
		}
		b.Slice(8*w, 8).SetBits(v)
	}
}

// layOut makes the image of the chunk in slot, out of a payload.
func (c chunk) layOut(slot, payload mem.Range) {
	at, from, n := c.lead(), 0, c.first()
	for b := range c.blocks {
		clear(slot.Slice(b*gridBlock+gridPayload-8, 8).Data())
		copy(slot.Slice(b*gridBlock+at, n).Data(), payload.Slice(from, n).Data())
		slot.Word64(b*gridBlock + gridPayload).Store(c.flag(b))
		at, from, n = 0, from+n, gridPayload
	}
}

// grid is the memory of the litmus at either rank: slots on the grid, payloads, one for each slot, and what has lain in a slot before.
type grid struct{ slots, users, old int }

func gridOf(n *node) grid {
	at := int(-n.mem.Addr() & (gridBlock - 1))
	return grid{at, at + gridSlots*gridSlot, at + gridSlots*(gridSlot+gridUser)}
}

const gridRoom = gridBlock + gridSlots*(gridSlot+gridUser) + gridSlot

// user is where the payload of a round is made: at an odd place.
func (g grid) user(c chunk) int { return g.users + c.round%gridSlots*gridUser + 3 }

// op is the write of a chunk: in one piece, or gathered from the payload and the flags.
func (g grid) op(a *node, c chunk, to grid, gathered bool) transport.Op {
	lead := c.lead()
	op := a.op(transport.OpWrite, 1, g.slots+c.slot()+lead, to.slots+c.slot()+lead, c.blocks*gridBlock-lead)
	if !gathered {
		return op
	}
	from, n := 0, c.first()
	for b := range c.blocks {
		end := b*gridBlock + lead + n // of the payload in the image; the flag brings along what is between them
		op.SGE[2*b], op.SGE[2*b+1] = a.sge(g.user(c)+from, n), a.sge(g.slots+c.slot()+end, (b+1)*gridBlock-end)
		lead, from, n = 0, from+n, gridPayload
	}
	op.NSGE = uint8(2 * c.blocks)
	return op
}

// testGrid writes chunks of at most so many blocks.
func testGrid(t *testing.T, s *suite, most int, gathered bool) {
	need(t, s.caps.InOrderData, "order within one write")
	need(t, s.caps.MaxMessage >= gridBlock, "messages of a block")
	most = min(most, gridBlocks, s.caps.MaxMessage/gridBlock)
	a, b := s.pair(t, gridRoom)
	a.ep(1)
	var acks atomic.Int64
	var failed atomic.Bool
	together(t, 2, func(i int) (err error) {
		defer func() {
			if err != nil {
				failed.Store(true)
			}
		}()
		if i == 0 {
			return gridWriter(a, gridOf(b), most, gathered, &acks, &failed)
		}
		return gridReader(b, most, &acks, &failed)
	})
}

// gridRounds is fewer than the suite's rounds: each is many blocks.
func (s *suite) gridRounds() int { return max(64, s.opt.Rounds/8) }

func gridWriter(a *node, to grid, most int, gathered bool, acks *atomic.Int64, failed *atomic.Bool) error {
	g := gridOf(a)
	var cookies [gridSlots]uint64
	for round := range a.s.gridRounds() {
		c, k := chunkOf(round, most), round%gridSlots
		for acks.Load() <= int64(round-gridSlots) {
			if failed.Load() {
				return nil
			}
			runtime.Gosched()
		}
		if round >= gridSlots {
			if d, err := a.tryWait(cookies[k]); err != nil || d.Status != transport.StatusOK {
				return fmt.Errorf("round %d: status %d: %w", round, d.Status, err)
			}
		}
		user := a.mem.Slice(g.user(c), gridSlot)
		c.payload(user)
		c.layOut(a.mem.Slice(g.slots+c.slot(), gridSlot), user)
		var ops []transport.Op
		if a.s.caps.OrderedWrites && round%3 == 0 { // an older payload, where the flags will be too
			old := chunk{round: round - gridSlots}
			for w := range gridBlocks * gridBlock / 8 {
				a.mem.Word64(g.old + 8*w).Store(old.flag(w % gridBlocks))
			}
			ops = append(ops, quiet(a.op(transport.OpWrite, 1, g.old, to.slots+c.slot(), a.s.upTo(gridSlot))))
		}
		op := g.op(a, c, to, gathered)
		cookies[k] = op.Cookie
		if err := a.tryPost(append(ops, op)...); err != nil {
			return err
		}
	}
	for k := range min(a.s.gridRounds(), gridSlots) {
		if _, err := a.tryWait(cookies[k]); err != nil {
			return err
		}
	}
	return nil
}

func gridReader(b *node, most int, acks *atomic.Int64, failed *atomic.Bool) error {
	g := gridOf(b)
	words := make([]uint64, (gridSlot+gridSlot)/8)
	image, user := mem.Of(words[:gridSlot/8]), mem.Of(words[gridSlot/8:])
	for round := range b.s.gridRounds() {
		c := chunkOf(round, most)
		c.payload(user)
		c.layOut(image, user)
		slot, lead := b.mem.Slice(g.slots+c.slot(), gridSlot), c.lead()
		for block := range c.blocks {
			if err := awaitWord(b.s, slot.Word64(block*gridBlock+gridPayload), c.flag(block), failed); err != nil {
				return fmt.Errorf("round %d, block %d of %d: %w", round, block, c.blocks, err)
			}
			if failed.Load() {
				return nil
			}
			// Ordinary loads: the flag has ordered them, and the race detector checks that it has.
			from := block*gridBlock + lead
			got, want := mem.Slice[uint64](slot.Slice(from, gridPayload-lead)), mem.Slice[uint64](image.Slice(from, gridPayload-lead))
			for w := range want {
				if got[w] != want[w] {
					return fmt.Errorf("round %d: the flag of block %d of %d was there before word %d of its payload, which is still %#x, not %#x",
						round, block, c.blocks, w, got[w], want[w])
				}
			}
			lead = 0
		}
		acks.Store(int64(round + 1))
	}
	return nil
}

// awaitWord waits until a word has a value, whatever it is before.
func awaitWord(s *suite, word *atomic.Uint64, want uint64, failed *atomic.Bool) error {
	deadline := time.Now().Add(s.opt.Timeout)
	for spins := 0; word.Load() != want && !failed.Load(); spins++ {
		if spins%64 == 63 {
			runtime.Gosched()
			if spins%65536 == 65535 && time.Now().After(deadline) {
				return fmt.Errorf("its flag %#x never came; the word is %#x", want, word.Load())
			}
		}
	}
	return nil
}
