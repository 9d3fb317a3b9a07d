package sched

import (
	"runtime"
	"time"
)

// TurnLasts is after how long a goroutine that is in C or in the kernel most of the time gives its turn up. The runtime's monitor takes the turn to run Go
// code from one that has had it for 10 ms without a break and is there whenever the monitor looks; and having found one such it looks every 20 us for
// others. That is its thread, the signals and the way back to a turn, on the core of the goroutine where a rank has one only, and for a rank that
// sleeps in a barrier thousands of wake-ups a second. So nobody lets it come to that.
const TurnLasts = 8 * time.Millisecond

// GiveTurn lets other goroutines run before the caller goes on, as the runtime has him do every 10 ms otherwise: see TurnLasts.
func GiveTurn() { runtime.Gosched() }

// Gave returns when a goroutine of this rank last gave its turn up by GiveTurnDue, or in a wait.
func (s *Sched) Gave() time.Duration { return time.Duration(s.gave.Load()) }

// GiveTurnDue gives the caller's turn up if no goroutine of this rank has done so for TurnLasts; now is what the clock says. It takes less than
// a microsecond, but for the thread that the runtime wakes each time where one more could run Go code.
func (s *Sched) GiveTurnDue(now time.Duration) {
	if now-s.Gave() >= TurnLasts {
		s.giveTurn(now)
	}
}

func (s *Sched) giveTurn(now time.Duration) {
	s.gave.Store(int64(now))
	GiveTurn()
}
