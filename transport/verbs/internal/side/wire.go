package side

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

// wireVersion changes with everything in this file and in auth.go that the peers must agree on.
const wireVersion = 1

// Address is what Connect needs to know of a domain. On the wire it is addressBytes long:
//
//	mark 2 | version 2 | rank 4 | instance 8 | IP address 16 | port 2
type Address struct {
	Rank     uint32
	Instance uint64 // drawn by lot: another domain at the same port is not taken for this one
	At       netip.AddrPort
}

const (
	addressMark  = 0x7662
	addressBytes = 34
)

var errAddress = errors.New("this is not the address of a verbs domain")

// Append appends the address as it travels.
func (a *Address) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, addressMark)
	b = binary.BigEndian.AppendUint16(b, wireVersion)
	b = binary.BigEndian.AppendUint32(b, a.Rank)
	b = binary.BigEndian.AppendUint64(b, a.Instance)
	ip := a.At.Addr().As16()
	b = append(b, ip[:]...)
	return binary.BigEndian.AppendUint16(b, a.At.Port())
}

// ParseAddress reads what Append has written. What another version of this library wrote is an error that says so.
func ParseAddress(b []byte) (a Address, err error) {
	switch {
	case len(b) < 4 || binary.BigEndian.Uint16(b) != addressMark:
		return a, errAddress
	case binary.BigEndian.Uint16(b[2:]) != wireVersion:
		return a, fmt.Errorf("%w: version %d, this library speaks %d; use one version on all ranks", errAddress, binary.BigEndian.Uint16(b[2:]), wireVersion)
	case len(b) != addressBytes:
		return a, fmt.Errorf("%w: %d bytes, not %d", errAddress, len(b), addressBytes)
	}
	a.Rank, a.Instance = binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint64(b[8:])
	a.At = netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[16:32])).Unmap(), binary.BigEndian.Uint16(b[32:]))
	if a.At.Port() == 0 {
		return a, fmt.Errorf("%w: it has no port", errAddress)
	}
	return a, nil
}

// Hello is the dialer's first message, sent before anybody has proved anything.
//
//	address of the dialer 34 | rank of the listener 4 | its instance 8 | last serial 8 | job 16 | nonce 16
type Hello struct {
	From       Address
	ToRank     uint32
	ToInstance uint64
	Last       uint64   // serial of the newest connection that the dialer knows of
	Job        [16]byte // digest of the job's name
	nonce      [16]byte
}

const helloBytes = addressBytes + 4 + 8 + 8 + 16 + 16

func (h *Hello) append(b []byte) []byte {
	b = h.From.Append(b)
	b = binary.BigEndian.AppendUint32(b, h.ToRank)
	b = binary.BigEndian.AppendUint64(b, h.ToInstance)
	b = binary.BigEndian.AppendUint64(b, h.Last)
	b = append(b, h.Job[:]...)
	return append(b, h.nonce[:]...)
}

func parseHello(b []byte) (h Hello, err error) {
	if len(b) != helloBytes {
		return h, fmt.Errorf("%w: a hello of %d bytes, not %d", errAddress, len(b), helloBytes)
	}
	if h.From, err = ParseAddress(b[:addressBytes]); err != nil {
		return h, err
	}
	b = b[addressBytes:]
	h.ToRank, h.ToInstance, h.Last = binary.BigEndian.Uint32(b), binary.BigEndian.Uint64(b[4:]), binary.BigEndian.Uint64(b[12:])
	copy(h.Job[:], b[20:])
	copy(h.nonce[:], b[36:])
	return h, nil
}

// Card is a queue pair as its other end needs to know it.
type Card struct {
	Number, PSN uint32
	GID         [16]byte
	LID         uint16
	MTU, Reads  uint8
}

// Frame is a message of a link, all of one size. What it does not use is zero.
//
//	word 1 | card 28 | serial 8 | zero 3
type Frame struct {
	Word   Word
	Card   Card
	Serial uint64
}

const frameBody = 40

// Word is what a frame says.
type Word uint8

const (
	WordOffer    Word = 1 + iota // dialer: this is my queue pair
	WordAccept                   // listener: this is mine, and the connection's serial
	WordYield                    // listener: a connection is being made from this side, or is there
	WordReady                    // dialer: my queue pair works
	WordEnded                    // either: I have ended the connection
	WordClosing                  // either: I have closed the domain
	WordInstance                 // listener: I am not the one whom you look for
	WordJob                      // listener: I am of another job
	WordRank                     // listener: there is no such rank
	WordTrouble                  // listener: I could not make a queue pair
	WordFull                     // listener: I have no file descriptor left for a connection
)

// ErrFrame is what a frame that nobody may send is.
var ErrFrame = errors.New("this is not a message of a verbs link")

func (f *Frame) body() (b [frameBody]byte) {
	b[0] = byte(f.Word)
	binary.BigEndian.PutUint32(b[1:], f.Card.Number)
	binary.BigEndian.PutUint32(b[5:], f.Card.PSN)
	copy(b[9:], f.Card.GID[:])
	binary.BigEndian.PutUint16(b[25:], f.Card.LID)
	b[27], b[28] = f.Card.MTU, f.Card.Reads
	binary.BigEndian.PutUint64(b[29:], f.Serial)
	return b
}

func parseFrame(b *[frameBody]byte) (f Frame, err error) {
	f.Word = Word(b[0])
	f.Card.Number, f.Card.PSN = binary.BigEndian.Uint32(b[1:]), binary.BigEndian.Uint32(b[5:])
	copy(f.Card.GID[:], b[9:25])
	f.Card.LID = binary.BigEndian.Uint16(b[25:])
	f.Card.MTU, f.Card.Reads = b[27], b[28]
	f.Serial = binary.BigEndian.Uint64(b[29:])
	hasCard := f.Word == WordOffer || f.Word == WordAccept
	switch {
	case f.Word < WordOffer || f.Word > WordFull, b[37]|b[38]|b[39] != 0:
		return f, ErrFrame
	case hasCard && (f.Card.Number>>24 != 0 || f.Card.PSN>>24 != 0 || f.Card.MTU < 1 || f.Card.MTU > 5):
		return f, ErrFrame
	case !hasCard && f.Card != Card{}:
		return f, ErrFrame
	}
	return f, nil
}
