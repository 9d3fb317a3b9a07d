package racecheck

import (
	"runtime"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
)

// Site is a source line of the program and what it asks of the library. The number is its rank's; the text lies in
// exposed memory, where whoever finds a race with it can read it.
type Site uint16

// The table of texts: the first one stands for all that have no room.
const (
	siteSlots     = 1024
	siteSlotBytes = 128
	noSite        = "an operation at some further line (a rank can name 1023 of them)"
)

// callerDepth is how many frames tell call sites apart; the library's own come first.
const callerDepth = 12

// caller is a way in which an operation was called.
type caller struct {
	op  string
	pcs [callerDepth]uintptr
}

// sites are a rank's call sites.
type sites struct {
	ids   map[caller]Site
	known map[string]Site // by text
	table mem.Range
}

// Site returns the call site of op: the innermost call that is not the library's. Of a nil Checker it is 0.
func (c *Checker) Site(op string) Site {
	if c == nil {
		return 0
	}
	at := caller{op: op}
	runtime.Callers(2, at.pcs[:])
	c.mu.Lock()
	defer c.mu.Unlock()
	id, ok := c.sites.ids[at]
	if !ok {
		id = c.sites.name(op + " at " + sched.Caller())
		c.sites.ids[at] = id
	}
	return id
}

// name returns the number of a text.
func (s *sites) name(words string) Site {
	if id, ok := s.known[words]; ok {
		return id
	}
	id := Site(len(s.known) + 1)
	if int(id) >= siteSlots {
		id, words = 0, noSite
	} else {
		s.known[words] = id
	}
	slot := s.table.Slice(int(id)*siteSlotBytes, siteSlotBytes).Data()
	if most := siteSlotBytes - 1; len(words) > most {
		words = words[:most]
	}
	copy(slot[1:], words)
	slot[0] = byte(len(words))
	return id
}
