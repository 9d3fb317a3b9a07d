package pgas

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"gopgas/internal/callsite"
	"gopgas/internal/profile"
	"gopgas/internal/proto"
	"gopgas/internal/sched"
	"gopgas/internal/timeline"
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

// startRecording starts what the configuration wants taken down; nil: nothing.
func (w *World) startRecording(s *sched.Sched, node int) (*proto.Recording, error) {
	marks, err := profile.Parse(w.cfg.Profile)
	if err != nil {
		return nil, err
	}
	rank := w.job.Rank()
	if w.cfg.Timeline != "" {
		head := timeline.Head{Rank: rank, Node: w.cards[rank].host(), PID: os.Getpid()}
		if w.shower, err = startShower(w.cfg.Timeline, head, s); err != nil {
			return nil, err
		}
	}
	if w.cfg.Trace != "" {
		if w.recorder, err = startRecorder(w.cfg.Trace, trace.Head{Rank: rank, Ranks: w.job.Size(), Node: node}, s); err != nil {
			return nil, errors.Join(err, w.shower.close())
		}
	}
	if w.recorder == nil && w.shower == nil && marks == nil {
		return nil, nil
	}
	out := &proto.Recording{Marks: marks}
	if w.recorder != nil {
		out.To = w.recorder.rec
	}
	if w.shower == nil {
		out.Clock = callsite.New(s.Now)
		return out, nil
	}
	// The processor's counter is cheaper to read, but its measured rate would drift away from the other ranks' within minutes.
	out.Line, out.Clock = w.shower.rec, callsite.Plain(s.Now)
	return out, nil
}

// startRecorder creates this rank's file in the directory, to which what is recorded is written.
func startRecorder(dir string, h trace.Head, s *sched.Sched) (*recorder, error) {
	if err := makeFolder(dir); err != nil {
		return nil, fmt.Errorf("record a trace (%s): %w", envTrace, err)
	}
	out, err := os.Create(filepath.Join(dir, trace.FileName(h.Rank)))
	if err != nil {
		return nil, fmt.Errorf("record a trace (%s): %w", envTrace, err)
	}
	r := &recorder{rec: trace.NewRecorder(recordChunks), out: out, w: trace.NewWriter(out, h)}
	s.Go(func() {
		for !r.quit.Load() {
			r.news.Wait(s, recordEvery)
			r.flush()
		}
	})
	return r, nil
}

// makeFolder makes the folder for files that the ranks write, unless it is there: another rank may have made it. What it is to lie in
// must be there: a path that was misspelled is no reason to make folders.
func makeFolder(dir string) error {
	err := os.Mkdir(dir, 0o777)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: wanted a folder to write to, or the name of a new one in a folder that is there", err)
	case errors.Is(err, fs.ErrExist):
		info, serr := os.Stat(dir)
		if serr != nil || !info.IsDir() {
			return fmt.Errorf("%w, and is no folder", err)
		}
		return nil
	}
	return err
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
