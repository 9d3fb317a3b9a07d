package timeline

import (
	"sync"
	"sync/atomic"
	"time"
)

// Kind is what a span is of.
type Kind uint8

// Kinds.
const (
	Wait Kind = iota
	Collective
	Transfer
	Registration
	kinds
)

// String names the kind as the picture does.
func (k Kind) String() string {
	return [...]string{"wait", "collective", "transfer", "registration"}[k]
}

// Frames is how many return addresses a span carries: enough to reach the program from the library's innermost wait.
const Frames = 20

// Span is something that took time. Op must be a constant, or live as long as the recorder.
type Span struct {
	At, Took time.Duration // by the rank's clock; Took 0: not known, it has only been begun
	Op       string        // in the API's words
	Peer     int           // the other rank; -1: none, or all
	Bytes    int64
	Kind     Kind
	Stack    [Frames]uintptr // return addresses, innermost first; zero-padded
}

// Which transfers are kept.
const (
	Least = 4096
	Every = 64
)

// room is how many spans wait to be written at most: 3 MB of them.
const room = 16 << 10

// Recorder takes spans. Make one with NewRecorder. Any goroutine may call Add and Keeps; one at a time Take.
type Recorder struct {
	small atomic.Uint64 // transfers below Least so far

	mu    sync.Mutex // guards what follows
	spans []Span     // full: what comes is lost
	spare []Span     // takes its place
	lost  uint64
}

// NewRecorder returns an empty recorder.
func NewRecorder() *Recorder {
	return &Recorder{spans: make([]Span, 0, room), spare: make([]Span, 0, room)}
}

// Keeps reports whether a transfer of bytes is one to take down.
func (r *Recorder) Keeps(bytes int64) bool { return bytes >= Least || r.small.Add(1)%Every == 1 }

// Add copies a span, or loses it (L1).
func (r *Recorder) Add(s *Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.spans) == cap(r.spans) {
		r.lost++
		return
	}
	r.spans = append(r.spans, *s)
}

// Take returns the spans since the last time, which are the caller's until he takes again, and how many were lost in all.
func (r *Recorder) Take() ([]Span, uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.spans
	r.spans, r.spare = r.spare[:0], out
	return out, r.lost
}
