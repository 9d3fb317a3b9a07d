package racecheck

import (
	"slices"
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/internal/proto"
	"gopgas/internal/sched"
)

// Window is the check of a window: the cells of its elements, and the clocks of those by whose atomics ranks are ordered.
// A nil Window does nothing.
type Window struct {
	c     *Checker
	name  string
	shelf *Shelf
	local mem.Range
	shown mem.Range // local as the program gets it; empty: as it is
	me    int       // this rank's member number
	elem  int       // bytes
	atoms int       // clocks of atomics; those of epochs follow
	gone  atomic.Bool
}

// The clocks of a window's epochs on each member: two of its lock, by what was released, and for each member those of its
// posts and completions. Which says which.
const (
	lockExclusive = iota
	lockShared
	groups
)

// WindowBytes returns the size of the cells and clocks of a window on each member, whose longest part has n elements. Of
// a nil Checker it is 0.
func (c *Checker) WindowBytes(members, n int) int {
	if c == nil {
		return 0
	}
	return c.ShelfBytes(c.Clocks(n)+groups+2*members, n)
}

// Window returns the check of a window whose parts are members; its cells and clocks lie in shelves, which is zeroed memory of
// WindowBytes. local is this rank's part, of elements of elem bytes and the type of that name. Of a nil Checker it is nil.
func (c *Checker) Window(shelves []proto.Remote, n, me, elem int, local mem.Range, typ string) *Window {
	if c == nil {
		return nil
	}
	shelf := c.Shelf(shelves, 0, c.Clocks(n)+groups+2*len(shelves), n)
	return c.watch(&Window{name: "the window of " + typ + " made at " + sched.Caller(), me: me, elem: elem, local: local, shelf: shelf}, n)
}

// watch completes a window whose longest part has n elements, and has the checker look at it.
func (c *Checker) watch(w *Window, n int) *Window {
	w.c, w.atoms = c, c.Clocks(n)
	w.show()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.windows = append(c.windows, w)
	return w
}

// Attached returns the check of n elements that one member of a team, whose ranks those are, has attached: its cells and clocks lie in
// shelf, of WindowBytes. local is the memory itself where it is this rank's. Of a nil Checker it is nil.
func (c *Checker) Attached(shelf proto.Remote, ranks []int, member, n, me, elem int, local mem.Range, name string) *Window {
	if c == nil {
		return nil
	}
	shelves := make([]proto.Remote, len(ranks))
	for m, r := range ranks {
		shelves[m].Rank = r
	}
	clocks := c.Clocks(n) + groups + 2*len(ranks)
	shelves[member] = shelf.At(0, c.ShelfBytes(clocks, n))
	w := &Window{name: name, me: me, elem: elem, local: local}
	w.shelf = &Shelf{c: c, at: shelves, clocks: clocks, rows: n}
	return c.watch(w, n)
}

// NoWindow notes that attached memory is not checked.
func (c *Checker) NoWindow() {
	if c != nil {
		c.tell(noteDynamic)
	}
}

// Close ends the check of a window, before its memory goes.
func (w *Window) Close() {
	if w == nil {
		return
	}
	w.c.enterSeen()
	w.gone.Store(true)
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	w.c.windows = slices.DeleteFunc(w.c.windows, func(o *Window) bool { return o == w })
}

// Hide takes what Shown has returned away, after Close and before the memory goes. The program must not use it any more.
func (w *Window) Hide() error {
	if w == nil || w.shown.Bytes == 0 {
		return nil
	}
	r := w.shown
	w.shown = mem.Range{}
	return w.c.seer.Remove(r)
}

// chunk is how many elements are looked at while the shelf is locked.
const chunk = 4096

// Touch checks an access of this rank to n elements of the member's part, from disp on, and remembers it. It comes before
// the access itself. It locks the shelf; while it waits for it others of this rank run.
func (w *Window) Touch(a Access, member, disp, n int) {
	if w == nil || w.c.off.Load() || w.gone.Load() || n == 0 {
		return
	}
	w.c.enterSeen()
	w.enterAll(a, member, disp, n)
}

// enterAll is Touch of this rank's accesses after those that were seen.
func (w *Window) enterAll(a Access, member, disp, n int) {
	races, lost := w.touch(a, member, disp, n)
	w.end(a, member, n, races, lost)
}

// touch is Touch without the report.
func (w *Window) touch(a Access, member, disp, n int) (races []found, lost int) {
	for lo := disp; lo < disp+n; lo += chunk {
		if !w.shelf.lock(member) {
			return races, lost
		}
		races, lost = w.enter(a, member, lo, min(chunk, disp+n-lo), nil, races, lost)
		w.shelf.unlock(member)
	}
	return races, lost
}

// end counts an access and reports its races, with the shelf unlocked.
func (w *Window) end(a Access, member, n int, races []found, lost int) {
	w.c.mu.Lock()
	w.c.stats.Accesses++
	w.c.stats.Elements += n
	w.c.stats.Lost += lost
	w.c.mu.Unlock()
	if lost > 0 {
		w.c.tell(noteLost)
	}
	for _, f := range races {
		w.report(a, member, f)
	}
}

// enter is Touch with the shelf locked. also is what comes before this access without the rank's knowing it yet, or nil.
func (w *Window) enter(a Access, member, disp, n int, also clock, races []found, lost int) ([]found, int) {
	k := width(w.c.n)
	off := w.cellsAt(disp)
	var buf []uint64
	words := w.shelf.words(member, off, n*k, &buf)
	target := w.shelf.at[member].Rank
	w.c.mu.Lock()
	time := w.c.time
	stamp := time.stamp(a, target)
	put := a.Done == ByFlush
	cells := cellsOf(words)
	for i := range n {
		forgot := enter(cells[i*k:(i+1)*k], stamp,
			func(c cell) bool { return time.before(c, target, put) },
			func(c cell) {
				if !also.has(c, w.c.n, target) {
					races = collect(races, c, disp+i)
				}
			})
		if forgot {
			lost++
		}
	}
	w.c.mu.Unlock()
	w.shelf.put(member, off, words)
	return races, lost
}

// cellsAt is where the cells of an element lie.
func (w *Window) cellsAt(disp int) int {
	return shelfStart + w.shelf.clocks*w.c.recordBytes() + disp*w.c.rowBytes()
}

func cellsOf(words []uint64) []cell { return mem.Slice[cell](mem.Of(words)) }

// Atomic checks atomics on n elements and performs them: f does it and reports whether it changed anything. With a.Done
// AtReturn they fetch the old values: this rank comes after whoever changed the elements before. Else they are
// accumulates, of which this rank learns nothing.
func (w *Window) Atomic(a Access, member, disp, n int, f func() (changed bool, err error)) error {
	w.c.enterSeen()
	defer w.c.lookAgain()
	if w.gone.Load() || !w.shelf.lock(member) {
		_, err := f()
		return err
	}
	races, lost := w.arrive(a, member, disp, n)
	changed, err := f()
	if err == nil && changed {
		w.leave(member, disp, n)
	}
	w.shelf.unlock(member)
	w.end(a, member, n, races, lost)
	return err
}

// arrive is the first half of atomics, with the shelf locked. What this rank learns comes before its own access.
func (w *Window) arrive(a Access, member, disp, n int) (races []found, lost int) {
	for d := disp; d < disp+n && a.Done == AtReturn; d++ {
		w.shelf.acquire(member, d%w.atoms, d)
	}
	return w.enter(a, member, disp, n, nil, nil, 0)
}

// AtomicNB is Atomic for one of the kind that fetches element disp to old, and is made at once. This rank comes after whoever changed the
// element before when the program has waited for it: then the caller calls Ended of the Transfer.
func (w *Window) AtomicNB(kind Kind, site Site, member, disp int, old mem.Range, f func() (changed bool, err error)) (*Transfer, error) {
	w.c.enterSeen()
	defer w.c.lookAgain()
	spans := w.c.Near(Access{Kind: Write, Done: ByWait, Site: site}, old.Addr(), old.Bytes)
	t := &Transfer{w: w, site: site, rank: w.shelf.at[member].Rank, near: spans, fetch: true}
	if mem.OriginOf(old) != mem.Unknown {
		t.buf = mem.Hidden(old)
	}
	if w.gone.Load() || !w.shelf.lock(member) {
		_, err := f()
		return t, err
	}
	races, lost := w.arriveNB(t, kind, member, disp)
	changed, err := f()
	if err == nil && changed {
		w.leave(member, disp, 1)
	}
	w.shelf.unlock(member)
	w.end(Access{Kind: kind, Site: site}, member, 1, races, lost)
	return t, err
}

// arriveNB is arrive for an atomic that is not waited for yet: what it learns is t's.
func (w *Window) arriveNB(t *Transfer, kind Kind, member, disp int) (races []found, lost int) {
	t.learned = w.shelf.peek(member, disp%w.atoms, disp)
	return w.enter(Access{Kind: kind, Site: t.site}, member, disp, 1, t.learned, nil, 0)
}

// leave is the second half: whoever fetches from here on comes after this rank.
func (w *Window) leave(member, disp, n int) {
	for d := disp; d < disp+n; d++ {
		w.shelf.release(member, d%w.atoms, d, CarryOrdered)
	}
}

// LockTaken says that this rank has a lock of the member's part, LockGiven that it is about to give it back after its
// puts there were flushed. Holders of shared locks come after exclusive ones, and those after all.
func (w *Window) LockTaken(member int, exclusive bool) {
	if w == nil {
		return
	}
	w.shelf.Acquire(member, w.atoms+lockExclusive)
	if exclusive {
		w.shelf.Acquire(member, w.atoms+lockShared)
	}
}

// LockGiven is the opposite of LockTaken.
func (w *Window) LockGiven(member int, exclusive bool) {
	if w == nil {
		return
	}
	which := lockShared
	if exclusive {
		which = lockExclusive
	}
	w.shelf.Release(member, w.atoms+which, CarryDone)
}

// Told says that this rank is about to tell a member of its post (0) or completion (8); Heard that it was told.
func (w *Window) Told(member, which int) {
	if w == nil {
		return
	}
	w.shelf.Release(member, w.atoms+groups+2*w.me+which/8, CarryDone)
}

// Heard is the opposite of Told: by is the member that told this rank.
func (w *Window) Heard(by, which int) {
	if w == nil {
		return
	}
	w.shelf.Acquire(w.me, w.atoms+groups+2*by+which/8)
}
