package verbs

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// TestOwes: what must be reported without the peer's program, and what may wait for it.
func TestOwes(t *testing.T) {
	write := record{kind: transport.OpWrite}
	room := record{kind: transport.OpWrite, asked: true} // the caller has not asked
	read := record{kind: transport.OpRead, signaled: true, asked: true}
	quiet := record{kind: transport.OpSend}
	send := record{kind: transport.OpSend, signaled: true, asked: true}
	imm := record{kind: transport.OpWriteImm}
	for _, c := range []struct {
		recs []record
		owes debt
	}{
		{nil, debtNone},
		{[]record{write}, debtNone}, // nobody has asked for its report
		{[]record{write, room}, debtOwn},
		{[]record{read}, debtOwn},
		{[]record{write, read}, debtOwn},
		{[]record{read, send}, debtOwn},
		{[]record{quiet}, debtNone},
		{[]record{send}, debtMessage},
		{[]record{send, read}, debtMessage},
		{[]record{quiet, room}, debtMessage},
		{[]record{write, imm, read}, debtMessage},
	} {
		r := newRing(8)
		r.head.Store(7) // the ring goes round
		r.tail.Store(7)
		for _, rec := range c.recs {
			r.enter(rec)
		}
		require.Equal(t, c.owes, r.owes(), "%v", c.recs)
	}
}

// TestSkipQuiet: what the NIC had when a pair ended has succeeded up to the first record that it was asked to report and has not.
func TestSkipQuiet(t *testing.T) {
	for want, asked := range [][]bool{{true}, {false, true, false}, {false, false}, {false, false, false, true, true}} {
		p := &pair{ring: newRing(8)}
		p.head.Store(^uint32(0)) // the numbers go round
		p.tail.Store(^uint32(0))
		for _, a := range asked {
			p.enter(record{asked: a})
		}
		p.posted = p.tail.Load()
		p.enter(record{}) // the NIC never had it
		p.skipQuiet()
		require.EqualValues(t, want, p.head.Load()+1, "%v", asked)
	}
}

// TestOverdueLooks: a NIC is given the time that its own tries take, and a message more.
func TestOverdueLooks(t *testing.T) {
	for patience, want := range map[time.Duration]int{0: 10, defaultPatience: 10, 10 * time.Second: 10, time.Minute: 15, 10 * time.Minute: 60, time.Hour: 60} {
		require.Equal(t, want, debtOwn.looks(patience), "%v", patience)
		require.Equal(t, 3*want, debtMessage.looks(patience), "%v", patience)
	}
	require.Contains(t, debtMessage.words(7), "rank 7 posts no buffer")
}

// TestOverdue: a pair is overdue when the same record is owed at many looks on end.
func TestOverdue(t *testing.T) {
	const most = overdueTicks
	p, other := new(pair), new(pair)
	var l look
	look := func(times int, p *pair, head uint32, owed debt) (overdue bool) {
		for range times {
			overdue = l.overdue(p, head, owed, most)
		}
		return overdue
	}
	require.False(t, look(most, p, 5, debtOwn))
	require.True(t, look(1, p, 5, debtOwn))
	require.False(t, look(1, p, 5, debtNone), "it has been reported")
	require.False(t, look(most-1, p, 5, debtOwn))
	require.False(t, look(most, p, 6, debtOwn), "the next one is owed")
	require.False(t, look(most, other, 6, debtMessage), "another pair in the slot")
	require.True(t, look(1, other, 6, debtMessage))
}

// hasty opens ranks that look for what the device has forgotten twenty times as often as others.
func hasty(t *testing.T, n int) (all []*rank) {
	t.Helper()
	for i := range n {
		d, err := Provider{tick: overdueTick / 20}.Open(t.Context(), jobConfig(i, n))
		transporttest.SkipUnless(t, err)
		r := &rank{t: t, domain: d.(*domain), mem: mem.Of(make([]uint64, memoryBytes/8))}
		t.Cleanup(func() { r.Close() })
		r.reg, err = r.Register(r.mem, transport.AllAccess)
		require.NoError(t, err)
		all = append(all, r)
	}
	return all
}

// message is a signalled send of 8 bytes.
func (r *rank) message(ep transport.EP) transport.Op {
	op := r.write(ep, 0, 0)
	op.Kind = transport.OpSend
	return op
}

// TestForgotten: an operation that the device does not know of, as if it had forgotten it, is reported in the end, and nobody is
// called gone for it.
func TestForgotten(t *testing.T) {
	all := hasty(t, 2)
	a, b := all[0], all[1]
	for kind, words := range map[transport.Kind]string{
		transport.OpWrite: "the device has forgotten an operation",
		transport.OpSend:  "the device has forgotten a message, or rank 1 posts no buffer to receive it",
	} {
		ep := a.dial(b)
		p := a.pairOf(ep)
		a.domain.post.mu.Lock()
		p.enter(record{cookie: 9, ep: ep, kind: kind, signaled: true, asked: true})
		a.domain.post.mu.Unlock()
		c := a.next(30 * time.Second)
		require.Equal(t, transport.Completion{Cookie: 9, EP: ep, Kind: kind, Status: transport.StatusFlushed}, c)
		require.ErrorContains(t, a.Explain(c), words)
		require.NotErrorIs(t, a.Explain(c), transport.ErrPeerGone)
		next := a.dial(b)
		require.Greater(t, next.Incarnation, ep.Incarnation)
		require.Equal(t, transport.StatusOK, a.do(a.write(next, b.mem.Addr(), b.reg.RKey)).Status)
	}
}

// TestDrainForgotten: what was in flight when a pair ended is reported though the device never reports the pair's last operation.
func TestDrainForgotten(t *testing.T) {
	all := ranks(t, 2)
	a, b := all[0], all[1]
	ep := a.dial(b)
	p := a.pairOf(ep)
	a.domain.post.mu.Lock()
	p.enter(record{cookie: 9, ep: ep, kind: transport.OpRead, signaled: true, asked: true})
	a.domain.post.mu.Unlock()
	a.table.slots[p.slot].Store(nil) // from here on what the device says of the pair is nobody's
	require.NoError(t, a.Disconnect(ep))
	require.Equal(t, transport.Completion{Cookie: 9, EP: ep, Kind: transport.OpRead, Status: transport.StatusFlushed}, a.next(10*time.Second))
	next := a.dial(b)
	require.Greater(t, next.Incarnation, ep.Incarnation)
	require.Equal(t, transport.StatusOK, a.do(a.write(next, b.mem.Addr(), b.reg.RKey)).Status)
	for range 2 * spare { // slots come back
		require.NoError(t, a.Disconnect(next))
		next = a.dial(b)
	}
	require.NoError(t, a.Close())
}

// TestNoBuffer: a message for which no buffer comes is reported in the end (Soft-RoCE gives up by itself, after the tries that are for
// lost packets; others wait until it is overdue), and nobody is called gone for it.
func TestNoBuffer(t *testing.T) {
	all := hasty(t, 2)
	a, b := all[0], all[1]
	ep := a.dial(b)
	n, err := a.Post([]transport.Op{a.message(ep)})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	c := a.next(30 * time.Second)
	require.Equal(t, transport.OpSend, c.Kind)
	require.Equal(t, transport.StatusFlushed, c.Status)
	require.NotErrorIs(t, a.Explain(c), transport.ErrPeerGone)
	next := a.dial(b)
	require.Equal(t, transport.StatusOK, a.do(a.write(next, b.mem.Addr(), b.reg.RKey)).Status)
}

// TestLinkMessages sends messages to a peer and to itself, for which there are buffers, while the interface goes down and up again and
// again: each is reported, and in the end they get through.
func TestLinkMessages(t *testing.T) {
	nic := os.Getenv("VERBS_TEST_FLAPS")
	if nic == "" {
		t.Skip("Caps: no time for an interface that goes down again and again (VERBS_TEST_FLAPS)")
	}
	all := hasty(t, 2)
	a := all[0]
	for _, r := range all {
		bufs := make([]transport.Recv, 32)
		for i := range bufs {
			bufs[i].Buf = transport.SGE{Mem: r.mem.Slice(8*(i+1), 8), LKey: r.reg.LKey}
		}
		n, err := r.PostRecv(bufs)
		require.NoError(t, err)
		require.Equal(t, len(bufs), n)
	}
	// poll takes what has come at a rank, and gives the buffers back.
	poll := func(r *rank) (sent []transport.Completion) {
		var cq [64]transport.Completion
		n, err := r.Poll(cq[:])
		require.NoError(t, err)
		for _, c := range cq[:n] {
			switch c.Kind {
			case transport.OpSend:
				sent = append(sent, c)
			case transport.OpRecv:
				n, err := r.PostRecv([]transport.Recv{{Buf: transport.SGE{Mem: r.mem.Slice(8, 8), LKey: r.reg.LKey}}})
				require.NoError(t, err)
				require.Equal(t, 1, n)
			case transport.OpPeerDown:
				require.NotEqual(t, transport.OpPeerDown, c.Kind, "rank %d is gone: %v", c.EP.Index, r.Explain(c))
			}
		}
		return sent
	}
	// round sends some messages, and reports whether all got through when all were reported.
	round := func(to *rank) bool {
		op := a.message(a.dial(to))
		n, err := a.Post([]transport.Op{op, op, op})
		require.NoError(t, err)
		through := 0
		deadline := time.Now().Add(40 * time.Second)
		for reported := 0; reported < n; {
			for _, c := range poll(a) {
				reported++
				if c.Status == transport.StatusOK {
					through++
				}
			}
			poll(all[1])
			require.True(t, time.Now().Before(deadline), "%d of %d messages to rank %d were reported", reported, n, to.rank)
		}
		return through == 3
	}
	for _, down := range []time.Duration{time.Millisecond, 20 * time.Millisecond, 5 * time.Millisecond, 100 * time.Millisecond} {
		up := make(chan struct{})
		go func() {
			defer close(up)
			for _, state := range []string{"down", "up"} {
				if out, err := exec.Command("ip", "link", "set", nic, state).CombinedOutput(); err != nil {
					t.Errorf("%v: %s", err, out)
				}
				time.Sleep(down)
			}
		}()
		for open := true; open; {
			for _, to := range all {
				round(to)
			}
			select {
			case <-up:
				open = false
			default:
			}
		}
		for _, to := range all {
			for deadline := time.Now().Add(30 * time.Second); !round(to); {
				require.True(t, time.Now().Before(deadline), "nothing gets through to rank %d", to.rank)
			}
		}
	}
}
