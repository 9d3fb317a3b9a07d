package rpc

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	pgsync "gopgas/sync"
	"gopgas/transport"
	"gopgas/window"
)

// How the goroutine that serves goes to sleep.
const (
	serveAwake  = 50 * time.Microsecond // behind the last message, where all who send ring
	sleepRung   = 20 * time.Millisecond // at most
	serveLong   = 5 * time.Millisecond  // likewise, where a NIC writes, which may not: until then as the rank's other waits do
	sleepUnrung = time.Millisecond
	sleepBeside = 250 * time.Microsecond // likewise, while somebody of this rank waits, who looks himself
)

// door is how a rank learns that there are messages. A bell wakes the goroutine that serves; a waiting caller looks by itself, and then nobody need ring.
type door struct {
	own     knocker
	others  []knocker    // by member; zero where its memory is not mapped
	rung    bool         // by all members
	waiting atomic.Int64 // goroutines of this rank that look by themselves
}

// knocker is a member's bell, and how many goroutines there look by themselves, in that member's memory.
type knocker struct {
	bell     sched.Bell
	attended *atomic.Uint64
}

// The words before a member's rings.
const (
	bellAt     = 0
	attendedAt = 64
	doorWords  = 16
)

func (d *door) open(rings *window.Window[uint64], t *pgsync.Team) {
	knock := func(part []uint64) knocker {
		r := mem.Of(part[:doorWords])
		return knocker{t.Engine().Sched.NewBell(r.Word32(bellAt), r.Word32(bellAt+4)), r.Word64(attendedAt)}
	}
	d.own, d.rung = knock(rings.Local()), true
	d.others = make([]knocker, t.Size())
	for m := range d.others {
		if part, ok := rings.Shared(m); ok {
			d.others[m] = knock(part)
		} else if m != t.Rank() {
			d.rung = false
		}
	}
}

// wake lets a member know that there is something new, unless it looks.
func (s *Service) wake(member int) {
	if k := &s.door.others[member]; k.attended != nil && k.attended.Load() == 0 {
		k.bell.Ring()
	}
}

// attend says that this goroutine looks for messages; false: the service is over. unattend takes it back, and leaves what has come meanwhile to who serves.
func (s *Service) attend() bool {
	s.door.waiting.Add(1)
	if s.closed.Load() {
		s.door.waiting.Add(-1)
		return false
	}
	s.door.own.attended.Add(1)
	return true
}

func (s *Service) unattend() {
	if !s.closed.Load() && s.door.own.attended.Add(^uint64(0)) == 0 && s.ready() {
		s.door.own.bell.Ring()
	}
	s.door.waiting.Add(-1)
}

// ready reports whether there is something to do for who serves. It changes nothing.
func (s *Service) ready() bool {
	for m := range s.inlets {
		if s.tails[m].Load() != s.inlets[m].head.Load() {
			return true
		}
	}
	if s.backlog.Load() != 0 {
		for m := range s.lanes {
			if s.lanes[m].roomy() {
				return true
			}
		}
	}
	return false
}

// poll performs what has come, and brings what waited for room. It reports whether there was anything. Only one goroutine does so at a time.
func (s *Service) poll() (moved bool) {
	moved, _ = s.pollFor(nil)
	return moved
}

// pollFor is poll for who serves, or for anybody else, nil. It returns the last call that has come, if who serves is to make it when he has left the looking to others.
func (s *Service) pollFor(v *server) (moved bool, j *job) {
	if !s.serving.CompareAndSwap(false, true) {
		s.wanted.Store(true)
		return false, nil
	}
	defer s.served()
	s.server = v
	for m := range s.inlets {
		if s.closed.Load() {
			return false, s.takeJob()
		}
		if s.tails[m].Load() != s.inlets[m].head.Load() {
			s.take(m)
			moved = true
		}
	}
	if s.backlog.Load() != 0 {
		for m := range s.lanes {
			moved = s.lanes[m].drain() || moved
		}
	}
	return moved, s.takeJob()
}

// served lets others look. In virtual time who has wanted to sleeps until something happens to the rank.
func (s *Service) served() {
	s.serving.Store(false)
	if sc := s.team.Engine().Sched; sc.Virtual() && s.wanted.Swap(false) {
		sc.Ring()
	}
}

// goServe starts the goroutine that serves, and another one where a function ends that, or lasts.
func (s *Service) goServe() {
	sc := s.team.Engine().Sched
	sc.Go(func() {
		v := &server{s: s}
		defer v.end()
		if sc.Virtual() {
			s.serveVirtual(sc)
		} else {
			v.serve(sc)
		}
		v.over = true
	})
}

// ended reports whether nothing more is to be served: the service has ended, or this rank has failed, which nobody else tells of.
func (s *Service) ended() bool {
	if p := s.team.Engine().Peers; p.AnyGone() && p.Cause(s.team.WorldRank(s.team.Rank())) != 0 {
		s.end()
	}
	return s.closed.Load()
}

func (s *Service) serveVirtual(sc *sched.Sched) {
	for !s.ended() {
		if !s.poll() && sc.WaitUntil(s.ctx, func() bool { return s.ended() || !s.serving.Load() && s.ready() }) != nil {
			return // the world is stuck, or the service has ended
		}
	}
}

func (v *server) serve(sc *sched.Sched) {
	s := v.s
	last, naps := sc.Now(), sched.NewNaps()
	var until time.Duration
	due := func() bool { return s.ended() || s.ready() || s.door.own.attended.Load() != 0 || sc.Now() > until }
	for !s.ended() {
		moved, j := s.pollFor(v)
		if j != nil {
			if v.do(j); v.relieved {
				return
			}
			moved = true
		}
		if moved {
			last = sc.Now()
			if s.running.Load() > 0 {
				runtime.Gosched() // to those that it has begun
			}
			continue
		}
		if s.closed.Load() { // a function in turn may have taken longer than leave waits
			return
		}
		switch idle, attended := sc.Now()-last, s.door.own.attended.Load() != 0; {
		case s.door.rung && (idle > serveAwake || attended):
			s.sleep()
		case !s.door.rung && attended:
			naps.Sleep(s.ctx, sleepBeside)
		case !s.door.rung && idle > serveLong:
			naps.Sleep(s.ctx, sleepUnrung)
		case !s.door.rung:
			until = last + serveLong
			_ = sc.WaitUntil(s.ctx, due)
		default:
			runtime.Gosched()
		}
	}
}

// sleep sleeps until somebody rings.
func (s *Service) sleep() {
	bell := s.door.own.bell
	seq := bell.Arm()
	if !s.closed.Load() && (s.door.own.attended.Load() != 0 || !s.ready()) {
		bell.Wait(seq, sleepRung)
	}
	bell.Disarm()
}

// turn is the key by which the context of a function that is called in turn is known.
type turn struct{}

// ofTurn reports whether a function that is called in turn was given ctx, or what that was made from.
func ofTurn(ctx context.Context) bool { return ctx != nil && ctx.Value(turn{}) != nil }

// visit is the context of a call that is not in turn.
type visit struct {
	context.Context
	s    *Service
	sent bool        // by this rank itself, so that its flushes wait for this call
	over atomic.Bool // the function has returned: who has kept its context may wait
}

// visitKey is the key by which visits are known.
type visitKey struct{}

// Value returns the visit, or what the service's context has.
func (v *visit) Value(key any) any {
	if key == (visitKey{}) {
		return v
	}
	return v.Context.Value(key)
}

// visitOf returns the call of the service that was given ctx, or what that was made from, as long as it is under way.
func visitOf(ctx context.Context, s *Service) *visit {
	if ctx == nil {
		return nil
	}
	if v, ok := ctx.Value(visitKey{}).(*visit); ok && v.s == s && !v.over.Load() {
		return v
	}
	return nil
}

var errInside = fmt.Errorf("%w: a called function would wait for its own end", pgsync.ErrState)

var errInTurn = fmt.Errorf("%w: a function that is called in turn keeps all others from being called: it must not wait (Send does not)", pgsync.ErrState)

// await waits until cond holds, which depends on a member, and looks for messages meanwhile.
func (s *Service) await(ctx context.Context, op string, member int, cond func() bool) error {
	rank := s.team.WorldRank(member)
	return s.wait(ctx, sched.What{Op: op, Peer: rank}, s.team.Engine().Peers.Watch(rank), member, cond)
}

// awaitAll is await of what depends on all members.
func (s *Service) awaitAll(ctx context.Context, op string, cond func() bool) error {
	return s.wait(ctx, sched.What{Op: op, Peer: -1}, s.team, -1, cond)
}

func (s *Service) wait(ctx context.Context, what sched.What, on sched.Watch, member int, cond func() bool) error {
	if cond() {
		return nil
	}
	if ofTurn(ctx) {
		return transport.NewOpError(what.Op, what.Peer, errInTurn)
	}
	if !s.attend() {
		return transport.NewOpError(what.Op, what.Peer, transport.ErrClosed)
	}
	defer s.unattend()
	sp := s.team.Engine().Sched.Begin(ctx, what, on)
	defer sp.End()
	for {
		left := member >= 0 && s.hasLeft(member) // what it had said before is there, and is taken first
		moved := s.poll()
		if cond() {
			return nil
		}
		if s.closed.Load() || left && !moved && !s.ready() && !s.serving.Load() && !cond() {
			return transport.NewOpError(what.Op, what.Peer, transport.ErrClosed)
		}
		if moved && on.Interrupted() == nil { // else others may keep this rank busy for as long as they like
			sp.Moved()
			if err := sched.Ended(ctx); err != nil {
				return transport.NewOpError(what.Op, what.Peer, err)
			}
			continue
		}
		if err := sp.Step(); err != nil {
			if cond() {
				return nil
			}
			return transport.NewOpError(what.Op, what.Peer, err)
		}
	}
}
