package pgsync

import (
	"context"
	"fmt"
	"time"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// An agreement gives all living members of a team the same set of living members, and the conjunction of their votes,
// although members may die while they agree. It is an agreement by a coordinator that its death replaces (Chandra and Toueg
// 1996, section 6, made simple by a detector of deaths that errs only by being late), and one-sided: nobody sends anything,
// each member publishes its state in memory of its own, which the others read.
//
// The coordinator is the lowest member that is not known to be gone. Each other member publishes whom it takes for that, and
// looks whether that one has decided; it copies a decision and has then decided itself. A coordinator waits until every
// living member has either named it, and so will not look at an earlier one's decision any more, or has decided, in which
// case it takes over that decision. All that is left of an agreement is readable until all have begun the next one.
//
// It costs a member one read a while, and the coordinator two for each member, beside the waiting.

// The words of an agreement, in a control block.
const (
	agreeVote    = agreeWords      // epoch<<1 | vote
	agreeNames   = agreeWords + 8  // epoch<<32 | coordinator+1
	agreeDecided = agreeWords + 16 // epoch<<1 | outcome; the set is there
)

// Pauses between two looks at another member's words.
const (
	leastLook   = 20 * time.Microsecond
	longestLook = time.Millisecond
)

// verdict is what members agree on.
type verdict struct {
	set  []uint64 // of members, a bit each
	vote bool     // all of them said yes
}

func (v verdict) has(member int) bool { return v.set[member/64]>>(member%64)&1 != 0 }

// members lists the set, in ascending order.
func (v verdict) members(n int) []int {
	var out []int
	for m := range n {
		if v.has(m) {
			out = append(out, m)
		}
	}
	return out
}

// agree is one agreement. When ctx ends first, the next call goes on with it.
func (t *Team) agree(ctx context.Context, vote bool) (verdict, error) {
	epoch := t.core.epoch + 1
	word := epoch << 1
	if vote {
		word |= 1
	}
	t.local.Word64(agreeVote).Store(word)
	pause := leastLook
	for named := -1; ; {
		c, err := t.coordinator()
		if err != nil {
			return verdict{}, err
		}
		if c != named {
			t.local.Word64(agreeNames).Store(epoch<<32 | uint64(c+1))
			named, pause = c, leastLook
		}
		var v verdict
		var done bool
		if c == t.me {
			v, done = t.decide(epoch)
		} else {
			v, done = t.copyVerdict(c, epoch)
		}
		if done {
			t.publish(epoch, v)
			t.core.epoch = epoch
			return v, nil
		}
		if err := t.e.Sched.Sleep(ctx, pause); err != nil {
			return verdict{}, err
		}
		pause = min(2*pause, longestLook)
	}
}

// coordinator is the lowest living member.
func (t *Team) coordinator() (int, error) {
	if t.core.running.quit.Load() {
		return 0, transport.ErrClosed
	}
	if err := t.e.Alive(); err != nil {
		return 0, err
	}
	for m, r := range t.ranks {
		if m == t.me || t.e.Peers.Check(r) == nil {
			return m, nil
		}
	}
	return t.me, nil
}

// copyVerdict reads the decision of the coordinator c, if it has come to one.
func (t *Team) copyVerdict(c int, epoch uint64) (verdict, bool) {
	p := &t.peers[c]
	word, err := t.e.Load64(p, agreeDecided)
	if err != nil || word>>1 != epoch {
		return verdict{}, false // when it is gone, another one is asked next
	}
	v := verdict{set: make([]uint64, setBytes(len(t.ranks))/8), vote: word&1 != 0}
	if t.e.Get(p, setOff(len(t.ranks)), mem.Of(v.set)) != nil {
		return verdict{}, false
	}
	return v, true
}

// decide decides if all living members have named this one, or takes over what one of them has decided.
func (t *Team) decide(epoch uint64) (verdict, bool) {
	v := verdict{set: make([]uint64, setBytes(len(t.ranks))/8), vote: true}
	for m, r := range t.ranks {
		if t.e.Peers.Check(r) != nil && m != t.me {
			continue
		}
		if old, done := t.copyVerdict(m, epoch); done {
			return old, true
		}
		p := &t.peers[m]
		names, err := t.e.Load64(p, agreeNames)
		if err != nil || names>>32 != epoch&0xffffffff || int(names&0xffffffff)-1 < t.me {
			return verdict{}, false
		}
		// It may have decided between the two looks, before it named this one.
		if old, done := t.copyVerdict(m, epoch); done {
			return old, true
		}
		vote, err := t.e.Load64(p, agreeVote)
		if err != nil {
			return verdict{}, false
		}
		v.set[m/64] |= 1 << (m % 64)
		v.vote = v.vote && vote&1 != 0
	}
	return v, true
}

// publish makes v this member's decision.
func (t *Team) publish(epoch uint64, v verdict) {
	off := setOff(len(t.ranks))
	for i, w := range v.set {
		t.local.Word64(off + 8*i).Store(w)
	}
	word := epoch << 1
	if v.vote {
		word |= 1
	}
	t.local.Word64(agreeDecided).Store(word)
}

// errTakenForGone: the others go on without this rank.
var errTakenForGone = fmt.Errorf("the other members take this rank for gone: %w", transport.ErrPeerGone)
