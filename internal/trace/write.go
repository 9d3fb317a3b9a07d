package trace

import (
	"encoding/binary"
	"fmt"
	"io"
)

const magic = "PGASTRC1"

// Tags of records.
const (
	tagStack = 'S'
	tagEvent = 'E'
	tagLost  = 'L'
	tagEnd   = 'Z'
)

// Writer encodes events. Make one with NewWriter. It is one goroutine's, and writes when it has gathered some 32 KiB.
type Writer struct {
	out    io.Writer
	buf    []byte
	stacks map[[MaxStack]uintptr]uint64
	last   int64
	events uint64
	lost   uint64
	err    error
}

const flushAt = 32 << 10

// NewWriter begins a file. Errors of w come up in Close.
func NewWriter(w io.Writer, h Head) *Writer {
	t := &Writer{out: w, stacks: map[[MaxStack]uintptr]uint64{}}
	t.buf = append(t.buf, magic...)
	for _, v := range []int{h.Rank, h.Ranks, h.Node} {
		t.buf = binary.AppendUvarint(t.buf, uint64(v))
	}
	return t
}

// Write adds an event.
func (t *Writer) Write(e *Event) {
	id, ok := t.stacks[e.Stack]
	if !ok {
		id = t.stack(e.Stack)
	}
	b := append(t.buf, tagEvent)
	b = binary.AppendVarint(b, e.At-t.last)
	b = binary.AppendUvarint(b, uint64(max(e.Took, 0)))
	b = append(b, byte(e.Kind))
	b = binary.AppendUvarint(b, id)
	b = binary.AppendUvarint(b, e.Addr)
	b = binary.AppendUvarint(b, e.Bytes)
	t.buf = binary.AppendVarint(b, int64(e.Peer))
	t.last = e.At
	t.events++
	if len(t.buf) >= flushAt {
		t.Flush()
	}
}

// stack writes a stack that has not been seen.
func (t *Writer) stack(s [MaxStack]uintptr) uint64 {
	id := uint64(len(t.stacks))
	t.stacks[s] = id
	n := len(s)
	for n > 0 && s[n-1] == 0 {
		n--
	}
	t.buf = binary.AppendUvarint(append(t.buf, tagStack), uint64(n))
	for _, pc := range s[:n] {
		t.buf = binary.AppendUvarint(t.buf, uint64(pc))
	}
	return id
}

// Lose notes how many events have been lost in all.
func (t *Writer) Lose(total uint64) {
	if total != t.lost {
		t.lost = total
		t.buf = binary.AppendUvarint(append(t.buf, tagLost), total)
	}
}

// Flush writes what has been gathered.
func (t *Writer) Flush() {
	if t.err == nil && len(t.buf) > 0 {
		if _, err := t.out.Write(t.buf); err != nil {
			t.err = fmt.Errorf("write a trace: %w", err)
		}
	}
	t.buf = t.buf[:0]
}

// Close ends the file's contents and returns the first error of all. It does not close the underlying writer.
func (t *Writer) Close() error {
	t.buf = binary.AppendUvarint(append(t.buf, tagEnd), t.events)
	t.Flush()
	return t.err
}
