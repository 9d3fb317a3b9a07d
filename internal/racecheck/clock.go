package racecheck

// A clock says what a rank knows to have happened before: for each rank how far its program has come, and for each pair of
// ranks how far the puts of the first into the memory of the second have come. Both are counted in epochs of the
// rank whose steps they are. It is a vector clock (Fidge 1988, Mattern 1989) in which the way from a rank into
// another's memory is a process of its own: what a put has moved comes about at its target, and its origin learns of
// that by a flush only.
type clock []uint32

// clockLen is how many entries a clock in a world of n ranks has.
func clockLen(n int) int { return n * (n + 1) }

// program is the entry of what rank does itself, way that of its puts into target's memory.
func program(n, rank int) int     { return rank * (n + 1) }
func way(n, rank, target int) int { return rank*(n+1) + 1 + target }

// join raises c to o where o is further.
func (c clock) join(o clock) {
	for i, e := range o {
		if e > c[i] {
			c[i] = e
		}
	}
}

// has reports whether what a cell holds, in the memory of target, comes before whoever knows a clock of a world of n.
func (c clock) has(a cell, n, target int) bool {
	switch {
	case c == nil || a.pending():
		return false
	case a.later():
		return c[way(n, a.origin(), target)] >= a.epoch()
	}
	return c[program(n, a.origin())] >= a.epoch()
}

// state is a rank's own time.
type state struct {
	n, me   int
	now     clock
	under   []uint32 // by target: the epoch of puts that are issued now
	ordered []uint32 // by target: puts up to this epoch come before later ones of this rank
}

func newState(n, me int) *state {
	s := &state{n: n, me: me, now: make(clock, clockLen(n)), under: make([]uint32, n), ordered: make([]uint32, n)}
	s.now[program(n, me)] = 1
	for t := range s.under {
		s.under[t] = 1
	}
	return s
}

// cut begins an epoch of puts to target, and returns that of the ones so far.
func (s *state) cut(target int) uint32 {
	s.under[target]++
	return s.under[target] - 1
}

// flushed notes that the puts of this rank to target are done there, up to an epoch.
func (s *state) flushed(target int, epoch uint32) {
	done := &s.now[way(s.n, s.me, target)]
	*done = max(*done, epoch)
}

// order notes that the puts so far come before later ones at target.
func (s *state) order(target int) { s.ordered[target] = s.cut(target) }

// Carry is what a release says about puts that are still under way.
type Carry uint8

const (
	CarryDone    Carry = iota // only those that were flushed
	CarryOrdered              // to the place of the release: those before an Order too, as it is a put itself, or comes after one
	CarryAll                  // to the place of the release: all that were issued before
)

// release returns what whoever acquires at target from here on knows, and begins this rank's next epoch. The result is
// written to out, which is as long as a clock.
func (s *state) release(out clock, target int, c Carry) {
	copy(out, s.now)
	s.next()
	if c == CarryDone {
		return
	}
	if c == CarryAll {
		out[way(s.n, s.me, target)] = s.cut(target)
		return
	}
	out[way(s.n, s.me, target)] = max(out[way(s.n, s.me, target)], s.ordered[target])
}

// next begins an epoch: what the program does from here on is not known to whoever acquired before.
func (s *state) next() { s.now[program(s.n, s.me)]++ }

// before reports whether what cell c holds, in the memory of target, comes before an access of this rank that begins now.
// put says that the access takes the way of puts, which Order orders.
func (s *state) before(c cell, target int, put bool) bool {
	switch {
	case c.pending():
		return false
	case !c.later():
		return s.now[program(s.n, c.origin())] >= c.epoch()
	}
	have := s.now[way(s.n, c.origin(), target)]
	if put && c.origin() == s.me {
		have = max(have, s.ordered[target])
	}
	return have >= c.epoch()
}

// stamp returns the cell of an access of this rank to target's memory.
func (s *state) stamp(a Access, target int) cell {
	epoch := s.now[program(s.n, s.me)]
	if a.Done == ByFlush {
		epoch = s.under[target]
	}
	return newCell(epoch, s.me, a)
}
