package agent

import (
	"context"
	"slices"
	"time"

	"gopgas/internal/crew"
)

// Reading is how the clock of another host stands to this one's (crew.Clock), in nanoseconds.
type Reading struct {
	There  int64 // its clock when it was read
	Ahead  int64 // of ours then
	Within int64 // at most so much is Ahead off: half of the question's round trip
}

// readingOf is what one question tells: asked and answered by our clock, between which the other one showed there. Where the way there takes as
// long as the way back it is exact; the worst is that one of them took no time (Cristian 1989).
func readingOf(asked, there, answered int64) Reading {
	within := (answered - asked + 1) / 2
	return Reading{There: there, Ahead: there - (asked + within), Within: within}
}

// Clock turns times of another host into this one's. Its readings are in the order in which they were taken; the zero Clock is this host's own.
// Between two readings clocks are taken to run evenly, and before the first and after the last as they were then.
type Clock struct{ Readings []Reading }

// Here returns what our clock showed when the other one showed there.
func (c Clock) Here(there int64) int64 {
	switch i := slices.IndexFunc(c.Readings, func(r Reading) bool { return r.There >= there }); {
	case len(c.Readings) == 0:
		return there
	case i < 0:
		return there - c.Readings[len(c.Readings)-1].Ahead
	case i == 0:
		return there - c.Readings[0].Ahead
	default:
		a, b := c.Readings[i-1], c.Readings[i]
		part := float64(there-a.There) / float64(b.There-a.There)
		return there - a.Ahead - int64(part*float64(b.Ahead-a.Ahead))
	}
}

// Within is how far Here may be off while the clocks run evenly.
func (c Clock) Within() (worst time.Duration) {
	for _, r := range c.Readings {
		worst = max(worst, time.Duration(r.Within))
	}
	return worst
}

// A reading is the best of some questions, one after the other, that take no longer than patience together.
const (
	questions = 16
	patience  = 2 * time.Second
)

// ReadClock asks the agent for its clock, and adds a reading to Clock unless there is no answer.
func (h *Host) ReadClock(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	best := Reading{Within: 1 << 62}
	for range questions {
		h.asked++
		asked := crew.Clock()
		h.stream.tell(note{Do: clock, ID: h.asked})
		for answered := false; !answered; {
			select {
			case n := <-h.tick:
				if answered = n.ID == h.asked; answered { // and no late one
					if r := readingOf(asked, n.Clock, crew.Clock()); r.Within < best.Within {
						best = r
					}
				}
			case <-h.lost:
				return
			case <-ctx.Done():
				h.note(best)
				return
			}
		}
	}
	h.note(best)
}

// note adds a reading, if it is one.
func (h *Host) note(r Reading) {
	if r.Within < 1<<62 {
		h.clock.Readings = append(h.clock.Readings, r)
	}
}

// Clock is what ReadClock has found so far.
func (h *Host) Clock() Clock { return h.clock }
