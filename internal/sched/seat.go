package sched

import "context"

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

// Sit is Step of a wait that need not look: it sleeps until it is roused, for no longer than Step would. Who sleeps so leaves the processor to the rank's
// other goroutines, and no thread waits for it. Not in virtual time.
func (sp *Spin) Sit(s *Seat) error {
	if sp.watch != nil {
		if err := sp.watch.Interrupted(); err != nil {
			return sp.lastWords(err)
		}
	}
	if err := Ended(sp.ctx); err != nil {
		return err
	}
	now := sp.s.Now()
	if sp.began == 0 {
		sp.begin(now)
	}
	sp.leave(Seldom) // who looks has told the NIC
	sp.unhush(Seldom)
	ctx := sp.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	if s.naps.Listen(ctx, min(sp.park, parkMost(now-sp.moved, sp.unrung)), s.roused) {
		sp.park = parkFirst
		return nil
	}
	sp.list() // it may last
	sp.park = min(2*sp.park, parkLongest)
	return nil
}

// Resume has a wait that has sat look by itself from now on.
func (sp *Spin) Resume() {
	if !sp.s.crowded() && sp.polled {
		sp.hush(sp.hushable)
	}
}
