package proto

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"gopgas/eager"
	"gopgas/internal/callsite"
	"gopgas/internal/mem"
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
	how   Eager
	least [2]atomic.Int64 // bytes from which puts, and gets, are asked about
	asked atomic.Int64    // bytes, before the costs were measured

	awaiting atomic.Bool // the last operation was a put that the chooser knows
	mu       sync.Mutex
	chooser  *eager.Chooser // nil: the costs are not measured yet
	run      run
}

// run is puts of one kind to one rank that no flush has followed yet. A put that returns early costs its flush the more, so what
// is noted is the time of all of them and of the flush, by their number.
type run struct {
	trial selector.Trial
	rank  int
	puts  int
	took  time.Duration // by the puts
	mixed bool          // others came before that are not over either
}

// longestRun is after how many puts a run is noted without a flush: by then they wait for each other.
const longestRun = 256

// took notes what a get that is over has cost, or a put for when its flush is over, if anybody wants to know.
func (n *nic) took(t *journey, err error) {
	if t.trial == (selector.Trial{}) || err != nil {
		return
	}
	took := time.Duration(0)
	if t.trial.Wanted() {
		took = n.e.Sched.Now() - t.begun
	}
	if t.kind == transport.OpRead {
		n.prices().learned.Note(t.trial, took.Seconds())
		return
	}
	s := &n.small
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.chooser == nil {
		return // flushes are not looked at yet
	}
	if !s.run.trial.Alike(t.trial) || s.run.rank != t.r.Rank || s.run.puts == 0 {
		s.run = run{trial: t.trial, rank: t.r.Rank, mixed: s.run.puts > 0}
	}
	if !t.trial.Wanted() {
		s.run.trial = t.trial // not all of it was timed
	}
	s.run.puts++
	s.run.took += took
	if s.run.puts == longestRun {
		if t.trial.Wanted() && !s.run.mixed {
			n.prices().learned.Note(t.trial, s.run.took.Seconds()/longestRun)
		}
		s.run = run{}
	}
}

// enough is how many large transfers travel before their costs are measured, so that who has few to make does not wait for
// that.
const enough = 8

// enoughSmall is how many bytes travel in small transfers before that: so many that the time is likely to come back.
const enoughSmall = 4 << 20

// leastAsked is the least size that could be registered for being used often: eager's authors found 128 bytes.
const leastAsked = 128

const nothing = math.MaxInt64

// prepareSmall decides what is asked. Where registrations do not stay only force makes the bypass.
func (n *nic) prepareSmall(how Eager) {
	s := &n.small
	s.how = how
	if how.Mode == eager.OnlyBounce {
		n.inline = 0
	}
	least := int64(leastAsked)
	if how.Mode == eager.OnlyBounce || how.Mode == eager.OnlyInline || n.direct.reg.Policy() != regmgr.LeavePinned {
		least = nothing
	}
	for i := range s.least {
		s.least[i].Store(least)
	}
}

// leastOf is the bytes from which puts, or gets, are asked about.
func (s *small) leastOf(get bool) *atomic.Int64 {
	if get {
		return &s.least[1]
	}
	return &s.least[0]
}

// flushTook notes what the puts of a run and their flush, which was called at begun, have cost.
func (n *nic) flushTook(r run, begun time.Duration) {
	n.prices().learned.Note(r.trial, (r.took+n.e.Sched.Now()-begun).Seconds()/float64(r.puts))
}

// bypasses reports whether a small transfer is to use the caller's memory, registered, instead of a slot.
func (n *nic) bypasses(r *Remote, get, waited bool, user mem.Range) bool {
	s := &n.small
	switch {
	case s.how.Mode == eager.OnlyBypass:
		return true
	case int64(user.Bytes) < s.leastOf(get).Load() || user.Bytes > n.pool.SlotBytes() || !get && user.Bytes <= n.inline:
		s.other()
		return false
	case s.asked.Load() < enoughSmall:
		if s.asked.Add(int64(user.Bytes)) >= enoughSmall {
			n.measure(r)
		}
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chooser
	if c == nil {
		return false // somebody measures
	}
	var choice eager.Choice
	if get {
		choice = c.Get(user.Addr(), user.Bytes, false)
	} else {
		frequent, site := c.Used(false, user.Addr(), user.Bytes), uint64(0)
		if frequent && !waited { // else the call site does not matter
			var stack callsite.Stack
			callsite.Here(&stack, framesBelow)
			site = stack.Hash()
		}
		choice = c.PutOf(frequent, user.Bytes, site, waited, false)
	}
	s.await(c.Awaiting() || s.run.puts > 0)
	return choice == eager.Bypass
}

// await notes whether a flush would be news.
func (s *small) await(flush bool) {
	if s.awaiting.Load() != flush { // a store costs more than a look
		s.awaiting.Store(flush)
	}
}

// flushFollows predicts whether a flush follows a large put for which nobody waits, by where it is called from. It also returns
// the run of puts that the last one belongs to.
func (s *small) flushFollows() (flushed bool, r run) {
	var stack callsite.Stack
	callsite.Here(&stack, framesBelow)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.chooser != nil {
		flushed = s.chooser.Large(stack.Hash())
		s.await(true)
	}
	return flushed, s.run
}

// frequent counts a use of memory by a put whose completion is waited for, and reports whether it is to go past the slots.
func (s *small) frequent(user mem.Range) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.chooser != nil && s.chooser.Used(false, user.Addr(), user.Bytes)
}

// flushed notes a flush of a rank: a put that it follows at once was one to wait for. The run that it ends is noted when the flush is
// over.
func (s *small) flushed(rank int) (r run) {
	if !s.awaiting.Load() {
		return r
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chooser.Flushed()
	if s.run.rank == rank {
		r, s.run = s.run, run{}
	}
	s.awaiting.Store(s.run.puts > 0)
	return r
}

// other notes an operation that is none of those that are asked about.
func (s *small) other() {
	if !s.awaiting.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chooser.Other()
	s.awaiting.Store(s.run.puts > 0)
}

// choose begins to decide by the costs; nil says that nothing small is worth it.
func (s *small) choose(c *eager.Chooser) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chooser = c
	for i := range s.least {
		least := int64(nothing)
		if c != nil {
			if b, ok := c.Least(i == 1); ok {
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
	n.small.mu.Lock()
	defer n.small.mu.Unlock()
	if n.small.chooser == nil {
		return s, false
	}
	return n.small.chooser.Stats(), true
}
