package superpipe

import (
	"encoding/binary"
	"errors"
)

// Offer is what an origin's rendezvous message tells the target, beside where the data is to go.
type Offer struct {
	Bytes   uint64
	AckAddr uint64 // where acknowledgements are written, in the origin's memory
	AckKey  uint64
	Tag     uint64 // of the acknowledgements
}

// Grant is the target's answer: a lease of workspace for one transfer.
type Grant struct {
	Generation uint64 // of the flags
	Addr, Key  uint64 // of the leased slots, which adjoin
	Lease      uint32
	SlotBytes  uint32
	Fold       uint16
	Way        Way
}

// Sizes of the messages, in bytes. What follows one is the layout of pieces.
const (
	offerBytes = 32
	grantBytes = 35
)

// ErrMalformed is wrapped by the errors of ParseOffer and ParseGrant.
var ErrMalformed = errors.New("superpipe: malformed rendezvous message")

// Append appends the offer's offerBytes bytes to b.
func (o Offer) Append(b []byte) []byte {
	for _, w := range [...]uint64{o.Bytes, o.AckAddr, o.AckKey, o.Tag} {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// ParseOffer is the inverse of Append; rest is what follows the offer.
func ParseOffer(b []byte) (o Offer, rest []byte, err error) {
	if len(b) < offerBytes {
		return Offer{}, nil, ErrMalformed
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	o = Offer{Bytes: word(0), AckAddr: word(1), AckKey: word(2), Tag: word(3)}
	if o.Bytes > maxCopied || o.Tag == 0 || o.Tag > lastGeneration {
		return Offer{}, nil, ErrMalformed
	}
	return o, b[offerBytes:], nil
}

// fits reports whether the offer is one for a transfer of so many bytes.
func (o Offer) fits(bytes int) bool {
	return o.Bytes == uint64(bytes) && o.Bytes > 0 && o.Bytes <= maxCopied && o.Tag > 0 && o.Tag <= lastGeneration
}

// Append appends the grant's grantBytes bytes to b.
func (g Grant) Append(b []byte) []byte {
	for _, w := range [...]uint64{g.Generation, g.Addr, g.Key} {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	b = binary.LittleEndian.AppendUint32(b, g.Lease)
	b = binary.LittleEndian.AppendUint32(b, g.SlotBytes)
	b = binary.LittleEndian.AppendUint16(b, g.Fold)
	return append(b, byte(g.Way))
}

// ParseGrant is the inverse of Append; rest is what follows the grant.
func ParseGrant(b []byte) (g Grant, rest []byte, err error) {
	if len(b) < grantBytes {
		return Grant{}, nil, ErrMalformed
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	g = Grant{
		Generation: word(0), Addr: word(1), Key: word(2), Lease: binary.LittleEndian.Uint32(b[24:]),
		SlotBytes: binary.LittleEndian.Uint32(b[28:]), Fold: binary.LittleEndian.Uint16(b[32:]), Way: Way(b[34]),
	}
	if g.Generation == 0 || g.Generation > lastGeneration || g.Lease >= mostLeases || g.Fold < 2 || g.Fold > mostFold ||
		g.SlotBytes < Block || g.SlotBytes%Block != 0 || g.Way != WayFlags && g.Way != WayImm {
		return Grant{}, nil, ErrMalformed
	}
	return g, b[grantBytes:], nil
}

// An acknowledgement is the tag and the number of chunks copied out.
func ack(tag uint64, chunks int) uint64 { return tag<<sequenceBits | uint64(chunks) }

// acked is the number of chunks that an acknowledgement word confirms to the transfer of a tag.
func acked(word, tag uint64) int {
	if word>>sequenceBits != tag {
		return 0
	}
	return int(word & (1<<sequenceBits - 1))
}

// An immediate says which chunk of which lease has arrived. Its highest bit tells it from those of others.
const (
	immMark      = 1 << 31
	immLeaseBits = 10
	immGenBits   = 10
	immChunkBits = 11
)

func immediate(lease uint32, generation uint64, chunk int) uint32 {
	return immMark | lease<<(immGenBits+immChunkBits) | uint32(generation&(1<<immGenBits-1))<<immChunkBits | uint32(chunk)&(1<<immChunkBits-1)
}

// immLease is the lease of an immediate, and whether it is one of ours.
func immLease(imm uint32) (lease int, ours bool) {
	return int(imm &^ immMark >> (immGenBits + immChunkBits)), imm&immMark != 0
}
