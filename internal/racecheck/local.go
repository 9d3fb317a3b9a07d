package racecheck

import (
	"context"
	"fmt"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/internal/touch"
)

// WatchLocal makes the check see the program's accesses to its own parts that it does not declare, as far as package touch sees
// them. Its error says why that is not possible here; the check goes on without. It comes before the first window. Of a nil Checker
// it does nothing.
func (c *Checker) WatchLocal() (err error) {
	if c == nil {
		return nil
	}
	c.seer, err = touch.Open()
	return err
}

// Watched reports whether accesses that are not declared are seen, and whether system calls may be given the memory then.
func (c *Checker) Watched() (seen, calls bool) {
	if c == nil || c.seer == nil {
		return false, true
	}
	return true, c.seer.Kernel()
}

// Shown returns this rank's part as the program is to get it: memory whose touches are seen, where that is possible, else local
// itself. The library uses local. Of a nil Window it is local.
func (w *Window) Shown(local mem.Range) mem.Range {
	if w == nil || w.shown.Bytes == 0 {
		return local
	}
	return w.shown
}

// show makes shown. Memory of the program's own cannot be mapped a second time: it is used as it is, and must be declared.
func (w *Window) show() {
	if w.c.seer == nil || w.local.Bytes == 0 || mem.OriginOf(w.local) == mem.Heap {
		return
	}
	r, err := w.c.seer.Add(w.local)
	if err != nil {
		w.c.say(fmt.Sprintf("race check: rank %d: uses of Local of %s that are not declared go unseen: %v", w.c.e.Rank, w.name, err))
		return
	}
	w.shown = r
}

// Plain returns s as the library uses it: if the program has it from a watched part, the part's own memory, which is touched
// unseen. What the library does with it is declared, or is nobody's business. Of a nil Checker it is s.
func Plain[T any](c *Checker, s []T) []T {
	if c == nil || c.seer == nil || len(s) == 0 {
		return s
	}
	return mem.Slice[T](c.PlainRange(mem.Of(s)))
}

// PlainRange is Plain of bytes.
func (c *Checker) PlainRange(r mem.Range) mem.Range {
	if c == nil {
		return r
	}
	return c.plain(r)
}

func (c *Checker) plain(r mem.Range) mem.Range {
	if c.seer == nil || r.Bytes == 0 {
		return r
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.windows {
		if w.shown.Bytes != 0 && w.shown.Contains(r) {
			return w.local.Slice(int(r.Addr()-w.shown.Addr()), r.Bytes)
		}
	}
	return r
}

// enterSeen enters the accesses that were seen since it was last called, as ones of the epoch that is about to end: it
// begins whatever changes this rank's clock, or enters an access. When it returns, all that the caller can know of are entered (C5).
func (c *Checker) enterSeen() {
	if c.seer == nil || c.off.Load() || !c.seer.Pending() {
		return
	}
	if !c.lockSeen() {
		return
	}
	lost := c.seer.Take(c.enterTouch)
	c.seen.Unlock()
	c.e.Sched.Ring()
	if lost > 0 {
		c.tell(noteTouches)
	}
}

// lockSeen locks seen. Who has it may wait for a shelf.
func (c *Checker) lockSeen() bool {
	if c.seen.TryLock() {
		return true
	}
	sp := c.e.Sched.Begin(context.Background(), sched.What{Op: "race check", Peer: -1}, (*watch)(c))
	defer sp.End()
	for !c.seen.TryLock() {
		if err := sp.Step(); err != nil {
			c.give(err)
			return false
		}
	}
	return true
}

// lookAgain makes accesses of the epoch that has begun seen.
func (c *Checker) lookAgain() {
	if c.seer == nil || c.off.Load() {
		return
	}
	if err := c.seer.Rearm(); err != nil {
		c.give(err)
	}
}

// enterTouch enters an access.
func (c *Checker) enterTouch(t touch.Touch) {
	c.mu.Lock()
	var w *Window
	for _, o := range c.windows {
		if t.Addr >= o.shown.Addr() && t.Addr < o.shown.Addr()+uint64(o.shown.Bytes) {
			w = o
		}
	}
	c.mu.Unlock()
	if w == nil || c.off.Load() || w.gone.Load() {
		return
	}
	a, op := Access{Kind: Read}, "local read"
	switch {
	case t.Atomic:
		a.Kind, op = Update, "local atomic"
	case t.Write:
		a.Kind, op = Write, "local write"
	}
	c.mu.Lock()
	a.Site = c.sites.name(fmt.Sprintf("%s at %s", op, sched.Where(t.PCs)))
	c.stats.Seen++
	c.mu.Unlock()
	w.enterAll(a, w.me, int(t.Addr-w.shown.Addr())/w.elem, 1)
}
