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
	"time"
)

// MaxOutputLine is the longest line that is kept whole; a longer one is broken with a newline.
const MaxOutputLine = 16 << 20

// outlet is what all sinks share that write to the same: one lock, because stdout and stderr are often one terminal, and what a
// watcher must know to tell a slow reader from a rank that prints nothing. Who watches the job does not take the lock.
type outlet struct {
	mu     sync.Mutex            // held by who writes, as long as the reader takes
	failed atomic.Pointer[error] // of the first write that did
	writes atomic.Uint64         // begun and ended: odd while somebody waits for the reader
	unread func()                // called once, when it turns out that the reader has gone; nil: nothing is
}

// lost returns why some of the ranks' output was not written: a full disk, for instance. That nobody reads any more is no mistake.
func (o *outlet) lost() error {
	failed := o.failed.Load()
	if failed == nil || errors.Is(*failed, syscall.EPIPE) || errors.Is(*failed, os.ErrClosed) || errors.Is(*failed, io.ErrClosedPipe) {
		return nil
	}
	return fmt.Errorf("the ranks' output is not complete: %w", *failed)
}

// sink is where whole lines go.
type sink struct {
	o *outlet
	w io.Writer
}

// write writes whole lines. Errors are dropped: what follows from them is not for the rank that happened to print.
func (s sink) write(b []byte) {
	s.o.mu.Lock()
	defer s.o.mu.Unlock()
	s.o.writes.Add(1)
	if _, err := s.w.Write(b); err != nil && s.o.failed.CompareAndSwap(nil, &err) && errors.Is(err, syscall.EPIPE) && s.o.unread != nil {
		s.o.unread()
	}
	s.o.writes.Add(1)
}

// screens are the launcher's own streams as sinks.
type screens []sink

// sink returns that of w. It shares an outlet with an earlier one unless the two are certainly not the same: then a reader who reads one of them is not
// kept from it by who does not read the other.
func (s *screens) sink(w io.Writer) sink {
	for _, other := range *s {
		if !apart(other.w, w) {
			return sink{other.o, w}
		}
	}
	to := sink{new(outlet), w}
	*s = append(*s, to)
	return to
}

// apart says whether a and b are files, and not the same or both terminals.
func apart(a, b io.Writer) bool {
	var infos [2]os.FileInfo
	for i, w := range []io.Writer{a, b} {
		f, ok := w.(*os.File)
		if !ok {
			return false
		}
		var err error
		if infos[i], err = f.Stat(); err != nil {
			return false
		}
	}
	return !os.SameFile(infos[0], infos[1]) && infos[0].Mode()&infos[1].Mode()&os.ModeCharDevice == 0
}

// writes counts what the sinks have begun and ended to write, and says whether one waits for its reader.
func (s screens) writes() (n uint64, waiting bool) {
	for _, to := range s {
		w := to.o.writes.Load()
		n, waiting = n+w, waiting || w%2 == 1
	}
	return n, waiting
}

// lost returns why some of what went to the sinks was not written.
func (s screens) lost() error {
	for _, to := range s {
		if err := to.o.lost(); err != nil {
			return err
		}
	}
	return nil
}

// logPatience is how long who tells something waits until it is written.
const logPatience = time.Second

// logger writes the launcher's own lines. Who has one waits for a moment until it is written, so that what follows from it comes second, and no longer: a
// job is watched, and ended, although nobody reads what it says.
type logger struct {
	to sink

	mu    sync.Mutex
	lines [][]byte      // not written yet
	late  bool          // somebody has waited in vain for those
	idle  chan struct{} // closed when all are written; nil: they are
}

func (l *logger) logf(format string, args ...any) {
	l.write(fmt.Appendf(nil, "pgasrun: "+format+"\n", args...))
}

func (l *logger) write(b []byte) {
	l.mu.Lock()
	l.lines = append(l.lines, b)
	if l.idle == nil {
		l.idle = make(chan struct{})
		go l.run(l.idle)
	}
	idle, late := l.idle, l.late
	l.mu.Unlock()
	if late {
		return
	}
	t := time.NewTimer(logPatience)
	defer t.Stop()
	select {
	case <-idle:
	case <-t.C:
		l.mu.Lock()
		l.late = l.idle == idle
		l.mu.Unlock()
	}
}

// run writes until no line is left.
func (l *logger) run(idle chan struct{}) {
	defer close(idle)
	for {
		l.mu.Lock()
		if len(l.lines) == 0 {
			l.idle, l.late = nil, false
			l.mu.Unlock()
			return
		}
		b := l.lines[0]
		l.lines = l.lines[1:]
		l.mu.Unlock()
		l.to.write(b)
	}
}

// written is closed when all lines of before are written.
func (l *logger) written() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.idle != nil {
		return l.idle
	}
	none := make(chan struct{})
	close(none)
	return none
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
