package pgas

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"gopgas/internal/callsite"
	"gopgas/internal/proto"
	"gopgas/internal/sched"
	"gopgas/internal/trace"
)

// recorder writes this rank's trace while the program runs.
type recorder struct {
	rec  *trace.Recorder
	news sched.Event
	quit atomic.Bool

	mu  sync.Mutex // guards what follows; whoever flushes holds it
	out *os.File
	w   *trace.Writer
}

// The recorder's room: some eight megabytes, which take a program that does nothing but transfer 60 ms to fill, and how
// long it waits between two looks.
const (
	recordChunks = 16
	recordEvery  = 20 * time.Millisecond
)

// startRecorder creates this rank's file in the directory and writes to it what the engine records.
func startRecorder(dir string, h trace.Head, s *sched.Sched) (*recorder, *proto.Recording, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, nil, fmt.Errorf("record a trace (%s): %w", envTrace, err)
	}
	out, err := os.Create(filepath.Join(dir, trace.FileName(h.Rank)))
	if err != nil {
		return nil, nil, fmt.Errorf("record a trace (%s): %w", envTrace, err)
	}
	r := &recorder{rec: trace.NewRecorder(recordChunks), out: out, w: trace.NewWriter(out, h)}
	s.Go(func() {
		for !r.quit.Load() {
			r.news.Wait(s, recordEvery)
			r.flush()
		}
	})
	return r, &proto.Recording{Clock: callsite.New(s.Now), To: r.rec}, nil
}

func (r *recorder) flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.out != nil {
		r.rec.Flush(r.w)
	}
}

// close writes the rest and ends the file. Of nil it does nothing.
func (r *recorder) close() error {
	if r == nil {
		return nil
	}
	r.quit.Store(true)
	r.news.Set()
	r.flush()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.out == nil {
		return nil
	}
	err := errors.Join(r.w.Close(), r.out.Close())
	r.out = nil
	if err != nil {
		return fmt.Errorf("record a trace (%s): %w", envTrace, err)
	}
	return nil
}
