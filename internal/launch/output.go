package launch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
)

// MaxOutputLine is the longest line that is kept whole; a longer one is broken with a newline.
const MaxOutputLine = 16 << 20

// outlet is what all sinks of a job share: one lock, because stdout and stderr are often one terminal, and what a
// watcher must know to tell a slow reader from a rank that prints nothing.
type outlet struct {
	mu     sync.Mutex
	failed error         // of the first write that did
	writes atomic.Uint64 // begun and ended: odd while somebody waits for the reader
}

// lost returns why some of the ranks' output was not written: a full disk, for instance. That nobody reads any more is no mistake.
func (o *outlet) lost() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed == nil || errors.Is(o.failed, syscall.EPIPE) || errors.Is(o.failed, os.ErrClosed) || errors.Is(o.failed, io.ErrClosedPipe) {
		return nil
	}
	return fmt.Errorf("the ranks' output is not complete: %w", o.failed)
}

// sink is where whole lines go.
type sink struct {
	o *outlet
	w io.Writer
}

// write writes whole lines. Errors are dropped: a rank must not stop because nobody reads any more.
func (s sink) write(b []byte) {
	s.o.mu.Lock()
	defer s.o.mu.Unlock()
	s.o.writes.Add(1)
	if _, err := s.w.Write(b); err != nil && s.o.failed == nil {
		s.o.failed = err
	}
	s.o.writes.Add(1)
}

func (s sink) logf(format string, args ...any) {
	s.write(fmt.Appendf(nil, "pgasrun: "+format+"\n", args...))
}

// copyLines moves what a rank prints from r to the taps, in whole lines, until r ends (L4).
func copyLines(taps []tap, r io.Reader) {
	buf := make([]byte, 0, 32<<10)
	var scratch []byte
	flush := func(lines []byte) {
		for _, t := range taps {
			scratch = t.write(lines, scratch)
		}
	}
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)] // grow
		}
		n, err := r.Read(buf[len(buf):min(cap(buf), MaxOutputLine)])
		fresh := len(buf)
		buf = buf[:fresh+n]
		if i := bytes.LastIndexByte(buf[fresh:], '\n'); i >= 0 {
			end := fresh + i + 1
			flush(buf[:end])
			buf = buf[:copy(buf, buf[end:])]
		}
		if len(buf) >= MaxOutputLine || err != nil && len(buf) > 0 {
			flush(append(buf, '\n'))
			buf = buf[:0]
		}
		if err != nil {
			return
		}
	}
}

// addLabels appends lines to dst with label before each.
func addLabels(dst, lines []byte, label string) []byte {
	for line := range bytes.Lines(lines) {
		dst = append(append(dst, label...), line...)
	}
	return dst
}

// labelOf is the label of a rank, as wide for all ranks.
func labelOf(rank, size int) string {
	return fmt.Sprintf("%*d: ", len(strconv.Itoa(size-1)), rank)
}
