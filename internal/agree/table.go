package agree

import (
	"context"
	"fmt"
	"time"

	"gopgas/internal/mem"
	"gopgas/internal/proto"
	"gopgas/transport"
)

// The words of an agreement, from Table.Words on, and how many bytes they take.
const (
	wordVote    = 0  // epoch<<1 | vote
	wordNames   = 8  // epoch<<32 | coordinator+1
	wordDecided = 16 // epoch<<1 | outcome; the set is there
	WordsBytes  = 24
)

// SetBytes is the room that a set of n members takes.
func SetBytes(n int) int { return (n + 63) / 64 * 8 }

// Table is where the members of a team agree: words and a set in a block of each. Its fields but the last are set once, before
// the first agreement; blocks are zero then.
type Table struct {
	Engine     *proto.Engine
	Ranks      []int // in the world, by member
	Me         int   // this rank's member number
	Peers      []proto.Remote
	Local      mem.Range
	Words, Set int         // where both lie in a block
	Quit       func() bool // this rank has left

	epoch uint64             // agreements that have ended
	asked map[place]question // whose answers were not waited for
}

// Epoch returns how many agreements have ended here. Members that are in none have ended as many.
func (t *Table) Epoch() uint64 { return t.epoch }

// Pauses between two looks at another member's words.
const (
	leastLook   = 20 * time.Microsecond
	longestLook = time.Millisecond
)

// Verdict is what members agree on.
type Verdict struct {
	Set  []uint64 // of living members, a bit each
	Vote bool     // all of them said yes
}

// Has reports whether member is in the set.
func (v Verdict) Has(member int) bool { return v.Set[member/64]>>(member%64)&1 != 0 }

// Members lists the set, of n at most, in ascending order.
func (v Verdict) Members(n int) []int {
	var out []int
	for m := range n {
		if v.Has(m) {
			out = append(out, m)
		}
	}
	return out
}

// Agree is one agreement: it returns the living members, and whether all of them have voted yes. It waits for each that lives, and sleeps
// meanwhile. When ctx ends first, the next call goes on with it. One goroutine of a rank calls it.
func (t *Table) Agree(ctx context.Context, vote bool) (Verdict, error) {
	epoch := t.epoch + 1
	word := epoch << 1
	if vote {
		word |= 1
	}
	t.Local.Word64(t.Words + wordVote).Store(word)
	pause := leastLook
	for named := -1; ; {
		c, err := t.coordinator()
		if err != nil {
			return Verdict{}, err
		}
		if c != named {
			t.Local.Word64(t.Words + wordNames).Store(epoch<<32 | uint64(c+1))
			named, pause = c, leastLook
		}
		var v Verdict
		var done bool
		if c == t.Me {
			v, done = t.decide(ctx, epoch)
		} else {
			v, done = t.copyVerdict(ctx, c, epoch)
		}
		if done {
			t.publish(epoch, v)
			t.epoch, t.asked = epoch, nil
			return v, nil
		}
		if err := t.Engine.Sched.Sleep(ctx, pause); err != nil {
			return Verdict{}, err
		}
		pause = min(2*pause, longestLook)
	}
}

// coordinator is the lowest living member.
func (t *Table) coordinator() (int, error) {
	if t.Quit() {
		return 0, transport.ErrClosed
	}
	if err := t.Engine.Alive(); err != nil {
		return 0, err
	}
	for m, r := range t.Ranks {
		if m == t.Me || t.Engine.Peers.Check(r) == nil {
			return m, nil
		}
	}
	return t.Me, nil
}

// copyVerdict reads the decision of the coordinator c, if it has come to one.
func (t *Table) copyVerdict(ctx context.Context, c int, epoch uint64) (Verdict, bool) {
	word, err := t.word(ctx, c, wordDecided)
	if err != nil || word>>1 != epoch {
		return Verdict{}, false // when it is gone, another one is asked next
	}
	set, err := t.read(ctx, place{c, t.Set}, SetBytes(len(t.Ranks))/8)
	if err != nil {
		return Verdict{}, false
	}
	return Verdict{Set: set, Vote: word&1 != 0}, true
}

// place is a place in a member's block.
type place struct{ member, off int }

// question is a read of another member's memory whose answer may take long: that one may have been stopped.
type question struct {
	words []uint64
	h     proto.Handle
}

// word is one of the words of a member.
func (t *Table) word(ctx context.Context, member, which int) (uint64, error) {
	at := place{member, t.Words + which}
	if p := &t.Peers[member]; p.Mapped.Bytes != 0 {
		return t.Engine.Load64(p, at.off)
	}
	words, err := t.read(ctx, at, 1)
	if err != nil {
		return 0, err
	}
	return words[0], nil
}

// read reads n words, and waits for them no longer than ctx lasts. A later read of the same place in this agreement waits for the same answer, so that there is one at a
// time. It may be as old as its question, which does no harm: what a member has said there of an agreement stays true, and what is to be looked at behind that is asked behind it.
func (t *Table) read(ctx context.Context, at place, n int) ([]uint64, error) {
	q, under := t.asked[at]
	if !under {
		q.words = make([]uint64, n)
		var err error
		if q.h, err = t.Engine.GetNB(&t.Peers[at.member], at.off, mem.Of(q.words)); err != nil {
			return nil, err
		}
	}
	for !q.h.Done() { // a wait would spin before it looks at ctx
		if err := t.Engine.Sched.Sleep(ctx, leastLook); err != nil {
			if t.asked == nil {
				t.asked = map[place]question{}
			}
			t.asked[at] = q
			return nil, err
		}
	}
	delete(t.asked, at)
	return q.words, q.h.Wait(context.Background())
}

// decide decides if all living members have named this one, or takes over what one of them has decided.
func (t *Table) decide(ctx context.Context, epoch uint64) (Verdict, bool) {
	v := Verdict{Set: make([]uint64, SetBytes(len(t.Ranks))/8), Vote: true}
	for m, r := range t.Ranks {
		if t.Engine.Peers.Check(r) != nil && m != t.Me {
			continue
		}
		if old, done := t.copyVerdict(ctx, m, epoch); done {
			return old, true
		}
		names, err := t.word(ctx, m, wordNames)
		if err != nil || names>>32 != epoch&0xffffffff || int(names&0xffffffff)-1 < t.Me {
			return Verdict{}, false
		}
		// It may have decided between the two looks, before it named this one.
		if old, done := t.copyVerdict(ctx, m, epoch); done {
			return old, true
		}
		vote, err := t.word(ctx, m, wordVote)
		if err != nil {
			return Verdict{}, false
		}
		v.Set[m/64] |= 1 << (m % 64)
		v.Vote = v.Vote && vote&1 != 0
	}
	return v, true
}

// publish makes v this member's decision.
func (t *Table) publish(epoch uint64, v Verdict) {
	off := t.Set
	for i, w := range v.Set {
		t.Local.Word64(off + 8*i).Store(w)
	}
	word := epoch << 1
	if v.Vote {
		word |= 1
	}
	t.Local.Word64(t.Words + wordDecided).Store(word)
}

// ErrTakenForGone: the others go on without this rank.
var ErrTakenForGone = fmt.Errorf("the other members take this rank for gone: %w", transport.ErrPeerGone)
