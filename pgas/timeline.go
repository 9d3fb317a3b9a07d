package pgas

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"gopgas/internal/sched"
	"gopgas/internal/timeline"
)

// shower writes what this rank did when, while the program runs.
type shower struct {
	rec  *timeline.Recorder
	news sched.Event
	quit atomic.Bool

	mu    sync.Mutex // guards what follows; whoever flushes holds it
	out   *os.File
	w     *timeline.Writer
	lines map[[timeline.Frames]uintptr]string // by stack: the program's line
}

// showEvery is how long a span waits for the file at most.
const showEvery = 50 * time.Millisecond

// startShower creates this rank's file in the directory and has the scheduler's waits taken down. Engine and teams take the
// recorder from it.
func startShower(dir string, h timeline.Head, s *sched.Sched) (*shower, error) {
	if err := makeFolder(dir); err != nil {
		return nil, fmt.Errorf("show what this rank does (%s): %w", envTimeline, err)
	}
	out, err := os.Create(filepath.Join(dir, timeline.FileName(h.Rank)))
	if err != nil {
		return nil, fmt.Errorf("show what this rank does (%s): %w", envTimeline, err)
	}
	h.Zero = zeroOf(sharedClock, s.Now)
	r := &shower{
		rec: timeline.NewRecorder(), out: out, w: timeline.NewWriter(out, h), lines: make(map[[timeline.Frames]uintptr]string),
	}
	if err := r.flush(); err != nil { // a rank that dies at once has a file all the same
		return nil, errors.Join(err, out.Close())
	}
	s.Observe(r)
	s.Go(func() {
		for !r.quit.Load() {
			r.news.Wait(s, showEvery)
			_ = r.flush() // the error comes again at the end
		}
	})
	return r, nil
}

// zeroOf is what the shared clock said when the rank's own was at 0. They are read one after the other, and this program may lose its core in
// between, which would put all that the rank has done beside what the others did: of some tries the one counts that took least.
func zeroOf(shared func() int64, own func() time.Duration) (zero int64) {
	least := time.Duration(math.MaxInt64)
	for range 16 {
		before := own()
		at := shared()
		took := own() - before
		if took < least {
			least, zero = took, at-int64(before+took/2)
		}
	}
	return zero
}

// Waited implements sched.Observer.
func (r *shower) Waited(what sched.What, began, ended time.Duration) {
	s := timeline.Span{At: began, Took: max(1, ended-began), Op: what.Op, Peer: max(-1, what.Peer), Kind: timeline.Wait}
	runtime.Callers(3, s.Stack[:]) // above Spin.End
	r.rec.Add(&s)
}

// flush writes what there is.
func (r *shower) flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.out == nil {
		return nil
	}
	spans, lost := r.rec.Take()
	for i := range spans {
		r.w.Write(&spans[i], r.line(&spans[i].Stack))
	}
	return r.w.Flush(lost)
}

// line returns the program's line of a stack.
func (r *shower) line(stack *[timeline.Frames]uintptr) string {
	if where, ok := r.lines[*stack]; ok {
		return where
	}
	n := 0
	for n < len(stack) && stack[n] != 0 {
		n++
	}
	where := sched.Where(stack[:n])
	r.lines[*stack] = where
	return where
}

// close writes the rest and ends the file. Of nil it does nothing.
func (r *shower) close() error {
	if r == nil {
		return nil
	}
	r.quit.Store(true)
	r.news.Set()
	err := r.flush()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.out == nil {
		return nil
	}
	err = errors.Join(err, r.out.Close())
	r.out = nil
	if err != nil {
		return fmt.Errorf("show what this rank does (%s): %w", envTimeline, err)
	}
	return nil
}
