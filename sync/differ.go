package pgsync

import "fmt"

// mostMarks bounds how many windows are looked at to name what another member is in: with more, chance would name one too often.
const mostMarks = 64

// differ is the mismatch with a member whose flag has this sum. Both have made the same calls before, so the sum tells which one
// the member is in now, among those it can be in.
func (c *turns) differ(member int, sum uint64) error {
	rank := c.t.ranks[member]
	theirs, ok := c.guess(member, sum)
	if !ok {
		return fmt.Errorf("%w: rank %d does not make the same collective calls as this rank, which is in %s now", ErrMismatch, rank, c.doing())
	}
	return fmt.Errorf("%w: this rank is in %s, rank %d in %s", ErrMismatch, c.doing(), rank, theirs)
}

// doing names the call that this rank is in.
func (c *turns) doing() string {
	what := call(c.purpose).String() // of a meeting
	if c.call != 0 {
		what = c.call.String()
		for root := everyone; root < len(c.t.ranks); root++ {
			if c.purpose == turnPurpose(c.call, root) {
				what = rooted(c.call, root)
				break
			}
		}
	}
	if c.number&startedCall != 0 {
		what += " of a started call"
	}
	return what
}

// rooted names a call with its root. Calls without one have root 0, or everyone.
func rooted(what call, root int) string {
	if root <= 0 {
		return what.String()
	}
	return fmt.Sprintf("%s with root %d", what, root)
}

// guess returns what leads from the sum of the calls before to the member's.
func (c *turns) guess(member int, sum uint64) (string, bool) {
	fits := func(purpose uint64) (string, bool) {
		for _, number := range []uint64{c.number, c.number ^ startedCall} {
			if mixed(c.l.before, purpose, number) != sum {
				continue
			}
			if number&startedCall != 0 {
				return " of a started call", true
			}
			return "", true
		}
		return "", false
	}
	for _, what := range c.meetings() {
		if started, ok := fits(uint64(what)); ok {
			return what.String() + started, true
		}
	}
	if started, ok := fits(endOfCall); ok {
		return "the end" + started, true
	}
	// What a member shows in its outboxes may be of the call before: it counts if it leads to the sum.
	for i := range 2 {
		word, err := c.t.e.Load64(&c.t.peers[member], boxOff(len(c.t.ranks), c.l.number, i))
		if err != nil {
			break // that one's end is told by other calls
		}
		for root := everyone; root < len(c.t.ranks); root++ {
			if started, ok := fits(turnPurpose(call(word), root)); ok {
				return rooted(call(word), root) + started, true
			}
		}
	}
	return "", false
}

// meetings are the calls without data that a member can be in.
func (c *turns) meetings() []call {
	var all []call
	for _, op := range []string{"barrier", "close", refusing, "fence", "free"} {
		all = append(all, callOf(op, 0, 0, 0))
	}
	c.t.core.mu.Lock()
	defer c.t.core.mu.Unlock()
	for which := range min(c.t.core.marks, mostMarks) {
		all = append(all, callOf("fence", 0, 0, which+1), callOf("free", 0, 0, which+1))
	}
	return all
}
