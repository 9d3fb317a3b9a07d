package card

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"gopgas/transport"
)

// Card is what a member tells the others about its part of exposed memory, or about its failure. The zero Card is a part of no bytes.
type Card struct {
	Bytes       int
	RAddr, RKey uint64
	Keyed       bool            // RKey is valid
	Hosed       uint32          // the range's number, if it is registered in buckets; with the highest bit, if it is not registered at all; 0: neither
	Budget      uint64          // hash of the member's registration budget; 0: it has none
	CPU         bool            // atomics may be the CPU's, as far as this member can tell
	Token       transport.Token // by which others map it; nil: nobody can
	Addr        []byte          // of the member's NIC; nil: it has none
	Err         error           // what went wrong, of which the others need to know
}

// ErrMalformed is what no Encode has written.
var ErrMalformed = errors.New("malformed card")

// Exchange sends mine to all members of a group by its all-gather, and returns everybody's by member. It is collective.
func Exchange(ctx context.Context, gather func(context.Context, []byte) ([][]byte, error), mine Card) ([]Card, error) {
	raw, err := gather(ctx, mine.Encode())
	if err != nil {
		return nil, err
	}
	cards := make([]Card, len(raw))
	for m, b := range raw {
		if cards[m], err = Decode(b); err != nil {
			return nil, fmt.Errorf("card of member %d: %w", m, err)
		}
	}
	return cards, nil
}

// FirstFailure returns the first member's failure, by its rank in the world; own is this rank's error, with its type kept.
func FirstFailure(cards []Card, ranks []int, own error) error {
	if own != nil {
		return own
	}
	for m, c := range cards {
		if c.Err != nil {
			return transport.NewOpError("allocate", ranks[m], c.Err)
		}
	}
	return nil
}

// sentinels are the errors that keep their identity on the way to the other members.
var sentinels = [...]error{transport.ErrLimit, transport.ErrUnsupported, transport.ErrClosed}

// toldError is another member's error.
type toldError struct {
	text string
	is   error
}

func (e toldError) Error() string { return e.text }
func (e toldError) Unwrap() error { return e.is }

// keyedFlag is the flag of Card.Keyed; those of cpu, token, err and the sentinels lie below.
const keyedFlag = 1 << 7

// mostText is how much of an error's text travels, bytes.
const mostText = 400

// Encode writes: flags, bytes, raddr, rkey, budget, hosed, lengths of token and address, token, address, error text.
func (c Card) Encode() []byte {
	var flags byte
	if c.CPU {
		flags |= 1
	}
	if c.Token != nil {
		flags |= 2
	}
	if c.Keyed {
		flags |= keyedFlag
	}
	if c.Err != nil {
		flags |= 4
		for i, s := range sentinels {
			if errors.Is(c.Err, s) {
				flags |= 8 << i
				break
			}
		}
	}
	b := []byte{flags}
	b = binary.LittleEndian.AppendUint64(b, uint64(c.Bytes))
	b = binary.LittleEndian.AppendUint64(b, c.RAddr)
	b = binary.LittleEndian.AppendUint64(b, c.RKey)
	b = binary.LittleEndian.AppendUint64(b, c.Budget)
	b = binary.LittleEndian.AppendUint32(b, c.Hosed)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(c.Token)))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(c.Addr)))
	b = append(append(b, c.Token...), c.Addr...)
	if c.Err != nil {
		text := c.Err.Error()
		b = append(b, text[:min(len(text), mostText)]...)
	}
	return b
}

// Decode reads what Encode has written; the token and the address are parts of b. The error wraps ErrMalformed.
func Decode(b []byte) (Card, error) {
	const header = 1 + 4*8 + 4 + 2*2
	if len(b) < header {
		return Card{}, ErrMalformed
	}
	c := Card{
		CPU:    b[0]&1 != 0,
		Keyed:  b[0]&keyedFlag != 0,
		Bytes:  int(binary.LittleEndian.Uint64(b[1:])),
		RAddr:  binary.LittleEndian.Uint64(b[9:]),
		RKey:   binary.LittleEndian.Uint64(b[17:]),
		Budget: binary.LittleEndian.Uint64(b[25:]),
		Hosed:  binary.LittleEndian.Uint32(b[33:]),
	}
	n, k := int(binary.LittleEndian.Uint16(b[37:])), int(binary.LittleEndian.Uint16(b[39:]))
	rest := b[header:]
	if n+k > len(rest) || c.Bytes < 0 {
		return Card{}, ErrMalformed
	}
	if k > 0 {
		c.Addr = rest[n : n+k : n+k]
	}
	if b[0]&2 != 0 {
		c.Token = transport.Token(rest[:n:n])
	}
	if b[0]&4 != 0 {
		c.Err = errors.New(string(rest[n+k:]))
		for i, s := range sentinels {
			if b[0]&(8<<i) != 0 {
				c.Err = toldError{c.Err.Error(), s}
				break
			}
		}
	}
	return c, nil
}
