package proto

import (
	"math"
	"sync/atomic"
	"time"

	"gopgas/eager"
	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/internal/prices"
	"gopgas/internal/selector"
	"gopgas/regmgr"
	"gopgas/transport"
)

// Eager forces how small transfers travel, or leaves it to the costs. The zero Eager does that.
type Eager struct {
	Mode    eager.Mode
	Percent int // of the break-even count after which a buffer is registered; 0: eager.DefaultPercent
}

// small is the part of a NIC's transfers that fit into a slot: whether they go past it.
type small struct {
	how    Eager
	least  [3]atomic.Int64 // bytes from which puts, gets, and the payloads of messages are asked about
	plain  [2]atomic.Int64 // bytes up to which puts go inline and gets through scratch memory, whatever is asked or known
	asked  atomic.Int64    // bytes, before the costs were measured
	habits prices.Habits
}

// took notes what a get that is over has cost, or a put for when its flush is over, if anybody wants to know. At the end of a trial it
// waits for the puts of that.
func (n *device) took(t *journey, err error) {
	if t.trial == (selector.Trial{}) || err != nil {
		return
	}
	took := time.Duration(0)
	if t.trial.Wanted() {
		took = n.e.Sched.Now() - t.begun
	}
	if t.kind == transport.OpRead {
		n.learned(t.r).Note(t.trial, took.Seconds())
		return
	}
	tried := n.small.habits.Put(n.learned(t.r), t.trial, t.r.Rank, took)
	if !tried.Wanted() {
		return
	}
	begun, over, last := n.e.Sched.Now(), false, n.Begun(t.r.Rank) // else all puts up to the program's own flush would go on with what seems dearer
	err = n.WaitUntil(t.name, t.r.Rank, func() bool {
		over = n.Past(t.r.Rank, last)
		return over || n.e.Sched.Now()-begun > longestTry // others may have put something long
	})
	if err == nil && over {
		n.flushTook(tried, begun)
	}
}

// longestTry is how long the end of a trial is waited for.
const longestTry = 10 * time.Millisecond

// enough is how many large transfers travel before their costs are measured, so that who has few to make does not wait for
// that.
const enough = 8

// enoughSmall is how many bytes travel in small transfers before that: so many that the time is likely to come back.
const enoughSmall = 4 << 20

// leastAsked is the least size that could be registered for being used often: eager's authors found 128 bytes.
const leastAsked = 128

const nothing = math.MaxInt64

// prepareSmall decides what is asked. Where registrations do not stay only force makes the bypass.
func (n *device) prepareSmall(how Eager) {
	s := &n.small
	s.how, s.habits.Names = how, n.direct.reg.Names()
	least := int64(leastAsked)
	if how.Mode == eager.OnlyBounce || how.Mode == eager.OnlyInline || n.direct.reg.Policy() != regmgr.LeavePinned {
		least = nothing
	}
	for i := range s.least {
		s.least[i].Store(least)
	}
	n.preparePlain()
}

// preparePlain decides what is plain, which depends on what is forced.
func (n *device) preparePlain() {
	put, get := min(n.Inline, n.direct.least-1), min(leastAsked, nic.ScratchBytes, n.Slot, n.direct.least)-1
	if n.small.how.Mode == eager.OnlyBypass || selector.Protocol(n.forced.Load()) != selector.None {
		put, get = 0, 0
	}
	n.small.plain[leastPut].Store(int64(put))
	n.small.plain[leastGet].Store(int64(get))
}

// isPlain reports whether nothing has to be chosen for a put or get of so many bytes, as which says.
func (n *device) isPlain(which int, r *Remote, bytes int) bool {
	return uint64(bytes-1) < uint64(n.small.plain[which].Load()) && r.hosed == nil
}

// Places of least and plain.
const (
	leastPut = iota
	leastGet
	leastSent
)

// flushTook notes what the puts of a run and their flush, which was called at begun, have cost.
func (n *device) flushTook(r prices.Run, begun time.Duration) {
	r.Flushed(n.e.Sched.Now() - begun)
}

// bypasses reports whether a small transfer is to use the caller's memory, registered, instead of a slot.
func (n *device) bypasses(t *journey, waited bool, user mem.Range) bool {
	get := t.kind == transport.OpRead
	least := &n.small.least[leastPut]
	if get {
		least = &n.small.least[leastGet]
	}
	forced, asked := n.asked(get, user, least)
	return forced || asked && (n.surely(t, waited || get, user) || n.small.habits.Bypasses(get, waited, user, framesBelow))
}

// surely reports whether a small transfer uses the caller's memory without its uses being counted, since that is registered already. The table of uses
// is large, and what it tells of a buffer has mostly left the caches by its next use: a tenth of what 32 KiB take. Of fewer bytes a registration
// that others have made says too little: what they would save is as little as what a transfer past the slots touches more out of the cold.
func (n *device) surely(t *journey, waited bool, user mem.Range) bool {
	if !waited || user.Bytes < leastLearned || t.r.hosed != nil || !n.direct.reg.Hot(user, t.rights()) || !n.small.habits.Pays(t.kind == transport.OpRead, user.Bytes) {
		return false
	}
	n.small.habits.Past()
	return true
}

// gathers is bypasses for the payload of messages that the target's CPU works on: the NIC is to take it from the caller's memory. waited
// says that somebody waits for the answer anyway.
func (n *device) gathers(waited bool, user mem.Range) bool {
	if !n.Gathers() || user.Bytes == 0 {
		return false
	}
	forced, asked := n.asked(false, user, &n.small.least[leastSent])
	return forced || asked && n.small.habits.Gathers(waited, user, framesBelow)
}

// asked reports whether what is small is forced past the copy, or its habits are to be asked: whether it has at least so many bytes and the
// costs are known, which it has measured otherwise if it is likely to pay.
func (n *device) asked(get bool, user mem.Range, least *atomic.Int64) (forced, ask bool) {
	s := &n.small
	switch {
	case s.how.Mode == eager.OnlyBypass:
		return true, false
	case int64(user.Bytes) < least.Load() || user.Bytes > n.Slot || !get && user.Bytes <= n.Inline:
		s.habits.Other()
		return false, false
	case s.asked.Load() < enoughSmall:
		if s.asked.Add(int64(user.Bytes)) >= enoughSmall {
			n.measure()
		}
		return false, false
	}
	return false, true
}

// chooserOf is who decides of small transfers at some prices.
func (n *device) chooserOf(p *prices.Prices) (*eager.Chooser, error) {
	return eager.New(eager.Config{
		Limits: eager.Limits{Inline: n.Inline, Slot: n.Slot}, Costs: p.Small[0], Gets: p.Small[1], Sends: p.Small[2],
		Percent: n.small.how.Percent, Seldom: prices.AskedFrom, SeldomOf: prices.AskedOf,
	})
}

// decide begins to decide by the costs, also where large transfers have had them measured before there were enough small ones; nil says that nothing
// small is worth it.
func (s *small) decide(c *eager.Chooser) {
	s.habits.Begin(c)
	s.asked.Store(enoughSmall)
	for i := range s.least {
		least := int64(nothing)
		if c != nil {
			b, ok := c.Least(i == leastGet)
			if i == leastSent {
				b, ok = c.LeastSent()
			}
			if ok {
				least = max(leastAsked, int64(b))
			}
		}
		if s.least[i].Load() != nothing {
			s.least[i].Store(least)
		}
	}
}

// Bypasses returns what the usage table of small buffers has seen, and what was chosen; ok is false where nothing has been
// asked.
func (e *Engine) Bypasses() (s eager.Stats, ok bool) {
	n := e.nic()
	if n == nil {
		return s, false
	}
	return n.small.habits.Stats()
}
