package eager

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
)

// Mode forces how small transfers travel, or leaves it to the costs.
type Mode uint8

// The modes, as PGAS_EAGER names them.
const (
	Auto       Mode = iota // "auto": the cheapest by the costs
	OnlyInline             // "inline": inline where it fits, else through a slot
	OnlyBounce             // "bounce": always through a slot
	OnlyBypass             // "bypass": registered at the first use
)

var modeNames = [...]string{Auto: "auto", OnlyInline: "inline", OnlyBounce: "bounce", OnlyBypass: "bypass"}

// String returns the mode's name.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// ParseMode is the inverse of String; the empty name is Auto.
func ParseMode(name string) (Mode, error) {
	if name == "" {
		return Auto, nil
	}
	for m, n := range modeNames {
		if n == name {
			return Mode(m), nil
		}
	}
	return 0, fmt.Errorf("eager mode %q: want one of: %s", name, strings.Join(modeNames[:], ", "))
}

// Choice is how one small transfer travels.
type Choice uint8

// The choices.
const (
	Inline Choice = iota // the payload goes with the operation; puts only
	Bounce               // through a slot of registered memory
	Bypass               // from, or into, the user's buffer, which is registered
)

// String names the choice as statistics print it.
func (c Choice) String() string { return [...]string{"inline", "bounce", "bypass"}[c] }

// Query is what Decide knows of one transfer.
type Query struct {
	Get      bool
	Bytes    int
	Waited   bool // somebody waits for the completion anyway: a get, a put with a handle, a put that a flush follows
	Frequent bool // the usage table's answer
	Covered  bool // the buffer is registered for another reason: nothing has to be looked up or registered
}

// Limits are what the NIC and the settings allow, in bytes.
type Limits struct {
	Inline int // largest inline payload
	Slot   int // largest payload through a slot
}

// Decide chooses how a transfer travels. It is a pure function of its arguments and allocates nothing.
//
// A put returns when its source may be reused: through a slot that is after the copy, past it after the NIC has read the
// source. So for a put that nobody waits for, past the slot is cheaper only where the copy costs more than the lookup
// and the wait together.
func Decide(m Mode, q Query, l Limits, c Cost) Choice {
	inline := !q.Get && q.Bytes <= l.Inline
	switch m {
	case OnlyBounce:
		return fitting(q, l)
	case OnlyInline:
		if inline {
			return Inline
		}
		return fitting(q, l)
	case OnlyBypass:
		return Bypass
	}
	if inline {
		return Inline
	}
	if q.Bytes > l.Slot {
		return Bypass
	}
	if (q.Covered || q.Frequent) && worth(q, c) {
		return Bypass
	}
	return Bounce
}

// worth reports whether the copy costs more than what the bypass costs in its place.
func worth(q Query, c Cost) bool {
	save := c.saved()
	if q.Covered {
		save = c.Copy
	}
	if !q.Waited && !q.Get {
		save -= c.Wire
	}
	return save > 0
}

// fitting is Bounce, but for what no slot holds.
func fitting(q Query, l Limits) Choice {
	if q.Bytes > l.Slot {
		return Bypass
	}
	return Bounce
}

// Config is what a Chooser is made of.
type Config struct {
	Mode    Mode
	Limits  Limits
	Costs   Costs // measured, of puts; see Measure
	Gets    Costs // of gets; nil: those of puts
	Sends   Costs // of messages with a payload; nil: those of puts
	Percent int   // of the break-even count after which a buffer is registered; 0: 25

	// Of transfers of Seldom bytes and more one in SeldomOf is told to the chooser, by UsedOf, and none of memory that is known to be registered; 0: all are.
	Seldom, SeldomOf int
}

// DefaultPercent is the share of the break-even count that the paper's experiments registered at.
const DefaultPercent = 25

// Chooser decides for one rank and remembers what it needs to. But for Refused it is not safe for concurrent use: its owner's lock, the
// NIC path's, guards it.
type Chooser struct {
	c     Config
	sides [3]side // of puts, of gets, of messages
	table *Table
	sites sites
	taken [3]uint64

	refused atomic.Uint64 // by Refused
}

// side is what is known of one direction's costs.
type side struct {
	n     thresholds
	costs []Cost // by class of sizes
	pays  int    // the smallest size from which on all pay past the slots if they are known to be registered
}

func newSide(c Costs, of *Config) side {
	s := side{}
	for bytes := 0; bytes <= of.Limits.Slot; bytes += 1 << classBits {
		at := c.At(bytes)
		if of.Seldom > 0 && bytes >= of.Seldom {
			at = at.seldom(of.SeldomOf)
		}
		if s.costs = append(s.costs, at); !at.pays() {
			s.pays = bytes + 1<<classBits
		}
	}
	s.n = newThresholds(s.costs, of.Limits.Slot, of.Percent)
	return s
}

// Places of sides.
const (
	puts = iota
	gets
	sends
)

// side returns that of a direction.
func (e *Chooser) side(get bool) *side {
	if get {
		return &e.sides[gets]
	}
	return &e.sides[puts]
}

// New returns a chooser.
func New(c Config) (*Chooser, error) {
	if c.Percent == 0 {
		c.Percent = DefaultPercent
	}
	if c.Percent < 1 || c.Percent > 100 || c.Mode > OnlyBypass || c.Limits.Inline < 0 || c.Limits.Slot < 1 || c.Seldom < 0 || c.Seldom > 0 && c.SeldomOf < 1 {
		return nil, fmt.Errorf("eager: settings out of range: %v, %d %% of the break-even count (1 to 100), %+v, one use in %d from %d bytes on", c.Mode, c.Percent, c.Limits, c.SeldomOf, c.Seldom)
	}
	if c.Gets == nil {
		c.Gets = c.Costs
	}
	if c.Sends == nil {
		c.Sends = c.Costs
	}
	if err := errors.Join(c.Costs.validate(), c.Gets.validate(), c.Sends.validate()); err != nil {
		return nil, err
	}
	e := &Chooser{c: c}
	least := c.Limits.Slot + 1
	for i, costs := range [...]Costs{puts: c.Costs, gets: c.Gets, sends: c.Sends} {
		e.sides[i] = newSide(costs, &c)
		least = min(least, e.sides[i].n.least)
	}
	if c.Mode == Auto && least <= c.Limits.Slot {
		e.table = NewTable()
	}
	return e, nil
}

// Least is the smallest size of puts, or of gets, that can be registered for being frequent; ok is false where none can be.
// Transfers below it need not be told to a chooser that nothing forces.
func (e *Chooser) Least(get bool) (bytes int, ok bool) { return e.least(e.side(get)) }

// LeastSent is Least for the payloads of messages.
func (e *Chooser) LeastSent() (bytes int, ok bool) { return e.least(&e.sides[sends]) }

func (e *Chooser) least(s *side) (bytes int, ok bool) {
	return s.n.least, s.n.least <= e.c.Limits.Slot && e.table != nil
}

// Other notes an operation that is neither Put, Get nor a flush: what a flush then follows is that one.
func (e *Chooser) Other() { e.sites.other() }

// Awaiting reports whether the last operation was a put, of which a flush would be news.
func (e *Chooser) Awaiting() bool { return e.sites.pending }

// Put chooses for a put from the buffer at addr, by a call site, whose completion is waited for by a handle if waited.
func (e *Chooser) Put(addr uint64, bytes int, site uint64, waited, covered bool) Choice {
	return e.PutOf(e.Used(false, addr, bytes), bytes, site, waited, covered)
}

// Used counts a use of the buffer at addr and reports whether it is frequent, and the bypass pays for so many bytes if
// somebody waits.
func (e *Chooser) Used(get bool, addr uint64, bytes int) (frequent bool) {
	return (get || bytes > e.c.Limits.Inline) && e.used(e.side(get), addr, bytes)
}

// UsedOf is Used for who asks about one use of so many only: it counts for all of them, but a buffer that is used once is not frequent.
func (e *Chooser) UsedOf(of int, get bool, addr uint64, bytes int) (frequent bool) {
	if !get && bytes <= e.c.Limits.Inline {
		return false
	}
	n := e.threshold(e.side(get), bytes)
	return n != never && e.table.Use(addr, max(min(n, 2), n/uint32(of)))
}

// UsedSent is Used for the payload of a message.
func (e *Chooser) UsedSent(addr uint64, bytes int) (frequent bool) {
	return bytes > e.c.Limits.Inline && e.used(&e.sides[sends], addr, bytes)
}

// used counts a use that has a threshold.
func (e *Chooser) used(s *side, addr uint64, bytes int) (frequent bool) {
	n := e.threshold(s, bytes)
	return n != never && e.table.Use(addr, n)
}

// threshold is that of a use, never for one for which the bypass would not pay: the lookup is what would be lost.
func (e *Chooser) threshold(s *side, bytes int) uint32 {
	if e.table == nil || bytes > e.c.Limits.Slot || bytes < s.n.least {
		return never
	}
	return s.n.of(bytes)
}

// Refused reports whether the usage table knows nothing of the buffer at addr and does not add it, and notes that a put, or a get, from there
// goes through a slot: it is as if Used and then PutOf, or Get, had been called, but that the call before it is not learned to have been no put
// that a flush follows, see Other. False says nothing, and notes nothing. Any goroutine may call it at any time, without the lock.
func (e *Chooser) Refused(get bool, addr uint64, bytes int) bool {
	if e.table == nil || bytes > e.c.Limits.Slot || !get && bytes <= e.c.Limits.Inline || e.side(get).n.of(bytes) == never || !e.table.ignores(addr) {
		return false
	}
	e.refused.Add(1)
	return true
}

// PutOf is Put for who has asked Used. Of a buffer that is not frequent the call site does not matter, and may be 0.
func (e *Chooser) PutOf(frequent bool, bytes int, site uint64, waited, covered bool) Choice {
	return e.choose(puts, Query{Bytes: bytes, Waited: e.flushed(frequent || covered, site) || waited, Covered: covered, Frequent: frequent})
}

// SendOf chooses for the payload of a message, whose sender waits for its answer if waited, for who has asked UsedSent: Bounce is a copy behind
// the header, and Bypass that the NIC gathers both. Else it is as PutOf.
func (e *Chooser) SendOf(frequent bool, bytes int, site uint64, waited bool) Choice {
	return e.choose(sends, Query{Bytes: bytes, Waited: e.flushed(frequent, site) || waited, Frequent: frequent})
}

// flushed notes a put, whose call site is told if that matters, and predicts whether a flush follows.
func (e *Chooser) flushed(told bool, site uint64) bool {
	if told {
		return e.sites.put(site)
	}
	e.sites.other()
	return false
}

// Large notes a put that is not small, for which somebody else chooses, and predicts whether a flush follows it.
func (e *Chooser) Large(site uint64) (flushed bool) { return e.sites.put(site) }

// Get chooses for a get into the buffer at addr.
func (e *Chooser) Get(addr uint64, bytes int, covered bool) Choice {
	return e.GetOf(e.Used(true, addr, bytes), bytes, covered)
}

// GetOf is Get for who has asked Used or UsedOf.
func (e *Chooser) GetOf(frequent bool, bytes int, covered bool) Choice {
	e.sites.other()
	return e.choose(gets, Query{Get: true, Bytes: bytes, Waited: true, Covered: covered, Frequent: frequent})
}

// Pays reports whether puts, or gets, of memory that is known to be registered, whose end somebody waits for, are better made past the slots. Any
// goroutine may call it at any time.
func (e *Chooser) Pays(get bool, bytes int) bool {
	return e.c.Mode == Auto && bytes <= e.c.Limits.Slot && bytes >= e.side(get).pays
}

// Flushed notes a flush: the put directly before it was one to wait for.
func (e *Chooser) Flushed() { e.sites.flush() }

func (e *Chooser) choose(side int, q Query) Choice {
	if !q.Frequent && !q.Covered && e.c.Mode == Auto && q.Bytes <= e.c.Limits.Slot && (q.Get || q.Bytes > e.c.Limits.Inline) {
		e.taken[Bounce]++ // as Decide would have it, whatever things cost
		return Bounce
	}
	var cost Cost
	if q.Bytes <= e.c.Limits.Slot {
		cost = e.sides[side].costs[q.Bytes>>classBits]
	}
	c := Decide(e.c.Mode, q, e.c.Limits, cost)
	e.taken[c]++
	return c
}

// Threshold is after how many uses by puts, or by gets, a buffer of a size is registered; ok is false where it never is.
func (e *Chooser) Threshold(get bool, bytes int) (uses int, ok bool) {
	n := &e.side(get).n
	if bytes > e.c.Limits.Slot || n.of(bytes) == never {
		return 0, false
	}
	return int(n.of(bytes)), true
}

// Stats is what a chooser has seen and done.
type Stats struct {
	Usage
	Inline, Bounce, Bypass uint64 // transfers by choice
}

// Stats returns what the chooser has seen and done.
func (e *Chooser) Stats() Stats {
	refused := e.refused.Load()
	s := Stats{Inline: e.taken[Inline], Bounce: e.taken[Bounce] + refused, Bypass: e.taken[Bypass]}
	if e.table != nil {
		s.Usage = e.table.Usage()
		s.Refused += refused
	}
	return s
}
