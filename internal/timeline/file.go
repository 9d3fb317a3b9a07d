package timeline

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Head is the first line of a rank's file.
type Head struct {
	Rank int    `json:"rank"`
	Node string `json:"node"`
	PID  int    `json:"pid"`
	Zero int64  `json:"zero"` // nanoseconds
}

// Row is a span in a rank's file. Times are nanoseconds of the rank's clock.
type Row struct {
	At    int64  `json:"t"`
	Took  int64  `json:"d,omitempty"`
	Kind  Kind   `json:"k"`
	Op    string `json:"o"`
	Peer  int    `json:"p"`
	Bytes int64  `json:"b,omitempty"`
	Where string `json:"w,omitempty"`    // the program's source line
	Lost  uint64 `json:"lost,omitempty"` // nothing else: so many spans were lost in all
}

// MostRows is how many spans a file holds; what comes later is lost.
const MostRows = 1 << 18

// FileName is the name of a rank's file.
func FileName(rank int) string { return "timeline." + strconv.Itoa(rank) + ".jsonl" }

// Writer writes a rank's file. Make one with NewWriter. It is one goroutine's.
type Writer struct {
	out  *bufio.Writer
	enc  *json.Encoder
	rows int
	most int
	full uint64 // lost for want of room in the file
	lost uint64 // told so far
	err  error
}

// NewWriter begins a file. Errors of w come up in Flush.
func NewWriter(w io.Writer, h Head) *Writer {
	out := bufio.NewWriterSize(w, 64<<10)
	t := &Writer{out: out, enc: json.NewEncoder(out), most: MostRows}
	t.encode(h)
	return t
}

func (t *Writer) encode(v any) {
	if err := t.enc.Encode(v); t.err == nil {
		t.err = err
	}
}

// Write adds a span, whose stack is where.
func (t *Writer) Write(s *Span, where string) {
	if t.rows == t.most {
		t.full++
		return
	}
	t.rows++
	t.encode(Row{At: int64(s.At), Took: int64(s.Took), Kind: s.Kind, Op: s.Op, Peer: s.Peer, Bytes: s.Bytes, Where: where})
}

// Flush writes what has been gathered, and how many spans the recorder has lost. It returns the first error of all.
func (t *Writer) Flush(lost uint64) error {
	if all := lost + t.full; all != t.lost {
		t.lost = all
		t.encode(Row{Lost: all})
	}
	if err := t.out.Flush(); t.err == nil {
		t.err = err
	}
	if t.err != nil {
		return fmt.Errorf("write a timeline: %w", t.err)
	}
	return nil
}

// ErrFormat: what is read is no rank's file.
var ErrFormat = errors.New("not a timeline")

// read returns a file's rows, up to the first line that is not whole (L2).
func read(r io.Reader) (h Head, rows []Row, lost uint64, err error) {
	d := json.NewDecoder(r)
	if err := d.Decode(&h); err != nil {
		return h, nil, 0, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	for {
		var row Row
		switch err := d.Decode(&row); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return h, rows, lost, nil
		case err != nil:
			return h, rows, lost, fmt.Errorf("%w: row %d: %w", ErrFormat, len(rows), err)
		}
		switch {
		case row.Lost > 0:
			lost = row.Lost
		case row.Kind < kinds && row.At >= 0 && row.Took >= 0:
			rows = append(rows, row)
		}
	}
}
