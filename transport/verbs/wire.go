package verbs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

// wireVersion changes with everything in this file and in auth.go that the peers must agree on.
const wireVersion = 1

// address is what Connect needs to know of a domain. On the wire it is addressBytes long:
//
//	mark 2 | version 2 | rank 4 | instance 8 | IP address 16 | port 2
type address struct {
	rank     uint32
	instance uint64 // drawn by lot: another domain at the same port is not taken for this one
	at       netip.AddrPort
}

const (
	addressMark  = 0x7662
	addressBytes = 34
)

var errAddress = errors.New("this is not the address of a verbs domain")

func (a *address) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, addressMark)
	b = binary.BigEndian.AppendUint16(b, wireVersion)
	b = binary.BigEndian.AppendUint32(b, a.rank)
	b = binary.BigEndian.AppendUint64(b, a.instance)
	ip := a.at.Addr().As16()
	b = append(b, ip[:]...)
	return binary.BigEndian.AppendUint16(b, a.at.Port())
}

func parseAddress(b []byte) (a address, err error) {
	switch {
	case len(b) < 4 || binary.BigEndian.Uint16(b) != addressMark:
		return a, errAddress
	case binary.BigEndian.Uint16(b[2:]) != wireVersion:
		return a, fmt.Errorf("%w: version %d, this library speaks %d; use one version on all ranks", errAddress, binary.BigEndian.Uint16(b[2:]), wireVersion)
	case len(b) != addressBytes:
		return a, fmt.Errorf("%w: %d bytes, not %d", errAddress, len(b), addressBytes)
	}
	a.rank, a.instance = binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint64(b[8:])
	a.at = netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[16:32])).Unmap(), binary.BigEndian.Uint16(b[32:]))
	if a.at.Port() == 0 {
		return a, fmt.Errorf("%w: it has no port", errAddress)
	}
	return a, nil
}

// hello is the dialer's first message, sent before anybody has proved anything.
//
//	address of the dialer 34 | rank of the listener 4 | its instance 8 | last serial 8 | job 16 | nonce 16
type hello struct {
	from       address
	toRank     uint32
	toInstance uint64
	last       uint64   // serial of the newest connection that the dialer knows of
	job        [16]byte // digest of the job's name
	nonce      [16]byte
}

const helloBytes = addressBytes + 4 + 8 + 8 + 16 + 16

func (h *hello) append(b []byte) []byte {
	b = h.from.append(b)
	b = binary.BigEndian.AppendUint32(b, h.toRank)
	b = binary.BigEndian.AppendUint64(b, h.toInstance)
	b = binary.BigEndian.AppendUint64(b, h.last)
	b = append(b, h.job[:]...)
	return append(b, h.nonce[:]...)
}

func parseHello(b []byte) (h hello, err error) {
	if len(b) != helloBytes {
		return h, fmt.Errorf("%w: a hello of %d bytes, not %d", errAddress, len(b), helloBytes)
	}
	if h.from, err = parseAddress(b[:addressBytes]); err != nil {
		return h, err
	}
	b = b[addressBytes:]
	h.toRank, h.toInstance, h.last = binary.BigEndian.Uint32(b), binary.BigEndian.Uint64(b[4:]), binary.BigEndian.Uint64(b[12:])
	copy(h.job[:], b[20:])
	copy(h.nonce[:], b[36:])
	return h, nil
}

// card is a queue pair as its other end needs to know it.
type card struct {
	number, psn uint32
	gid         [16]byte
	lid         uint16
	mtu, reads  uint8
}

// frame is a message of a link, all of one size. What it does not use is zero.
//
//	word 1 | card 28 | serial 8 | zero 3
type frame struct {
	word   word
	card   card
	serial uint64
}

const frameBody = 40

// word is what a frame says.
type word uint8

const (
	wordOffer    word = 1 + iota // dialer: this is my queue pair
	wordAccept                   // listener: this is mine, and the connection's serial
	wordYield                    // listener: a connection is being made from this side, or is there
	wordReady                    // dialer: my queue pair works
	wordEnded                    // either: I have ended the connection
	wordClosing                  // either: I have closed the domain
	wordInstance                 // listener: I am not the one whom you look for
	wordJob                      // listener: I am of another job
	wordRank                     // listener: there is no such rank
	wordTrouble                  // listener: I could not make a queue pair
	wordFull                     // listener: I have no file descriptor left for a connection
)

var errFrame = errors.New("this is not a message of a verbs link")

func (f *frame) body() (b [frameBody]byte) {
	b[0] = byte(f.word)
	binary.BigEndian.PutUint32(b[1:], f.card.number)
	binary.BigEndian.PutUint32(b[5:], f.card.psn)
	copy(b[9:], f.card.gid[:])
	binary.BigEndian.PutUint16(b[25:], f.card.lid)
	b[27], b[28] = f.card.mtu, f.card.reads
	binary.BigEndian.PutUint64(b[29:], f.serial)
	return b
}

func parseFrame(b *[frameBody]byte) (f frame, err error) {
	f.word = word(b[0])
	f.card.number, f.card.psn = binary.BigEndian.Uint32(b[1:]), binary.BigEndian.Uint32(b[5:])
	copy(f.card.gid[:], b[9:25])
	f.card.lid = binary.BigEndian.Uint16(b[25:])
	f.card.mtu, f.card.reads = b[27], b[28]
	f.serial = binary.BigEndian.Uint64(b[29:])
	hasCard := f.word == wordOffer || f.word == wordAccept
	switch {
	case f.word < wordOffer || f.word > wordFull, b[37]|b[38]|b[39] != 0:
		return f, errFrame
	case hasCard && (f.card.number>>24 != 0 || f.card.psn>>24 != 0 || f.card.mtu < 1 || f.card.mtu > 5):
		return f, errFrame
	case !hasCard && f.card != card{}:
		return f, errFrame
	}
	return f, nil
}
