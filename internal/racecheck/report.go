package racecheck

import (
	"fmt"

	"github.com/cespare/xxhash/v2"

	"gopgas/internal/atom"
	"gopgas/internal/touch"
)

// found is a race while its elements are being collected.
type found struct {
	with   cell
	lo, hi int // elements
}

// collect adds element i to the races with c, where it continues one of them.
func collect(races []found, c cell, i int) []found {
	for k := range races {
		r := &races[k]
		if r.hi == i && r.with.origin() == c.origin() && r.with.site() == c.site() && r.with.kind() == c.kind() {
			r.hi++
			return races
		}
	}
	return append(races, found{c, i, i + 1})
}

// report tells of a race between access a of this rank and an earlier one, unless the same two lines have been found
// already, by whichever rank, or the check has ended.
func (w *Window) report(a Access, member int, f found) {
	c := w.c
	if c.ended() {
		return
	}
	mine, theirs := c.siteOf(c.e.Rank, a.Site), c.siteOf(f.with.origin(), f.with.site())
	if !c.first(mine, theirs, w.name) {
		return
	}
	c.say(fmt.Sprintf("race: rank %d %s%s and rank %d %s: elements [%d, %d) of rank %d's part of %s",
		f.with.origin(), theirs, f.with.end(), c.e.Rank, mine, f.lo, f.hi, w.shelf.at[member].Rank, w.name))
}

// end says what an access needs before anything can come after it.
func (c cell) end() string {
	switch {
	case c.later():
		return " (done when flushed)"
	case c.pending():
		return " (not waited for)"
	}
	return ""
}

// first reports whether a race between two call sites on a thing is a new one, and counts it.
func (c *Checker) first(a, b, thing string) bool {
	if b < a {
		a, b = b, a
	}
	name := a + "\x00" + b + "\x00" + thing
	c.mu.Lock()
	seen := c.known[name]
	c.known[name] = true
	c.mu.Unlock()
	if seen || !c.claim(xxhash.Sum64String(name)|1) {
		return false
	}
	c.mu.Lock()
	c.stats.Races++
	c.mu.Unlock()
	return true
}

// claim enters a key in the world's list. It returns false if another rank has done so before. When the list is full
// each rank reports for itself.
func (c *Checker) claim(key uint64) bool {
	r := &c.root[0]
	for i := range keySlots {
		at := keysAt + 8*int((key+uint64(i))%keySlots)
		old, err := c.e.Atomic(atom.CompareSwap, atom.Word64(), r, at, 0, key)
		if err != nil {
			c.give(err)
			return true
		}
		if old == key {
			return false
		}
		if old == 0 {
			break
		}
	}
	if _, err := c.e.Atomic(atom.Sum, atom.Word64(), r, foundAt, 1, 0); err != nil {
		c.give(err)
	}
	return true
}

// note is something that the check could not do, told once by each rank.
type note int

const (
	noteShared  note = iota // several things had one clock
	noteLost                // accesses were forgotten
	noteDynamic             // attached memory without cells
	noteTouches             // of its own memory were not remembered
	notes
)

// tell tells of a note for the first time.
func (c *Checker) tell(n note) {
	c.mu.Lock()
	told := c.told[n]
	c.told[n] = true
	c.mu.Unlock()
	if told {
		return
	}
	why := [notes]string{
		"more elements or signals order ranks than have a clock of their own; those that share one hide races that they do not order",
		fmt.Sprintf("more than %d accesses to an element are in no order and in no conflict; the oldest were forgotten, and races with them go unseen", width(c.n)),
		"a member has more memory attached to a Dynamic at once than can be checked; what goes beyond is not",
		fmt.Sprintf("the program has used more than %d pages of its own parts between two synchronisations, undeclared; what goes beyond goes unseen", touch.Most),
	}[n]
	c.say(fmt.Sprintf("race check: rank %d: %s", c.e.Rank, why))
}
