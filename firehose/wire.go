package firehose

import (
	"encoding/binary"
	"fmt"
)

// A move on the wire, little endian: its ID (8 bytes), the numbers of New and of Old runs (2 each), a range and an
// offset of the put (4 and 8), then the runs (a bucket and a count, 8 and 4 each), then the put's bytes. A reply: its
// ID (8), status and whether the put was stored (1 each), the number of keys (2), then the keys (8 each).
const (
	moveHeader  = 24
	runBytes    = 12
	replyHeader = 12
	keyBytes    = 8

	// mostPut is the largest put that travels in a move, bytes.
	mostPut = 3 << 10

	// LeastPayload is the smallest message in which firehoses can be moved: one bucket for another.
	LeastPayload = moveHeader + 3*runBytes
)

// wireLimits are what a message has room for.
type wireLimits struct {
	payload int
	runs    int // of New and Old together
	buckets int // of New
}

// limitsOf returns what a message of payload bytes has room for. At worst every other bucket of a request is missing,
// and every missing one takes a victim that is nobody's neighbour; and all its keys must fit into the reply.
func limitsOf(payload int) wireLimits {
	w := wireLimits{payload: payload, runs: min(1<<16-1, (payload-moveHeader)/runBytes)}
	w.buckets = min((2*w.runs-1)/3, (payload-replyHeader)/keyBytes)
	return w
}

// fits reports whether a put of n bytes fits into a move of so many runs.
func (w wireLimits) fits(runs, n int) bool { return moveHeader+runs*runBytes+n <= w.payload }

// Append appends the wire form of m to b.
func (m *Move) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, m.ID)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(m.New)))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(m.Old)))
	b = binary.LittleEndian.AppendUint32(b, m.Put.Range)
	b = binary.LittleEndian.AppendUint64(b, m.Put.Off)
	for _, runs := range [...][]Run{m.New, m.Old} {
		for _, r := range runs {
			b = binary.LittleEndian.AppendUint64(b, uint64(r.First))
			b = binary.LittleEndian.AppendUint32(b, r.Count)
		}
	}
	return append(b, m.Put.Data...)
}

// Parse sets m to what Append wrote. m's lists are used again; its put aliases b. That the buckets exist and belong to
// whom the move comes from is the Server's to check.
func (m *Move) Parse(b []byte) error {
	m.New, m.Old, m.Put = m.New[:0], m.Old[:0], Put{}
	if len(b) < moveHeader {
		return fmt.Errorf("%w: a move of %d bytes", ErrMove, len(b))
	}
	m.ID = binary.LittleEndian.Uint64(b)
	n, o := int(binary.LittleEndian.Uint16(b[8:])), int(binary.LittleEndian.Uint16(b[10:]))
	m.Put.Range, m.Put.Off = binary.LittleEndian.Uint32(b[12:]), binary.LittleEndian.Uint64(b[16:])
	b = b[moveHeader:]
	if len(b) < (n+o)*runBytes {
		return fmt.Errorf("%w: %d runs in %d bytes", ErrMove, n+o, len(b))
	}
	for i := range n + o {
		r := Run{First: Bucket(binary.LittleEndian.Uint64(b)), Count: binary.LittleEndian.Uint32(b[8:])}
		b = b[runBytes:]
		if i < n {
			m.New = append(m.New, r)
		} else {
			m.Old = append(m.Old, r)
		}
	}
	m.Put.Data = b
	return nil
}

// Append appends the wire form of r to b.
func (r *Reply) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, r.ID)
	b = append(b, byte(r.Status), byte(b2u(r.Stored)))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(r.Keys)))
	for _, k := range r.Keys {
		b = binary.LittleEndian.AppendUint64(b, k)
	}
	return b
}

// Parse sets r to what Append wrote. r's list is used again.
func (r *Reply) Parse(b []byte) error {
	r.Keys = r.Keys[:0]
	if len(b) < replyHeader {
		return fmt.Errorf("%w: a reply of %d bytes", ErrMove, len(b))
	}
	r.ID = binary.LittleEndian.Uint64(b)
	r.Status, r.Stored = Status(b[8]), b[9] == 1
	n := int(binary.LittleEndian.Uint16(b[10:]))
	b = b[replyHeader:]
	if len(b) != n*keyBytes || r.Status > statusMalformed {
		return fmt.Errorf("%w: a reply of status %d with %d keys in %d bytes", ErrMove, r.Status, n, len(b))
	}
	for range n {
		r.Keys = append(r.Keys, binary.LittleEndian.Uint64(b))
		b = b[keyBytes:]
	}
	return nil
}
