package replay

import (
	"slices"

	"gopgas/internal/predict"
)

// account is what a rank has registered: now, and from now on as far as it is decided. What is decided is charged when it
// begins and given back when it ends, to the nanosecond, so that limit and meters never disagree. It is the rank's one budget:
// what it registered for others counts like its own.
type account struct {
	limit    int64 // bytes; 0: none
	promised int64 // of it, kept for others whether they have it or not
	all      *meter
	lent     *meter // of that, what is registered for others; nil: nothing ever is

	level, lentLevel int64 // now
	coming           []entry
}

// entry is a change to come.
type entry struct {
	change
	lent bool
}

// verdict is the answer to who wants a charge.
type verdict uint8

const (
	granted verdict = iota
	fullAll         // something must be given up, whoever has it
	fullOwn         // the rank's own transfers have all that they may have
)

// pass makes it that late.
func (a *account) pass(now predict.Nanos) {
	n := 0
	for n < len(a.coming) && a.coming[n].at <= now {
		a.level += a.coming[n].bytes
		if a.coming[n].lent {
			a.lentLevel += a.coming[n].bytes
		}
		n++
	}
	a.coming = slices.Delete(a.coming, 0, n)
}

// charge changes what is registered from a time on, which is not past.
func (a *account) charge(at predict.Nanos, bytes int64, lent bool) {
	a.all.add(at, bytes)
	if lent {
		a.lent.add(at, bytes)
	}
	e := entry{change{at, bytes}, lent}
	i, _ := slices.BinarySearchFunc(a.coming, e, func(o, e entry) int { return compareChanges(o.change, e.change) })
	a.coming = slices.Insert(a.coming, i, e)
}

// asks says whether so much more may be registered from a time on, for this rank's own transfers or for others.
func (a *account) asks(at predict.Nanos, bytes int64, lent bool) verdict {
	if a.limit == 0 {
		return granted
	}
	level, others := a.level, a.lentLevel
	all, own := int64(0), int64(0)
	note := func() { all, own = max(all, level), max(own, level-others) }
	began := false
	for _, e := range a.coming {
		if e.at > at {
			if !began {
				note()
			}
			began = true
		}
		level += e.bytes
		if e.lent {
			others += e.bytes
		}
		if began {
			note()
		}
	}
	if !began {
		note()
	}
	switch {
	case !lent && own+bytes > a.limit-a.promised:
		return fullOwn
	case all+bytes > a.limit:
		return fullAll
	}
	return granted
}

// holds reports whether this rank's own transfers could have so much if nothing else were registered.
func (a *account) holds(bytes int64) bool { return a.limit == 0 || bytes <= a.limit-a.promised }
