package prices

import "gopgas/internal/selector"

// A put of 16 to 64 KiB that no flush is thought to follow travels as the one before it, of one run: to find that out by its call site, under a lock, took
// a tenth of its time out of the cold. So the puts of as many bytes to the same rank behind one that was asked about go as it did, all but one in AskedOf,
// from wherever they come. They are counted to their run when the next is asked about, or flushed.

// onward is the grant of such puts, which notes to what rank, and how many it was of at first; under Habits.mu.
type onward struct {
	granted
	first int
}

// RunsOn is how a put of so many bytes to a rank goes that is one of the run under way, None where it is to be asked about. It takes no lock. If that way
// is taken RunOn is called.
func (h *Habits) RunsOn(rank, bytes int) selector.Protocol {
	now := h.onward.now()
	if now.note() != rank {
		return selector.None
	}
	return now.goes(bytes)
}

// RunOn notes a put that went by protocol p as RunsOn says. It reports whether it may: others may have been quicker.
func (h *Habits) RunOn(p selector.Protocol, rank, bytes int) bool {
	now := h.onward.now()
	return now.note() == rank && now.goes(bytes) == p && h.onward.take(now)
}

// runOnLocked lets the puts behind one of the run, which was just noted, go on as it did.
func (h *Habits) runOnLocked() {
	p, left := h.run.goesOn()
	if left <= 0 || h.last == (like{}) {
		return
	}
	g := grantOf(h.last.bytes, h.run.rank, p, left)
	h.onward.first = g.left()
	h.onward.set(g)
}

// goesOn is how puts of the run go on, and how many of them before one is asked about, in its turn or since it ends the run.
func (r *Run) goesOn() (p selector.Protocol, left int) {
	switch {
	case r.trial.By(selector.Bounce):
		p = selector.Bounce
	case r.trial.By(selector.Direct):
		p = selector.Direct
	default:
		return selector.None, 0
	}
	most := longestRun
	if r.trial.Short() {
		most = selector.ShortTrial
	}
	return p, min(AskedOf-1-(r.puts+AskedOf-1)%AskedOf, most-1-r.puts)
}

// gatherLocked counts the puts that have gone on unasked to their run. What was noted of a call site last had others of these behind it, and no flush.
func (h *Habits) gatherLocked() {
	if h.onward.now() == 0 {
		return
	}
	if taken := h.onward.first - h.onward.end().left(); taken > 0 {
		h.run.puts += taken
		h.elsewhereLocked()
	}
}

// elsewhereLocked notes that what comes after the put noted last is no flush.
func (h *Habits) elsewhereLocked() {
	if h.chooser != nil {
		h.chooser.Other()
	} else {
		h.sites.Other()
	}
}
