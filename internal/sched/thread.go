package sched

import (
	"fmt"
	"time"
)

// Thread is an operating system thread of its own, for a helper that must be on time: it naps with a lateness of
// microseconds where a goroutine's sleep below a millisecond is up to a millisecond late. It belongs to the function that
// Sched.Thread runs.
type Thread struct {
	s    *Sched
	core int // to which it is bound, plus one; 0: to none
}

// Thread runs f beside the caller on a thread that serves nothing else until f returns. In virtual time it is a goroutine
// of the rank like any other, whose naps end exactly when they should.
func (s *Sched) Thread(f func(*Thread)) {
	if s.sim != nil {
		s.Go(func() { f(&Thread{s: s}) })
		return
	}
	s.Go(func() {
		release := s.claimThread()
		t := &Thread{s: s}
		defer func() {
			if t.core == 0 {
				release()
			} // else the runtime ends the thread, which is bound, with the goroutine
		}()
		f(t)
	})
}

// Bind has the thread run on that core alone from now on; it may be one that the process is not bound to. In virtual time, and where
// threads cannot be bound, it does nothing.
func (t *Thread) Bind(core int) error {
	if t.s.sim != nil || t.core == core+1 {
		return nil
	}
	if err := t.s.bind(core); err != nil {
		return fmt.Errorf("bind a thread to core %d: %w", core, err)
	}
	t.core = core + 1
	return nil
}

// Nap sleeps for d. It returns a few microseconds late where a processor is free, later where all are busy.
func (t *Thread) Nap(d time.Duration) {
	if t.s.sim != nil {
		t.s.sim.nap(d)
		return
	}
	t.s.nap(d)
}
