package trace

import (
	"encoding/binary"
	"fmt"
	"io"
)

// The first bytes of a file of version 1, which is only read, and of the one that is written.
const (
	magic1 = "PGASTRC1"
	magic  = "PGASTRC2"
)

// Tags of records.
const (
	tagStack = 'S'
	tagRange = 'R'
	tagEvent = 'E'
	tagLost  = 'L'
	tagEnd   = 'Z'
)

// Writer encodes events. Make one with NewWriter. It is one goroutine's, and writes when it has gathered some 32 KiB.
type Writer struct {
	out    io.Writer
	buf    []byte
	stacks map[[MaxStack]uintptr]uint64
	ranges map[Range]uint64
	last   int64
	events uint64
	lost   uint64
	err    error
}

const flushAt = 32 << 10

// NewWriter begins a file. Errors of w come up in Close.
func NewWriter(w io.Writer, h Head) *Writer {
	t := &Writer{out: w, stacks: map[[MaxStack]uintptr]uint64{}, ranges: map[Range]uint64{{}: 0}}
	t.buf = append(t.buf, magic...)
	for _, v := range []int{h.Rank, h.Ranks, h.Node} {
		t.buf = binary.AppendUvarint(t.buf, uint64(v))
	}
	return t
}

// Write adds an event. One that does not lie in the range that it names is written without.
func (t *Writer) Write(e *Event) {
	id, ok := t.stacks[e.Stack]
	if !ok {
		id = t.stack(e.Stack)
	}
	to := e.To
	if !to.Holds(e.Off, e.Bytes) {
		to = Range{}
	}
	part, ok := t.ranges[to]
	if !ok {
		part = t.part(to)
	}
	b := append(t.buf, tagEvent)
	b = binary.AppendVarint(b, e.At-t.last)
	b = binary.AppendUvarint(b, uint64(max(e.Took, 0)))
	b = append(b, byte(e.Kind))
	b = binary.AppendUvarint(b, id)
	b = binary.AppendUvarint(b, e.Addr)
	b = binary.AppendUvarint(b, e.Bytes)
	b = binary.AppendVarint(b, int64(e.Peer))
	b = binary.AppendUvarint(b, part)
	if part != 0 {
		b = binary.AppendUvarint(b, e.Off)
	}
	t.buf = b
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

// part writes a range that has not been seen.
func (t *Writer) part(r Range) uint64 {
	n := uint64(len(t.ranges))
	t.ranges[r] = n
	t.buf = append(t.buf, tagRange)
	for _, v := range []uint64{uint64(r.ID), r.Start, r.Bytes} {
		t.buf = binary.AppendUvarint(t.buf, v)
	}
	return n
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
