package trace

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// ErrCut says that a file ends before its last record: its rank did not end well. What was read is good.
var ErrCut = errors.New("the trace is cut short")

// ErrFormat says that a file is no trace.
var ErrFormat = errors.New("not a trace of this format")

// most is what counts in a header may be.
const most = 1<<31 - 1

// Read reads a whole file. With an error that wraps ErrCut the file's good part is returned too.
func Read(r io.Reader) (*File, error) {
	d := &decoder{in: bufio.NewReader(r)}
	f := &File{}
	var start [len(magic)]byte
	_, err := io.ReadFull(d.in, start[:])
	switch {
	case err == nil && string(start[:]) == magic:
		f.Format = 2
	case err == nil && string(start[:]) == magic1:
		f.Format = 1
	default:
		return nil, fmt.Errorf("read a trace: it begins with %q, want %q or %q: %w", start[:], magic, magic1, ErrFormat)
	}
	for _, v := range []*int{&f.Rank, &f.Ranks, &f.Node} {
		*v = int(d.count(most))
	}
	if d.err == nil && f.Rank >= f.Ranks {
		d.fail("rank %d of %d", f.Rank, f.Ranks)
	}
	if d.err != nil {
		return nil, fmt.Errorf("read a trace's head: %w", d.err)
	}
	d.records(f)
	slices.SortStableFunc(f.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	switch {
	case errors.Is(d.err, ErrCut):
		return f, fmt.Errorf("read the trace of rank %d: after %d events: %w", f.Rank, len(f.Events), d.err)
	case d.err != nil:
		return nil, fmt.Errorf("read the trace of rank %d: after %d events: %w", f.Rank, len(f.Events), d.err)
	}
	return f, nil
}

// decoder reads varints and keeps the first error.
type decoder struct {
	in     *bufio.Reader
	err    error
	stacks [][MaxStack]uintptr
	ranges []Range
	last   int64
}

// records reads up to the end.
func (d *decoder) records(f *File) {
	for {
		switch tag := d.byte(); {
		case d.err != nil:
			return
		case tag == tagStack:
			d.stack()
		case tag == tagRange && f.Format > 1:
			d.part()
		case tag == tagEvent:
			if e := d.event(f.Format > 1); d.err == nil {
				f.Events = append(f.Events, e)
			}
		case tag == tagLost:
			f.Lost = d.uvarint()
		case tag == tagEnd:
			if n := d.uvarint(); d.err == nil && n != uint64(len(f.Events)) {
				d.fail("%d events, but it says that there are %d", len(f.Events), n)
			}
			if _, err := d.in.ReadByte(); d.err == nil && err == nil {
				d.fail("something follows its end")
			}
			return
		default:
			d.fail("a record of kind %q", tag)
		}
	}
}

func (d *decoder) stack() {
	var s [MaxStack]uintptr
	for i := range d.count(MaxStack) {
		s[i] = uintptr(d.uvarint())
	}
	if d.err == nil {
		d.stacks = append(d.stacks, s)
	}
}

// part reads a range.
func (d *decoder) part() {
	r := Range{ID: uint32(d.count(1<<32 - 1)), Start: d.uvarint(), Bytes: d.uvarint()}
	if !r.Holds(0, 0) {
		d.fail("range %d of %d bytes at %#x", r.ID, r.Bytes, r.Start)
	}
	if d.err == nil {
		d.ranges = append(d.ranges, r)
	}
}

// to reads what of the target's memory an event lies in.
func (d *decoder) to(e *Event) {
	n := d.uvarint()
	switch {
	case d.err != nil || n == 0:
		return
	case n > uint64(len(d.ranges)):
		d.fail("range %d of %d", n, len(d.ranges))
		return
	}
	e.To, e.Off = d.ranges[n-1], d.uvarint()
	if !e.To.Holds(e.Off, e.Bytes) {
		d.fail("%d bytes at %d of a range of %d", e.Bytes, e.Off, e.To.Bytes)
	}
}

func (d *decoder) event(aimed bool) Event {
	e := Event{At: d.last + d.varint(), Took: int64(d.count(1<<63 - 1)), Kind: Kind(d.byte())}
	if e.Kind == 0 || e.Kind >= kindsEnd {
		d.fail("a transfer of %v", e.Kind)
	}
	id := d.uvarint()
	if d.err == nil && id >= uint64(len(d.stacks)) {
		d.fail("stack %d of %d", id, len(d.stacks))
	}
	e.Addr, e.Bytes = d.uvarint(), d.uvarint()
	if e.Addr+e.Bytes < e.Addr {
		d.fail("%d bytes at %#x", e.Bytes, e.Addr)
	}
	peer := d.varint()
	if peer < -1 || peer > most {
		d.fail("peer %d", peer)
	}
	if aimed {
		d.to(&e)
	}
	if d.err == nil {
		e.Peer, e.Stack = int32(peer), d.stacks[id]
	}
	d.last = e.At
	return e
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format+": %w", append(args, ErrFormat)...)
	}
}

// broken notes an error of the input: its end is ErrCut.
func (d *decoder) broken(err error) {
	if d.err != nil {
		return
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = ErrCut
	}
	d.err = err
}

func (d *decoder) byte() byte {
	b, err := d.in.ReadByte()
	if err != nil {
		d.broken(err)
	}
	return b
}

func (d *decoder) uvarint() uint64 {
	v, err := binary.ReadUvarint(d.in)
	switch {
	case err == nil:
		return v
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		d.broken(err)
	default:
		d.fail("%v", err)
	}
	return 0
}

func (d *decoder) varint() int64 {
	v := d.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// count reads a number that may not exceed limit.
func (d *decoder) count(limit uint64) uint64 {
	v := d.uvarint()
	if v > limit {
		d.fail("%d, where %d is the most there may be", v, limit)
		return 0
	}
	return v
}

// FileName is the name of a rank's file in a trace's directory.
func FileName(rank int) string { return fmt.Sprintf("rank-%06d.trace", rank) }

// ReadDir reads the files of a trace, in the order of ranks. Ranks whose file is cut short are returned as far as they go,
// with an error that wraps ErrCut and names them; missing ranks are an error.
func ReadDir(dir string) ([]*File, error) {
	names, err := fs.Glob(os.DirFS(dir), "rank-*.trace") // the folder's own name is no pattern
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("read the trace in %s: it has no file rank-*.trace; PGAS_TRACE=%s makes a program write them", dir, dir)
	}
	var files []*File
	var cut error
	for _, name := range names { // Glob sorts
		f, err := readFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, ErrCut) {
			return nil, err
		}
		cut = errors.Join(cut, err)
		files = append(files, f)
	}
	for i, f := range files {
		if f.Rank != i || f.Ranks != len(files) {
			return nil, fmt.Errorf("read the trace in %s: file %d of %d is of rank %d of %d: files of other runs, or some are missing",
				dir, i, len(files), f.Rank, f.Ranks)
		}
	}
	return files, cut
}

func readFile(name string) (*File, error) {
	in, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read a trace: %w", err)
	}
	defer in.Close()
	f, err := Read(in)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return f, err
}
