package proto

import (
	"math"
	"sync"
	"sync/atomic"

	"gopgas/eager"
	"gopgas/internal/callsite"
	"gopgas/internal/mem"
	"gopgas/regmgr"
)

// Eager forces how small transfers travel, or leaves it to the costs. The zero Eager does that.
type Eager struct {
	Mode    eager.Mode
	Percent int // of the break-even count after which a buffer is registered; 0: eager.DefaultPercent
}

// small is the part of a NIC's transfers that fit into a slot: whether they go past it.
type small struct {
	how   Eager
	least atomic.Int64 // bytes from which transfers are asked about
	asked atomic.Int64 // before the costs were measured

	awaiting atomic.Bool // the last operation was a put that the chooser knows
	mu       sync.Mutex
	chooser  *eager.Chooser // nil: the costs are not measured yet
}

// enough is how many transfers of a kind travel before their costs are measured, so that who has few to make does not wait
// for that.
const enough = 2

// enoughSmall is enough for small transfers, which must be many for the bypass to pay.
const enoughSmall = 16

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
	if how.Mode == eager.OnlyBounce || how.Mode == eager.OnlyInline || n.direct.reg.Policy() != regmgr.LeavePinned {
		s.least.Store(nothing)
	} else {
		s.least.Store(leastAsked)
	}
}

// bypasses reports whether a small transfer is to use the caller's memory, registered, instead of a slot.
func (n *nic) bypasses(get, waited bool, user mem.Range) bool {
	s := &n.small
	switch {
	case s.how.Mode == eager.OnlyBypass:
		return true
	case int64(user.Bytes) < s.least.Load() || user.Bytes > n.pool.SlotBytes() || !get && user.Bytes <= n.inline:
		s.other()
		return false
	case s.asked.Load() < enoughSmall:
		if s.asked.Add(1) == enoughSmall {
			n.measure()
		}
		return false
	}
	site := uint64(0)
	if !get && !waited {
		var stack callsite.Stack
		callsite.Here(&stack, framesBelow)
		site = stack.Hash()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chooser
	if c == nil {
		return false // somebody measures
	}
	choice := eager.Bounce
	if get {
		choice = c.Get(user.Addr(), user.Bytes, false)
	} else {
		choice = c.Put(user.Addr(), user.Bytes, site, waited, false)
	}
	s.awaiting.Store(c.Awaiting())
	return choice == eager.Bypass
}

// flushed notes a flush: a put that it follows at once was one to wait for.
func (s *small) flushed() {
	if !s.awaiting.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chooser.Flushed()
	s.awaiting.Store(false)
}

// other notes an operation that is none of those that are asked about.
func (s *small) other() {
	if !s.awaiting.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chooser.Other()
	s.awaiting.Store(false)
}

// choose begins to decide by the costs; nil says that nothing small is worth it.
func (s *small) choose(c *eager.Chooser) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chooser = c
	least := int64(nothing)
	if c != nil {
		if b, ok := c.Least(); ok {
			least = max(leastAsked, int64(b))
		}
	}
	if s.least.Load() != nothing {
		s.least.Store(least)
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
