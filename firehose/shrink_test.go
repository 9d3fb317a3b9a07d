package firehose

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// tables are the sizes of what a holder and an owner keep, in records.
func (n *net) tables() (held, served int) {
	p, s := &n.holders[0].peers[1], n.owners[1].s
	require.LessOrEqual(n.t, len(p.idle.links), max(cap(p.slab), leastSlab))
	require.LessOrEqual(n.t, len(s.idle.links), max(cap(s.slab), leastSlab))
	return len(p.slab), len(s.slab)
}

// TestTablesShrink: of many buckets few remain, and the tables become as small as if there had never been more, at both ends, with what is
// in use, idle, and a victim where it was.
func TestTablesShrink(t *testing.T) {
	const many = 120
	n := newNet(t, config{ranks: 2, f: many, v: 4})
	o := n.owners[1]
	require.NoError(t, o.s.Expose(Range{ID: 2, Start: start + bigRange, Bytes: bigRange}))
	v, err := n.holders[0].View(1, Range{ID: 2, Start: start + bigRange, Bytes: bigRange})
	require.NoError(t, err)
	require.NoError(t, n.holders[0].Fix(v, 0))
	var stay Request
	for i := range uint64(many) { // every tenth bucket is the other range's
		if i%10 > 0 {
			n.use(i)
			continue
		}
		q := new(Request)
		if i == 10 {
			q = &stay
		}
		n.holders[0].Acquire(v, q, i*unit, unit)
		n.send(0)
		n.settle()
		if q != &stay {
			n.release(q)
		}
	}
	held, served := n.tables()
	require.Equal(t, [2]int{many, many}, [2]int{held, served})
	require.Len(t, o.s.Withdraw(1), 1)
	n.holders[0].Withdraw(1, 1)
	n.send(0)
	n.check()
	n.settle()
	require.True(t, o.s.Withdrawn(1))
	held, served = n.tables()
	require.LessOrEqual(t, held, 2*many/10)
	require.LessOrEqual(t, served, 2*many/10)
	p := &n.holders[0].peers[1]
	require.LessOrEqual(t, len(p.at.cells), 4*many/10)
	var want []uint64
	for i := uint64(0); i < many; i += 10 {
		if i != 10 {
			want = append(want, i)
		}
	}
	require.Equal(t, want, p.idleOf(), "in the order of last use")
	require.Equal(t, Ready, stay.State())
	require.Equal(t, MakeBucket(2, 0, 10), stay.Run().First)
	n.release(&stay)
	require.Equal(t, append(want, 10), p.idleOf())
}

// TestShrinkingWaits: while the owner's machine registers for one call no other moves the buckets that it knows.
func TestShrinkingWaits(t *testing.T) {
	const many = 100
	n := newNet(t, config{ranks: 2, f: many, v: many})
	o := n.owners[1]
	for i := range uint64(many) {
		n.use(i)
	}
	sizes := []int{len(o.s.slab)}
	o.during = func() { // a move is under way
		n.holders[0].Withdraw(1, 1)
		o.s.Lost(0)
		sizes = append(sizes, len(o.s.slab))
	}
	b := MakeBucket(1, 0, many+1)
	_, err := o.s.Pin(Run{b, 1}, nil)
	require.NoError(t, err)
	o.s.Unpin(Run{b, 1})
	o.s.Shed(many * unit)
	require.Equal(t, []int{many, many + 1}, sizes)
	require.Empty(t, o.s.slab)
}
