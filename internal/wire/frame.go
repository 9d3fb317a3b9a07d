package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Kind is what a frame says.
type Kind uint8

// The kinds. Write to Send are requests; the others are answers and what keeps a connection going.
const (
	Write       Kind = iota + 1 // payload to RAddr
	WriteImm                    // Write, and a receive completion with Imm
	Read                        // Len bytes from RAddr, please
	FetchAdd                    // add Arg0 to the word at RAddr
	CompareSwap                 // if the word at RAddr is Arg0 store Arg1
	Send                        // payload to the next receive buffer
	Ack                         // only its Ack
	Data                        // payload is what Read number Seq asked for
	Value                       // Arg0 is the old value for the atomic number Seq
	Refuse                      // request Seq was refused with Status, and none after it was done
	NotReady                    // request Seq needs a receive buffer and there is none: wait
	Ready                       // send request Seq and those after it again
	Alive                       // nothing else to say
	Bye                         // the connection ends; Status says why
	lastKind    = Bye
)

// Flags of a frame.
const (
	AckWanted uint8 = 1 << iota // answer soon, and not only when something else is to be said
	allFlags        = AckWanted
)

// Why a connection ends: the Status of Bye.
const (
	ByeBroken uint8 = iota // an error or a disconnect; another connection may follow
	ByeClosed              // the rank has closed its domain
)

// MaxPayload is the largest Len.
const MaxPayload = 1 << 30

// long is the longest payload behind a header of its kind's own length. The header of a longer one is filled up with zeroes to MaxHeader.
//
// What begins behind a pause begins a page of the kernel's, and a long payload comes from the beginning of a page, mostly. The string instructions by which the
// kernel copies are many times slower on Zen 3 and Zen 4 if the destination lies 1 to 31 bytes further behind such a beginning than the source
// (glibc's bug 30994), as it would behind the 24 bytes of Data.
const long = 4096

// MaxHeader is the length of the longest header, and of all of those before a long payload: a line of the caches.
const MaxHeader = 64

const baseHeader = 24

// parts says which fields a kind has beyond the base, and whether Len counts payload.
type parts uint8

const (
	hasTarget  parts = 1 << iota // RAddr, RKey
	hasImm                       // Imm
	hasArg0                      // Arg0
	hasArg1                      // Arg1
	hasPayload                   // Len bytes follow
	hasLen                       // Len means something though nothing follows
	hasStatus                    // Status
)

// shape is indexed by kind.
var shape = [lastKind + 1]parts{
	Write:       hasTarget | hasPayload,
	WriteImm:    hasTarget | hasImm | hasPayload,
	Read:        hasTarget | hasLen,
	FetchAdd:    hasTarget | hasArg0,
	CompareSwap: hasTarget | hasArg0 | hasArg1,
	Send:        hasImm | hasPayload,
	Data:        hasPayload,
	Value:       hasArg0,
	Refuse:      hasStatus,
	Bye:         hasStatus,
}

// Header is a frame without its payload. Fields that the kind lacks are zero.
type Header struct {
	Kind   Kind
	Flags  uint8
	Status uint8
	Len    uint32
	Seq    uint64
	Ack    uint64
	RAddr  uint64
	RKey   uint64
	Arg0   uint64
	Arg1   uint64
	Imm    uint32
}

// Errors of Decode.
var (
	errKind     = errors.New("wire: a frame of no known kind")
	errReserved = errors.New("wire: a frame with bits that this version does not use")
	errLength   = fmt.Errorf("wire: a frame longer than %d bytes, or with a length where there is none", MaxPayload)
)

// IsRequest reports whether frames of the kind ask for an operation.
func (k Kind) IsRequest() bool { return k >= Write && k <= Send }

// Payload returns how many bytes follow the header.
func (h *Header) Payload() int {
	if shape[h.Kind]&hasPayload != 0 {
		return int(h.Len)
	}
	return 0
}

// Append appends the header to b. Fields that the kind lacks are left out.
func (h *Header) Append(b []byte) []byte {
	p, begin := shape[h.Kind], len(b)
	b = append(b, byte(h.Kind), h.Flags, h.Status, 0)
	b = binary.LittleEndian.AppendUint32(b, h.Len)
	b = binary.LittleEndian.AppendUint64(b, h.Seq)
	b = binary.LittleEndian.AppendUint64(b, h.Ack)
	if p&hasTarget != 0 {
		b = binary.LittleEndian.AppendUint64(b, h.RAddr)
		b = binary.LittleEndian.AppendUint64(b, h.RKey)
	}
	if p&hasArg0 != 0 {
		b = binary.LittleEndian.AppendUint64(b, h.Arg0)
	}
	if p&hasArg1 != 0 {
		b = binary.LittleEndian.AppendUint64(b, h.Arg1)
	}
	if p&hasImm != 0 {
		b = binary.LittleEndian.AppendUint64(b, uint64(h.Imm))
	}
	for h.Payload() > long && len(b)-begin < MaxHeader {
		b = binary.LittleEndian.AppendUint64(b, 0)
	}
	return b
}

// Decode reads a header from the beginning of b and returns its length, or 0 if b holds only a part of it.
// After an error the stream makes no sense any more.
func (h *Header) Decode(b []byte) (int, error) {
	if len(b) < baseHeader {
		return 0, nil
	}
	k := Kind(b[0])
	if k == 0 || k > lastKind {
		return 0, errKind
	}
	p := shape[k]
	*h = Header{
		Kind: k, Flags: b[1], Status: b[2], Len: binary.LittleEndian.Uint32(b[4:]),
		Seq: binary.LittleEndian.Uint64(b[8:]), Ack: binary.LittleEndian.Uint64(b[16:]),
	}
	if h.Flags&^allFlags != 0 || b[3] != 0 || h.Status != 0 && p&hasStatus == 0 {
		return 0, errReserved
	}
	if h.Len > MaxPayload || h.Len != 0 && p&(hasPayload|hasLen) == 0 {
		return 0, errLength
	}
	n := baseHeader
	if p&hasTarget != 0 {
		if len(b) < n+16 {
			return 0, nil
		}
		h.RAddr, h.RKey = binary.LittleEndian.Uint64(b[n:]), binary.LittleEndian.Uint64(b[n+8:])
		n += 16
	}
	word := func() (v uint64, ok bool) {
		if len(b) < n+8 {
			return 0, false
		}
		v = binary.LittleEndian.Uint64(b[n:])
		n += 8
		return v, true
	}
	ok := true
	if p&hasArg0 != 0 {
		h.Arg0, ok = word()
	}
	if ok && p&hasArg1 != 0 {
		h.Arg1, ok = word()
	}
	if ok && p&hasImm != 0 {
		var v uint64
		v, ok = word()
		if v>>32 != 0 {
			return 0, errReserved
		}
		h.Imm = uint32(v)
	}
	if ok && h.Payload() > long {
		return filled(b, n)
	}
	if !ok {
		return 0, nil
	}
	return n, nil
}

// filled returns MaxHeader where the header in b, of which n bytes say something, is filled up to that.
func filled(b []byte, n int) (int, error) {
	if len(b) < MaxHeader {
		return 0, nil
	}
	for _, x := range b[n:MaxHeader] {
		if x != 0 {
			return 0, errReserved
		}
	}
	return MaxHeader, nil
}
