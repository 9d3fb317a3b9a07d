package superpipe

import (
	"errors"
	"fmt"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// retire frees the chunks that the NIC has reported; a get's are copied out by pull. Where nothing will be reported,
// those in flight count as reported.
func (p *Pipe) retire(deserted bool) (moved bool) {
	for i := range p.chunks[:p.fold] {
		c := &p.chunks[i]
		s := c.state.Load()
		if s == chunkPosted && deserted {
			c.status.Store(uint32(transport.StatusFlushed))
			s = chunkLanded
		}
		if s != chunkLanded || p.t.Get && c.ok() && p.Err() == nil {
			continue
		}
		if !p.t.Lease && !p.t.Get && c.ok() {
			p.settled++ // the completions of an endpoint come in the order posted
		}
		p.freeChunk(c)
		moved = true
	}
	return moved
}

// push moves a put: chunks that are ready are posted, one more is copied.
func (p *Pipe) push(g Grant, reached bool) (moved bool) {
	if p.t.Lease && reached {
		word := p.o.words.Word64(int(p.index) * 8).Load()
		if n := min(acked(word, p.tag), p.posted); n > p.settled {
			p.settled, moved = n, true
		}
	}
	// Posting chunk i waits for the acknowledgement of i-(N-1): the copy of i+1 then starts into that one's slot.
	for reached && p.posted < p.copied && p.posted < p.settled+max(1, p.fold-1) {
		c := &p.chunks[p.posted%p.fold]
		if !p.post(c, g) {
			break
		}
		p.posted++
		moved = true
	}
	if p.copied < p.total && p.chunks[p.copied%p.fold].state.Load() == chunkFree && p.copied < p.settled+p.fold {
		moved = p.ready(&p.chunks[p.copied%p.fold]) || moved
	}
	if p.copied == p.total && (p.how == byCopy || p.how == bySeal) && !p.pins() {
		p.sourced.Store(true)
	}
	return moved
}

// pins reports whether the NIC takes some chunk from where it lies, which was registered before a registration was refused and the rest copied.
func (p *Pipe) pins() bool {
	for i := range p.chunks[:p.fold] {
		if p.chunks[i].pinned {
			return true
		}
	}
	return false
}

// ready prepares the next chunk: it copies it into a slot, or registers it. It reports false where no slot is free.
func (p *Pipe) ready(c *chunk) bool {
	p.next(c, p.copied)
	if p.how != byDirect && (p.how != byPin || !p.pin(c, 0)) {
		if !p.hold(c, p.copied) {
			return false
		}
		switch slot := p.o.slot(c.slot); {
		case p.how == byGather:
		case p.t.Spread != nil:
			p.collect(slot, c.bytes)
			p.moved += c.bytes
		case p.how == bySeal:
			layOut(slot, p.part(c))
			p.moved += c.bytes
		case p.how == byCopy || p.how == byPin:
			mem.Copy(slot.Data(), p.part(c).Data())
			p.moved += c.bytes
		}
	}
	c.state.Store(chunkReady)
	p.copied++
	return true
}

// collect gathers the next bytes of a spread into a slot, as flat bytes or in sub-blocks. Chunks are copied in the order of the bytes.
func (p *Pipe) collect(slot mem.Range, bytes int) {
	if p.how != bySeal {
		p.t.Spread.Gather(&p.gathered, slot.Slice(0, bytes))
		return
	}
	at, used := lead(bytes), first(bytes)
	for b := range blocks(bytes) {
		p.t.Spread.Gather(&p.gathered, slot.Slice(b*Block+at, used))
		at, used = 0, Payload
	}
}

// hold takes a slot for c, which is chunk i; it reports false where none is free.
func (p *Pipe) hold(c *chunk, i int) bool {
	if c.bytes > p.o.c.SlotBytes {
		p.recut(i, c.offset, p.t.bytes(), defaultFirst, byCopy) // a piece that should have been registered whole
		p.place(c, i)
	}
	slot, ok := p.o.takeSlot(p.waits)
	if ok {
		c.slot = slot
	}
	if ok && p.waits {
		p.early++
	}
	return ok
}

// pin registers the memory of a chunk; where that is refused the chunk is copied instead.
func (p *Pipe) pin(c *chunk, a transport.Access) bool {
	r, err := p.o.c.NIC.Register(p.part(c), a)
	if err != nil {
		p.o.fallbacks.Add(1)
		return false
	}
	c.region, c.pinned = r, true
	return true
}

// post hands a chunk to the NIC; it reports false where that has no room, or has refused.
func (p *Pipe) post(c *chunk, g Grant) bool {
	i := p.posted
	op := &p.op[0]
	*op = transport.Op{
		Kind: transport.OpWrite, Flags: transport.FlagSignaled, NSGE: 1, EP: p.t.EP, RKey: g.Key,
		RAddr: g.Addr + uint64(c.offset), Cookie: p.cookie(i),
	}
	if p.t.Lease {
		op.RAddr = g.Addr + uint64(i%p.o.c.Fold)*uint64(g.SlotBytes)
		if g.Way == WayImm {
			op.Kind, op.Imm = transport.OpWriteImm, immediate(g.Lease, g.Generation, i)
		}
	}
	switch p.how {
	case bySeal:
		at := lead(c.bytes)
		seal(p.o.slot(c.slot), c.bytes, g.Generation, p.seq)
		op.SGE[0] = transport.SGE{Mem: p.o.slot(c.slot).Slice(at, blocks(c.bytes)*Block-at), LKey: p.o.key.LKey}
		op.RAddr += uint64(at)
	case byGather:
		return p.postGathered(c, g.Generation)
	default:
		op.SGE[0] = p.sge(c)
	}
	if p.t.Keys != nil {
		return p.postByKeys(c)
	}
	if !p.send(c) {
		return false
	}
	if p.how == bySeal {
		p.seq += blocks(c.bytes)
	}
	return true
}

// sge is this rank's memory of a chunk that is not in sub-blocks.
func (p *Pipe) sge(c *chunk) transport.SGE {
	switch {
	case c.pinned:
		return transport.SGE{Mem: p.part(c), LKey: c.region.LKey}
	case c.slot >= 0:
		return transport.SGE{Mem: p.o.slot(c.slot).Slice(0, c.bytes), LKey: p.o.key.LKey}
	default:
		return transport.SGE{Mem: p.part(c), LKey: p.t.LKey}
	}
}

// cookie names the place of chunk i.
func (p *Pipe) cookie(i int) uint64 {
	return p.o.c.Cookies + uint64(p.index)*mostFold + uint64(i%p.fold)
}

// send posts p.op for a chunk.
func (p *Pipe) send(c *chunk) bool {
	before := c.state.Load()
	c.state.Store(chunkPosted) // before the completion can come
	n, err := p.o.c.NIC.Post(p.op[:])
	if n == 1 {
		return true
	}
	c.state.Store(before)
	if err != nil {
		p.Fail(fmt.Errorf("post a chunk of %d bytes: %w", c.bytes, err))
	}
	return false
}

// pull moves a get: reads are posted into free slots, several at once, and one that has arrived is copied out. The last
// chunk's copy hides behind nothing, so chunks shrink.
func (p *Pipe) pull(g Grant, reached bool) (moved bool) {
	for reached && p.posted < p.total {
		c := &p.chunks[p.posted%p.fold]
		if s := c.state.Load(); s != chunkReady && (s != chunkFree || !p.room(c)) {
			break
		}
		if !p.read(c, g) {
			break
		}
		p.posted++
		moved = true
	}
	if p.settled == p.posted {
		return moved
	}
	c := &p.chunks[p.settled%p.fold]
	if c.state.Load() != chunkLanded || !c.ok() {
		return moved
	}
	if c.slot >= 0 {
		mem.Copy(p.part(c).Data(), p.o.slot(c.slot).Slice(0, c.bytes).Data())
		p.moved += c.bytes
	}
	p.freeChunk(c)
	p.settled++
	return true
}

// room finds the next chunk of a get memory to arrive in; it reports false where no slot is free.
func (p *Pipe) room(c *chunk) bool {
	p.next(c, p.posted)
	if p.how != byDirect && (p.how != byPin || !p.pin(c, transport.LocalWrite)) && !p.hold(c, p.posted) {
		return false
	}
	c.state.Store(chunkReady)
	return true
}

// read posts the read of a chunk that has room; it reports false where the NIC has none, or has refused.
func (p *Pipe) read(c *chunk, g Grant) bool {
	p.op[0] = transport.Op{
		Kind: transport.OpRead, Flags: transport.FlagSignaled, NSGE: 1, EP: p.t.EP, RKey: g.Key,
		RAddr: g.Addr + uint64(c.offset), Cookie: p.cookie(p.posted),
	}
	p.op[0].SGE[0] = p.sge(c)
	if p.t.Keys != nil {
		return p.postByKeys(c)
	}
	return p.send(c)
}

// errBroken: what was in flight to the target may or may not have happened.
var errBroken = errors.New("the connection broke during a large transfer")

// statusError is the error of a chunk that the NIC reports as failed.
func statusError(s transport.Status) error {
	switch s {
	case transport.StatusPeerGone:
		return fmt.Errorf("a large transfer: %w", transport.ErrPeerGone)
	case transport.StatusFlushed, transport.StatusInDoubt:
		return errBroken
	case transport.StatusRemoteAccess:
		return errors.New("the target's NIC refused a chunk: the memory was freed, or its key is wrong")
	default:
		return fmt.Errorf("the NIC reported status %d for a chunk", s)
	}
}
