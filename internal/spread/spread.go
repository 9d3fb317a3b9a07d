package spread

import (
	"encoding/binary"
	"errors"
	"slices"

	"gopgas/internal/mem"
)

// Spread is memory in many pieces that one transfer gathers from, or scatters to: its bytes are those of the pieces, one
// piece after the other. Pieces of one length that lie equally far apart are kept together, so that rows and columns take little
// room, here and in the message that tells a layout. It is not changed once a transfer has it.
type Spread struct {
	of    mem.Range // in which all pieces lie
	runs  []stripe
	bytes int
	told  int // what the stripes but the last one take in a message, bytes
}

// ErrMalformed is the error of a layout that cannot be, or whose pieces lie elsewhere.
var ErrMalformed = errors.New("spread: malformed layout")

// longest is more than any transfer has, bytes.
const longest = 1 << 40

// stripe is so many pieces of some bytes each, the first at off and neighbours stride apart, which may be negative.
type stripe struct{ off, bytes, stride, count int }

// New returns memory of no bytes within of, for Add.
func New(of mem.Range) *Spread { return &Spread{of: of} }

// Reset empties s for other pieces, within of.
func (s *Spread) Reset(of mem.Range) { *s = Spread{of: of, runs: s.runs[:0]} }

// Clone is a copy that the next Reset of s leaves alone.
func (s *Spread) Clone() *Spread { return &Spread{s.of, slices.Clone(s.runs), s.bytes, s.told} }

// Bytes is the length of a transfer from or to s.
func (s *Spread) Bytes() int { return s.bytes }

// Stripes is how many groups of pieces s consists of.
func (s *Spread) Stripes() int { return len(s.runs) }

// Add appends the piece of some bytes at off of the memory in which all pieces lie.
func (s *Spread) Add(off, bytes int) {
	switch {
	case off < 0 || bytes < 0 || bytes > s.of.Bytes-off:
		_ = s.of.Slice(off, bytes) // says what is wrong
	case bytes == 0:
		return
	}
	s.bytes += bytes
	if k := len(s.runs); k > 0 {
		last := &s.runs[k-1]
		switch {
		case last.count == 1 && last.off+last.bytes == off:
			last.bytes += bytes
			return
		case last.count == 1 && last.bytes == bytes:
			last.stride, last.count = off-last.off, 2
			return
		case last.bytes == bytes && last.off+last.count*last.stride == off:
			last.count++
			return
		}
		before := 0
		if k > 1 {
			before = s.runs[k-2].off
		}
		var room [mostStripe]byte
		s.told += len(last.append(room[:0], before))
	}
	s.runs = append(s.runs, stripe{off: off, bytes: bytes, count: 1})
}

// Bounds returns the first of the memory's bytes that s has, and the one behind the last.
func (s *Spread) Bounds() (lo, hi int) {
	lo = s.of.Bytes
	for _, r := range s.runs {
		far := r.off + (r.count-1)*r.stride
		lo, hi = min(lo, r.off, far), max(hi, r.off+r.bytes, far+r.bytes)
	}
	return lo, hi
}

// Append appends the layout to b as a message tells it, with places counted from byte base of the memory on: for each stripe where it
// begins, counted from where the one before did, how long its pieces are, how many there are, and, if several, how far apart.
func (s *Spread) Append(b []byte, base int) []byte {
	for _, r := range s.runs {
		b = r.append(b, base)
		base = r.off
	}
	return b
}

func (r stripe) append(b []byte, base int) []byte {
	b = binary.AppendVarint(b, int64(r.off-base))
	b = binary.AppendUvarint(b, uint64(r.bytes))
	b = binary.AppendUvarint(b, uint64(r.count))
	if r.count > 1 {
		b = binary.AppendVarint(b, int64(r.stride))
	}
	return b
}

// mostStripe is the most that a stripe takes in a message.
const mostStripe = 4 * binary.MaxVarintLen64

// Fits reports whether the layout, and whatever one more Add makes of it, takes at most so many bytes in a message.
func (s *Spread) Fits(bytes int) bool { return s.told+3*mostStripe <= bytes } // the first one counts from another base

// Parse is the inverse of Append, for pieces within of. It refuses what lies elsewhere, and what no transfer carries.
func Parse(b []byte, of mem.Range) (*Spread, error) {
	s, from := &Spread{of: of}, int64(0)
	for len(b) > 0 {
		var v [4]int64 // off, bytes, count, stride
		for i := range v {
			var n int
			switch {
			case i == 3 && v[2] == 1:
				continue
			case i == 0 || i == 3:
				v[i], n = binary.Varint(b)
			default:
				var u uint64
				if u, n = binary.Uvarint(b); u == 0 || u > longest {
					return nil, ErrMalformed
				}
				v[i] = int64(u)
			}
			if n <= 0 {
				return nil, ErrMalformed
			}
			b = b[n:]
		}
		from += v[0]
		if !s.admit(from, v[1], v[2], v[3]) {
			return nil, ErrMalformed
		}
	}
	if s.bytes == 0 {
		return nil, ErrMalformed
	}
	return s, nil
}

// admit appends a stripe that a message has told, if all its pieces lie where they may.
func (s *Spread) admit(off, bytes, count, stride int64) bool {
	room := int64(s.of.Bytes) - bytes
	if off < 0 || off > room || count > (longest-int64(s.bytes))/bytes {
		return false
	}
	if far := max(stride, -stride); far < 0 || far > 0 && count-1 > room/far {
		return false // the smallest integer has no negative
	}
	if last := off + (count-1)*stride; last < 0 || last > room {
		return false
	}
	s.runs = append(s.runs, stripe{int(off), int(bytes), int(stride), int(count)})
	s.bytes += int(bytes * count)
	return true
}

// Place is how far a transfer has got in a Spread. The zero Place is the beginning.
type Place struct {
	run, piece int
	within     int // bytes of the piece
}

// each calls f with the pieces, or parts of them, that the next n bytes behind p consist of, and moves p behind those.
func (s *Spread) each(p *Place, n int, f func(at int, piece mem.Range)) {
	for at := 0; at < n; {
		r := &s.runs[p.run]
		k := min(n-at, r.bytes-p.within)
		f(at, s.of.Slice(r.off+p.piece*r.stride+p.within, k))
		at += k
		if p.within += k; p.within < r.bytes {
			continue
		}
		if p.piece, p.within = p.piece+1, 0; p.piece == r.count {
			p.run, p.piece = p.run+1, 0
		}
	}
}

// Gather copies the next bytes behind p to dst.
func (s *Spread) Gather(p *Place, dst mem.Range) {
	to := dst.Data()
	s.each(p, dst.Bytes, func(at int, piece mem.Range) { mem.Copy(to[at:], piece.Data()) })
}

// Scatter copies src to the next bytes behind p.
func (s *Spread) Scatter(p *Place, src mem.Range) {
	from := src.Data()
	s.each(p, src.Bytes, func(at int, piece mem.Range) { mem.Copy(piece.Data(), from[at:]) })
}
