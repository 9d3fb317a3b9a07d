package predict

// Returns foresees whether memory that a transfer uses will be used again while a registration made now would still be there.
// Of a buffer that was seen before it is its own past that counts; of one seen for the first time that of the buffers which were
// first used at the same call site: a program that uses each of its buffers over and over does so with the next one too, and
// one that makes a new buffer for each transfer never comes back to any. A program may change its habit, so a site has credit: what
// it foresees in vain is paid for by what came back before, byte for byte, and when that is used up it foresees nothing until
// something comes back again. A use that is foreseen too late costs little: the second one is known by its buffer. The zero Returns
// has seen nothing. It belongs to one goroutine at a time.
type Returns struct {
	moved   uint64 // bytes of all uses so far
	buffers [1 << bufferBits]buffer
	sites   [2 << siteBits]origin // two to a place
}

// Sizes of the tables. What shares a place forgets the other, which costs time only: a buffer another one, and a third call site the one that is older of
// two. Programs have few of those, and where the linker lays them decides which share a place, so that two that forget each other would do so for ever.
const (
	bufferBits = 10
	siteBits   = 6
)

// many is as many uses as a forecast can tell of.
const many = 255

// When a site is believed.
const (
	siteLeast  = 4  // buffers that it must have begun
	siteMost   = 64 // beyond that the older half counts half
	siteCredit = 4  // uses that came back, of the last one's size: so much it may foresee in vain at most
)

// buffer is what is known of one buffer.
type buffer struct {
	addr     uint64
	last     uint64 // what had been moved when it was used last
	epoch    uint32 // in which it was used last
	uses     uint8  // in that epoch
	site     uint8  // where it was used first
	foreseen bool   // then: the site's credit is to be given back if it returns
}

// origin is what became of the buffers that were first used at a site.
type origin struct {
	hash   uint64
	last   uint64 // what had been moved when it began a buffer last
	credit uint64 // bytes
	begun  uint16 // buffers
	back   uint16 // of them, came back in time
	again  uint32 // uses of them that were not the first
}

// mix64 spreads a key over a table.
const mix64 = 0x9e3779b97f4a7c15

// Use notes that a transfer of bytes at a call site uses the buffer at addr, and returns how many transfers a registration made
// for it now would serve: 1, this one, to many. covered says that it is registered: that keeps its object alive, so what lies
// there is what was used before. Else it may have become another buffer in another epoch, behind a garbage collection, and is
// looked at as a new one of the site that uses it now. reach is how many bytes of other transfers a registration survives, 0: any number.
// stands is for how many such uses this one stands, 1 or more, where not all of memory that is covered are told.
func (r *Returns) Use(site, addr uint64, bytes int, covered bool, stands uint8, reach, epoch uint64) uint8 {
	b := &r.buffers[addr*mix64>>(64-bufferBits)]
	r.moved += uint64(bytes) * uint64(stands)
	known := b.uses > 0 && b.addr == addr
	away := r.moved - b.last - uint64(bytes)
	b.last = r.moved
	if known && (covered || b.epoch == uint32(epoch) && (reach == 0 || away <= reach)) {
		b.epoch = uint32(epoch)
		return r.again(b, bytes, stands)
	}
	// It is new, or comes back so late that it might as well be.
	place := r.place(site)
	s := &r.sites[place]
	if s.hash != site {
		*s = origin{hash: site}
	}
	s.last = r.moved
	uses := s.forecast()
	if !covered { // else nothing is risked
		uses = s.foresee(uses, uint64(bytes))
	}
	s.begin()
	*b = buffer{addr: addr, last: r.moved, epoch: uint32(epoch), uses: 1, site: place, foreseen: uses > 1 && !covered}
	return uses
}

// place is where a site is, or may take the place of another.
func (r *Returns) place(site uint64) uint8 {
	first := uint8(site*mix64>>(64-siteBits)) * 2
	switch one, two := &r.sites[first], &r.sites[first+1]; {
	case one.hash == site:
		return first
	case two.hash == site, two.last < one.last:
		return first + 1
	}
	return first
}

// again counts uses that are not the first.
func (r *Returns) again(b *buffer, bytes int, stands uint8) uint8 {
	s, earned := &r.sites[b.site], uint64(bytes)
	if b.foreseen {
		b.foreseen = false
		earned *= 2
	}
	s.credit = min(s.credit+earned, max(s.credit, siteCredit*uint64(bytes)))
	if b.uses == 1 && s.back < s.begun { // some that return were begun in the older half
		s.back++
	}
	s.again += uint32(stands)
	b.uses += min(stands, many-b.uses)
	if b.uses == 2 {
		return max(4, s.forecast())
	}
	return many
}

// begin counts a buffer more.
func (s *origin) begin() {
	if s.begun++; s.begun == siteMost {
		s.begun, s.back, s.again = s.begun/2, s.back/2, s.again/2
	}
}

// foresee takes from the credit what it costs if a new buffer of so many bytes is not used so often; it returns 1 where there is not
// as much.
func (s *origin) foresee(uses uint8, bytes uint64) uint8 {
	switch {
	case uses == 1:
	case s.credit < bytes:
		return 1
	default:
		s.credit -= bytes
	}
	return uses
}

// forecast returns how often a buffer of the site is used if it is like those before. Most of them must have come back; the newest
// may still do so.
func (s *origin) forecast() uint8 {
	if s.begun < siteLeast || 4*int(s.back) < 3*int(s.begun-1) {
		return 1
	}
	return uint8(min(many, 1+s.again/uint32(s.begun)))
}
