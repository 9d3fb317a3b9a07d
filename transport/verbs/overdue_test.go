package verbs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
)

// TestOwes: what must be reported without the peer's program.
func TestOwes(t *testing.T) {
	write := record{kind: transport.OpWrite}
	read := record{kind: transport.OpRead, signaled: true}
	send := record{kind: transport.OpSend, signaled: true}
	imm := record{kind: transport.OpWriteImm, signaled: true}
	for _, c := range []struct {
		recs []record
		owes bool
	}{
		{nil, false},
		{[]record{write}, false}, // nobody has asked for its report
		{[]record{read}, true},
		{[]record{write, read}, true},
		{[]record{read, send}, true},
		{[]record{send, read}, false},
		{[]record{write, imm, read}, false},
	} {
		r := newRing(8)
		r.head.Store(7) // the ring goes round
		r.tail.Store(7)
		for _, rec := range c.recs {
			r.add(rec)
		}
		require.Equal(t, c.owes, r.owes(), "%v", c.recs)
	}
}

// TestOverdue: a pair is overdue when the same record is owed at many looks on end.
func TestOverdue(t *testing.T) {
	p, other := new(pair), new(pair)
	var l look
	look := func(times int, p *pair, head uint32, owes bool) (overdue bool) {
		for range times {
			overdue = l.overdue(p, head, owes)
		}
		return overdue
	}
	require.False(t, look(overdueTicks, p, 5, true))
	require.True(t, look(1, p, 5, true))
	require.False(t, look(1, p, 5, false), "it has been reported")
	require.False(t, look(overdueTicks-1, p, 5, true))
	require.False(t, look(overdueTicks, p, 6, true), "the next one is owed")
	require.False(t, look(overdueTicks, other, 6, true), "another pair in the slot")
	require.True(t, look(1, other, 6, true))
}
