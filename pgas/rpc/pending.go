package rpc

import (
	"bytes"
	"sync"
	"sync/atomic"
)

// outcome is what came of a call.
type outcome struct {
	done   atomic.Bool
	failed bool
	raw    []byte // what came
	into   func(b []byte) error
	err    error
	lane   *lane // of a flush: who keeps an error of what was sent
	lost   error // why it was not brought
}

// pending are the calls of this rank that were not answered, by number: a place in a list, and how often that was used before.
type pending struct {
	mu    sync.Mutex
	slots []slot
	free  []uint32
}

type slot struct {
	of   *outcome
	uses uint32
}

func (p *pending) begin(o *outcome) (id uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) == 0 {
		p.free = append(p.free, uint32(len(p.slots)))
		p.slots = append(p.slots, slot{})
	}
	i := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	p.slots[i].of = o
	return uint64(p.slots[i].uses)<<32 | uint64(i)
}

// forget takes a call out and returns it: nil where somebody else has.
func (p *pending) forget(id uint64) *outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.slots[uint32(id)]
	if s.uses != uint32(id>>32) || s.of == nil {
		return nil
	}
	o := s.of
	s.of = nil
	s.uses++
	p.free = append(p.free, uint32(id))
	return o
}

// begin notes a call.
func (s *Service) begin(o *outcome) (id uint64) {
	s.calls.Add(1)
	return s.pending.begin(o)
}

// answered ends a call. An answer that nobody waits for any more is counted all the same.
func (s *Service) answered(id uint64, body []byte, owned, failed bool) {
	if o := s.pending.forget(id); o != nil {
		switch {
		case failed && o.lane != nil:
			o.lane.fail(&Error{Rank: s.team.WorldRank(o.lane.member), Func: "flush", Text: string(body)})
		case failed:
			o.failed, o.raw = true, bytes.Clone(body)
		case o.into != nil:
			o.err = o.into(body)
		case owned:
			o.raw = body
		default:
			o.raw = bytes.Clone(body)
		}
		o.done.Store(true)
	}
	s.over.Add(1)
	s.team.Engine().Sched.Ring()
}

// undone ends a call that was not brought.
func (s *Service) undone(id uint64, err error) {
	if o := s.pending.forget(id); o != nil {
		o.lost = err
		o.done.Store(true)
	}
	s.over.Add(1)
	s.team.Engine().Sched.Ring()
}
