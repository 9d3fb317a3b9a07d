package transporttest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// FaultPlan says what goes wrong. The zero plan injects nothing. Operations are counted from 1 in the order in
// which the domain takes them, registrations in the order in which they are asked for.
//
// ShortPosts and Delays are benign: the contract of package transport allows them at any time.
type FaultPlan struct {
	Seed       uint64
	ShortPosts int // percent of Posts that take fewer operations than they could, often none
	Delays     int // percent of completions held back for a few Polls, so that other endpoints' overtake them

	FailRegister int // this registration fails with a *transport.LimitError

	// BreakAt is the operation at which its endpoint breaks: neither it nor later ones happen, but for an
	// atomic, which is reported in doubt. The operation itself is reported with BreakStatus (0:
	// StatusFlushed), the others as flushed.
	BreakAt     int
	BreakStatus transport.Status

	// KillAt is the operation at which its peer is gone for this rank: as BreakAt with StatusPeerGone, then
	// OpPeerDown, and no connecting again. The peer itself is not harmed; Fabric.Kill does that.
	KillAt int
}

// Faulty wraps d, which it takes over: it injects what plan says, the same for the same sequence of calls.
func Faulty(d transport.Domain, plan FaultPlan) transport.Domain {
	return &faulty{
		Domain: d, plan: plan, rng: rand.New(rand.NewPCG(plan.Seed, 0)),
		due: map[transport.EP]uint64{}, peers: map[uint32]int{}, dead: map[int]bool{},
	}
}

// held is a completion that is not reported before the Poll numbered due.
type held struct {
	c   transport.Completion
	due uint64
}

// rewrite is a completion that will be reported with another status.
type rewrite struct {
	cookie uint64
	ep     transport.EP
	kind   transport.Kind
	status transport.Status
}

type faulty struct {
	transport.Domain
	plan FaultPlan

	mu        sync.Mutex // never held while the wrapped domain blocks
	rng       *rand.Rand
	ops       int // taken so far
	registers int
	polls     uint64
	held      []held // in the order they came
	due       map[transport.EP]uint64
	rewrites  []rewrite
	peers     map[uint32]int // rank by endpoint index
	dead      map[int]bool
	buf       [64]transport.Completion
}

func (f *faulty) Connect(ctx context.Context, peer int, addr []byte) (transport.EP, error) {
	f.mu.Lock()
	dead := f.dead[peer]
	f.mu.Unlock()
	if dead {
		return transport.EP{}, transport.NewOpError("connect", peer, transport.ErrPeerGone)
	}
	ep, err := f.Domain.Connect(ctx, peer, addr)
	if err == nil {
		f.mu.Lock()
		f.peers[ep.Index] = peer
		f.mu.Unlock()
	}
	return ep, err
}

func (f *faulty) Register(r mem.Range, a transport.Access) (transport.Region, error) {
	f.mu.Lock()
	f.registers++
	fail := f.registers == f.plan.FailRegister
	f.mu.Unlock()
	if fail {
		return transport.Region{}, &transport.LimitError{
			What: fmt.Sprintf("%d bytes of registered memory", r.Bytes), Found: "0 bytes free",
			Needed: fmt.Sprintf("%d bytes", r.Bytes), Setting: "FaultPlan.FailRegister",
		}
	}
	return f.Domain.Register(r, a)
}

// Post hands on what the plan lets through, up to the operation at which something breaks.
func (f *faulty) Post(ops []transport.Op) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.chance(f.plan.ShortPosts) {
		ops = ops[:f.rng.IntN(len(ops)+1)/2]
	}
	for _, at := range [...]int{f.plan.BreakAt, f.plan.KillAt} {
		if k := at - f.ops - 1; at > 0 && k >= 0 && k < len(ops) {
			n, err := f.passLocked(ops[:k])
			if n < k || err != nil {
				return n, err
			}
			m, err := f.breakLocked(ops[k], at == f.plan.KillAt)
			return n + m, err
		}
	}
	return f.passLocked(ops)
}

func (f *faulty) passLocked(ops []transport.Op) (int, error) {
	n, err := f.Domain.Post(ops)
	f.ops += n
	return n, err
}

// breakLocked ends the endpoint under op. The wrapped domain reports what was on the way, and as flushed what
// is posted to the endpoint that has been ended, op too.
func (f *faulty) breakLocked(op transport.Op, kill bool) (int, error) {
	atomic := op.Kind == transport.OpFetchAdd || op.Kind == transport.OpCompareSwap
	w := rewrite{cookie: op.Cookie, ep: op.EP, kind: op.Kind, status: f.plan.BreakStatus}
	switch {
	case atomic:
		w.status = transport.StatusInDoubt
	case kill:
		w.status = transport.StatusPeerGone
	case w.status == transport.StatusOK:
		w.status = transport.StatusFlushed
	}
	op.Flags |= transport.FlagSignaled // errors are reported, and whether it is one is decided here
	if !atomic {
		if err := f.Domain.Disconnect(op.EP); err != nil {
			return 0, err
		}
	}
	n, err := f.Domain.Post([]transport.Op{op})
	if n == 0 {
		return 0, err // short: it is still the operation at which it breaks
	}
	f.ops++
	f.rewrites = append(f.rewrites, w)
	if atomic {
		if err := f.Domain.Disconnect(op.EP); err != nil {
			return 1, err
		}
	}
	if kill {
		f.dead[f.peers[op.EP.Index]] = true
		f.held = append(f.held, held{c: transport.Completion{EP: op.EP, Kind: transport.OpPeerDown, Status: transport.StatusPeerGone}})
	}
	f.Domain.Wake()
	return 1, nil
}

// Poll takes what the wrapped domain has, holds some of it back, and reports what is due. The completions of
// one endpoint keep their order.
func (f *faulty) Poll(cq []transport.Completion) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.Domain.Poll(f.buf[:min(len(cq), len(f.buf))])
	if err != nil {
		return 0, err
	}
	f.polls++
	for _, c := range f.buf[:n] {
		f.rewriteLocked(&c)
		due := f.polls
		if f.chance(f.plan.Delays) {
			due += 1 + f.rng.Uint64N(8)
		}
		due = max(due, f.due[c.EP])
		f.due[c.EP] = due
		f.held = append(f.held, held{c, due})
	}
	out, keep := 0, f.held[:0]
	for _, h := range f.held {
		if h.due <= f.polls && out < len(cq) {
			cq[out] = h.c
			out++
			continue
		}
		keep = append(keep, h)
	}
	f.held = keep
	return out, nil
}

func (f *faulty) rewriteLocked(c *transport.Completion) {
	for i, w := range f.rewrites {
		if w.cookie == c.Cookie && w.ep == c.EP && w.kind == c.Kind {
			c.Status, c.Bytes = w.status, 0
			f.rewrites = append(f.rewrites[:i], f.rewrites[i+1:]...)
			return
		}
	}
}

// Wait returns at once while completions are held back: the next Polls let them go.
func (f *faulty) Wait(ctx context.Context) error {
	f.mu.Lock()
	waiting := len(f.held) > 0
	f.mu.Unlock()
	if waiting {
		return nil
	}
	return f.Domain.Wait(ctx)
}

// chance is true in so many percent of the calls; it is not asked for faults that are switched off.
func (f *faulty) chance(percent int) bool { return percent > 0 && f.rng.IntN(100) < percent }
