package sched

import (
	"context"
	"time"
)

// Thread is an operating system thread of its own, for a helper that must be on time: it naps with a lateness of
// microseconds where a goroutine's sleep below a millisecond is up to a millisecond late. It belongs to the function that
// Sched.Thread runs.
type Thread struct{ s *Sched }

// Thread runs f beside the caller on a thread that serves nothing else until f returns. In virtual time it is a goroutine
// of the rank like any other, whose naps end exactly when they should.
func (s *Sched) Thread(f func(*Thread)) {
	if s.sim != nil {
		s.Go(func() { f(&Thread{s}) })
		return
	}
	s.Go(func() {
		release := s.claimThread()
		defer release()
		f(&Thread{s})
	})
}

// Nap sleeps for d. It returns a few microseconds late where a processor is free, later where all are busy.
func (t *Thread) Nap(d time.Duration) {
	if t.s.sim != nil {
		_ = t.s.Sleep(context.Background(), d) // which does not end
		return
	}
	t.s.nap(d)
}
