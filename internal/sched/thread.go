package sched

import "time"

// Thread is an operating system thread of its own, for a helper that must be on time: it naps with a lateness of
// microseconds where a goroutine's sleep below a millisecond is up to a millisecond late. It belongs to the function that
// Sched.Thread runs.
type Thread struct{ s *Sched }

// Thread runs f beside the caller on a thread that serves nothing else until f returns.
func (s *Sched) Thread(f func(*Thread)) {
	s.Go(func() {
		release := s.claimThread()
		defer release()
		f(&Thread{s})
	})
}

// Nap sleeps for d. It returns a few microseconds late where a processor is free, later where all are busy.
func (t *Thread) Nap(d time.Duration) { t.s.nap(d) }
