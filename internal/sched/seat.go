package sched

import (
	"context"
	"time"
)

// Seat is where a wait sleeps while others of its rank look for what it waits for, and rouse it. It is used by one wait at a time. Make one with NewSeat.
type Seat struct {
	naps   Naps
	roused chan struct{}
}

// NewSeat returns a seat.
func NewSeat() Seat { return Seat{NewNaps(), make(chan struct{}, 1)} }

// Still has whoever sits down next not be roused by what was meant for the one before.
func (s *Seat) Still() {
	select {
	case <-s.roused:
	default:
	}
}

// Rouse ends the next sleep, or that which goes on.
func (s *Seat) Rouse() {
	select {
	case s.roused <- struct{}{}:
	default:
	}
}

// Sit is Step of a wait that need not look: it sleeps until it is roused, or for some milliseconds, and reports which. Who sleeps so leaves the processor to
// the rank's other goroutines, and no thread waits for it. Not in virtual time.
func (sp *Spin) Sit(s *Seat) (roused bool, err error) {
	if sp.watch != nil {
		if err := sp.watch.Interrupted(); err != nil {
			return false, sp.lastWords(err)
		}
	}
	if err := Ended(sp.ctx); err != nil {
		return false, err
	}
	now := sp.s.Now()
	if sp.began == 0 {
		sp.begin(now)
	}
	sp.sitting = max(sp.sitting, sitFirst)
	sp.leave(Seldom) // who looks has told the NIC
	sp.unhush(Seldom)
	ctx := sp.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	if s.naps.Listen(ctx, sp.sitting, s.roused) {
		sp.sitting = sitFirst
		return true, nil
	}
	sp.list() // it may last
	sp.sitting = min(2*sp.sitting, sitLongest)
	return false, nil
}

// After how long who sits gets up to see how things are: who looks for him rouses him in time, unless the system keeps that one from his processor.
const (
	sitFirst   = time.Millisecond
	sitLongest = 16 * time.Millisecond
)

// Resume has a wait that has sat look by itself from now on.
func (sp *Spin) Resume() {
	if !sp.s.crowded() && sp.polled {
		sp.hush(sp.hushable)
	}
}

// Doze waits in the seat until it is roused or ctx ends, whoever does it is no wait of the program's.
func (s *Seat) Doze(ctx context.Context) { s.naps.Listen(ctx, dozeLongest, s.roused) }

// dozeLongest is after how long who dozes gets up in any case.
const dozeLongest = time.Hour
