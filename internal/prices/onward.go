package prices

import (
	"sync/atomic"

	"gopgas/internal/selector"
)

// A put of 16 to 64 KiB that no flush is thought to follow travels as the one before it, of one run: to find that out by its call site, under a lock, took
// a tenth of its time out of the cold. So the puts of as many bytes to the same rank behind one that was asked about go as it did, all but one in AskedOf,
// from wherever they come. They are counted to their run when the next is asked about, or flushed.

// onward is such a way: how many more puts take it, below, by what protocol, to what rank, and of how many bytes each. The zero onward is none.
type onward struct {
	word    atomic.Uint64
	granted int // with what was left at first; under Habits.mu
}

// What a word has room for: larger puts, and those to ranks beyond, are asked about one by one.
const (
	rankBits  = 24
	mostBytes = 1<<(64-rankBits-wayBits-leftBits) - 1
	mostRank  = 1<<rankBits - 1
)

// onwardWord is the word of so many puts.
func onwardWord(p selector.Protocol, rank, bytes, left int) uint64 {
	return uint64(bytes)<<(rankBits+wayBits+leftBits) | uint64(rank)<<(wayBits+leftBits) | uint64(p)<<leftBits | uint64(left)
}

// RunsOn is how a put of so many bytes to a rank goes that is one of the run under way, None where it is to be asked about. It takes no lock. If that way
// is taken RunOn is called.
func (h *Habits) RunsOn(rank, bytes int) selector.Protocol {
	now := h.onward.word.Load()
	p := selector.Protocol(now >> leftBits & wayMask)
	if left := now & leftMask; left == 0 || now != onwardWord(p, rank, bytes, int(left)) {
		return selector.None
	}
	return p
}

// RunOn notes a put that went by protocol p as RunsOn says. It reports whether it may: others may have been quicker.
func (h *Habits) RunOn(p selector.Protocol, rank, bytes int) bool {
	now := h.onward.word.Load()
	left := now & leftMask
	return left > 0 && now == onwardWord(p, rank, bytes, int(left)) && h.onward.word.CompareAndSwap(now, now-1)
}

// runOnLocked lets the puts behind one of the run, which was just noted, go on as it did.
func (h *Habits) runOnLocked() {
	p, left := h.run.goesOn()
	if left <= 0 || h.last == (like{}) || h.last.bytes > mostBytes || h.run.rank > mostRank {
		return
	}
	h.onward.granted = left
	h.onward.word.Store(onwardWord(p, h.run.rank, h.last.bytes, left))
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
	if h.onward.word.Load() == 0 {
		return
	}
	if taken := h.onward.granted - int(h.onward.word.Swap(0)&leftMask); taken > 0 {
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
