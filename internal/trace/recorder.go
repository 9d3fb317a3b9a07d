package trace

import "sync"

// Recorder takes events from a data path. Make one with NewRecorder. Any goroutine may call Add; one at a time Flush.
type Recorder struct {
	mu   sync.Mutex
	now  []Event   // the chunk that takes events
	full [][]Event // those to be written
	free [][]Event
	lost uint64
}

// ChunkEvents is the number of events of a chunk.
const ChunkEvents = 4096

// NewRecorder returns a recorder with room for so many chunks, at least two.
func NewRecorder(chunks int) *Recorder {
	r := &Recorder{}
	chunks = max(chunks, 2)
	r.full = make([][]Event, 0, chunks)
	for range chunks {
		r.free = append(r.free, make([]Event, 0, ChunkEvents))
	}
	r.now = r.pop()
	return r
}

// pop takes a free chunk; the caller knows that there is one.
func (r *Recorder) pop() []Event {
	n := len(r.free) - 1
	c := r.free[n]
	r.free = r.free[:n]
	return c[:0]
}

// Add copies an event, or loses it (T1). It reports whether the current chunk has just become full: time to Flush.
func (r *Recorder) Add(e *Event) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.now) == cap(r.now) {
		if len(r.free) == 0 {
			r.lost++
			return true
		}
		r.full = append(r.full, r.now)
		r.now = r.pop()
	}
	r.now = append(r.now, *e)
	return len(r.now) == cap(r.now)
}

// Flush hands all events so far to w and flushes it. Add goes on meanwhile.
func (r *Recorder) Flush(w *Writer) {
	for {
		c, lost := r.take()
		w.Lose(lost)
		if len(c) == 0 {
			break
		}
		for i := range c {
			w.Write(&c[i])
		}
		r.mu.Lock()
		r.free = append(r.free, c)
		r.mu.Unlock()
	}
	w.Flush()
}

// take returns the oldest chunk with events. The current one is taken only if another can take its place.
func (r *Recorder) take() ([]Event, uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.full) > 0 {
		c := r.full[0]
		r.full = append(r.full[:0], r.full[1:]...)
		return c, r.lost
	}
	if len(r.now) == 0 || len(r.free) == 0 {
		return nil, r.lost
	}
	c := r.now
	r.now = r.pop()
	return c, r.lost
}
