package pgsync

import (
	"math"
	"math/bits"
)

// Where all members map each other's memory, what lies in other memory than the library's goes one of two ways: through outboxes, by a copy in and a copy out; or it is peeked at
// where it lies, by one copy of the kernel's (proto.Engine.Peeks). That spares the outboxes' lines two ways from core to core, and costs a passage into the kernel. Between
// two cores that share a cache the outboxes are ahead, by up to a half; between others they take more than twice as long, and a virtual machine's cores may be the one or the
// other within minutes. So a team takes the time of its calls. Each member tells what they took with what it offers, and all choose by what all have told.

// way is how such a call goes.
type way uint8

const (
	otherwise way = iota // neither
	boxed                // through outboxes
	peeked               // read where it lies
	ways
)

// other is the one that w competes with.
func (w way) other() way { return boxed + peeked - w }

// trialAfter is how many calls of a kind and length go one way before one goes the other, to see what that takes by now: so many times more as that takes longer, up to mostTimes.
// Of first calls, some of which make room or meet memory for the first time, leastSeen count as one.
const trialAfter, mostTimes, leastSeen = 64, 16, 3

// contest is what a member knows of both ways for calls of one kind and about one length.
type contest struct {
	took  [ways]int64 // ns
	seen  [ways]uint8 // calls of which that is known, up to leastSeen: from then on it counts
	last  way
	inRow int // calls that have gone that way
}

// class is which contest a call of so many bytes is in.
func (c call) class(bytes int) uint16 { return uint16(c>>56)<<8 | uint16(bits.Len(uint(bytes))) }

// saw takes down that a call took so many ns by w. What counts is about the least of late: a call takes longer where a member comes late, which says nothing of the way.
func (k *contest) saw(w way, ns int64) {
	ns = max(ns, 1)
	t := &k.took[w]
	if k.seen[w] == 0 || ns < *t {
		*t = ns
	} else {
		*t += min(*t/16+1, ns-*t)
	}
	k.seen[w] = min(k.seen[w]+1, leastSeen)
}

// went takes down that a call went by w.
func (k *contest) went(w way) {
	if w != k.last {
		k.last, k.inRow = w, 0
	}
	k.inRow++
}

// compete has the call, of so many bytes, take part in a contest, if there may be two ways for it. Views have none: their outboxes are short. reads says whether this member
// is one of those that want something of others: how long they take counts, since whoever only gives is done with outboxes when he has filled his.
func (c *turns) compete(what call, bytes int, reads bool) {
	x := &c.t.offers
	if !c.t.maps || c.t.lane != nil {
		return
	}
	class := what.class(bytes)
	if x.contests[class] == nil {
		if x.contests == nil {
			x.contests = map[uint16]*contest{}
		}
		x.contests[class] = &contest{}
	}
	c.contest, c.went, c.timed = x.contests[class], boxed, reads
	if reads {
		c.began = c.t.e.Sched.Now()
	}
}

// settle takes down how the call went, and how long it took.
func (c *turns) settle() {
	if c.contest == nil {
		return
	}
	c.contest.went(c.went)
	if c.timed {
		c.contest.saw(c.went, int64(c.t.e.Sched.Now()-c.began))
	}
}

// due reports whether the next call is to try the other way. A member that only gives has taken no time, and leaves that to those that have.
func (k *contest) due() bool {
	if k.inRow < trialAfter || k.took[k.last] == 0 {
		return false
	}
	times := k.took[k.last.other()] / k.took[k.last] // 0 if nothing is known, and nothing need be due
	return int64(k.inRow) >= trialAfter*min(max(times, 1), mostTimes)
}

// ballot is what a member tells of a contest: what both ways take here, in steps of 6 % from 256 ns on, 0 where it does not know, and which is to be tried.
type ballot struct {
	took [ways]uint8
	try  way
}

// ballot returns what this member tells; nothing of a contest that is nil.
func (k *contest) ballot() (b ballot) {
	if k == nil {
		return b
	}
	for w := boxed; w < ways; w++ {
		if k.seen[w] == leastSeen {
			b.took[w] = steps(k.took[w])
		}
	}
	if k.due() {
		b.try = k.last.other()
	}
	return b
}

// ballot is what this member tells in the call: nothing where it only gives, since what it has seen when it was one of those that read is not how long these take, and would not
// change any more.
func (c *turns) ballot() ballot {
	if !c.timed {
		return ballot{}
	}
	return c.contest.ballot()
}

func steps(ns int64) uint8 {
	if ns == 0 {
		return 0
	}
	const ofOctave = 12
	return uint8(min(max(1+ofOctave*math.Log2(float64(ns)/256), 1), math.MaxUint8))
}

// verdict is the way that all members take by what all have told: one of which nobody knows anything, or that somebody wants tried, or else the one whose slowest member is faster.
func verdict(all []ballot) way {
	var slowest [ways]uint8
	try := otherwise
	for _, b := range all {
		for w := boxed; w < ways; w++ {
			slowest[w] = max(slowest[w], b.took[w])
		}
		if try == otherwise {
			try = b.try
		}
	}
	switch {
	case slowest[peeked] == 0:
		return peeked
	case slowest[boxed] == 0:
		return boxed
	case try != otherwise:
		return try
	case slowest[peeked] < slowest[boxed]:
		return peeked
	}
	return boxed
}
