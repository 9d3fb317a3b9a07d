package pgsync

import "fmt"

// What objects are in a few words: fmt prints these for them. None of them asks another rank.

// String says how large the team is, and which member this rank is.
func (t *Team) String() string {
	if t == nil { // what Split gives to who joins none
		return "no team"
	}
	s := fmt.Sprintf("member %d of a team of %d", t.me, len(t.ranks))
	if t.WorldRank(t.me) != t.me {
		s += fmt.Sprintf(", rank %d of the world", t.WorldRank(t.me))
	}
	return s
}

// named is what is held, of which team, and whether it was freed.
func (h *held) named(what string) string {
	if h.block == nil {
		return what + ", freed"
	}
	return fmt.Sprintf("%s of a team of %d", what, h.t.Size())
}

// String says that it is a lock, and of whom.
func (l *Lock) String() string { return l.named("lock") }

// String says that it is a lock for readers and writers, and of whom.
func (l *RWLock) String() string { return l.named("read-write lock") }

// String says that it is a counter, and of whom.
func (c *Counter) String() string { return c.named("counter") }

// String says that it is an event, and of whom.
func (e *Event) String() string { return e.named("event") }

// String says how many signals they are, and of whom.
func (s *Signals) String() string { return s.named(fmt.Sprintf("%d signals", s.n)) }

// String says which signal of how many it is.
func (g Signal) String() string {
	if g.s == nil {
		return "no signal"
	}
	return g.s.named(fmt.Sprintf("signal %d of %d", g.off/signalBytes, g.s.n))
}

// String returns the operator.
func (c Cmp) String() string {
	if int(c) < len(operators) {
		return operators[c]
	}
	return fmt.Sprintf("comparison %d", uint8(c))
}

var operators = [...]string{Equal: "==", NotEqual: "!=", Greater: ">", GreaterOrEqual: ">=", Less: "<", LessOrEqual: "<="}

// String says whether the call goes on, and how it has ended.
func (r *Request) String() string {
	switch {
	case !r.done.Load():
		return "started call, under way"
	case r.err != nil:
		return fmt.Sprintf("started call, ended: %v", r.err)
	}
	return "started call, done"
}
