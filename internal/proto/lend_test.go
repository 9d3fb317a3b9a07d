package proto

import (
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/am"
	"gopgas/internal/nic"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// lent is to whom this rank has made a loan, plus one.
func (n *device) lent() int {
	n.lending.mu.Lock()
	defer n.lending.mu.Unlock()
	return n.lending.to
}

// TestLend: a loan is made to one rank at a time, who may ask again, until it is given back, and is no memory of the program's.
func TestLend(t *testing.T) {
	tm := newTeamWith(t, 3, 4096, transporttest.FabricConfig{}, nil, func(*Config) {})
	first, second, owner := tm.e[0].nic(), tm.e[1].nic(), tm.e[2].nic()
	g, err := first.borrow(2)
	require.NoError(t, err)
	require.Equal(t, 2, g.Rank)
	require.Equal(t, first.loanBytes(), g.Bytes)
	require.Equal(t, 1, owner.lent())
	again, err := first.borrow(2)
	require.NoError(t, err)
	require.Equal(t, g, again)
	_, err = second.borrow(2)
	require.ErrorIs(t, err, nic.ErrRefused)
	second.giveBack(2)
	require.Equal(t, 1, owner.lent(), "nobody gives back what another one has")

	there := farOf(g)
	src := filled(64 << 10)
	require.NoError(t, first.put("test", &there, 0, src))
	back := filled(64 << 10)
	clear(back.Data())
	require.NoError(t, first.get(&there, 0, back))
	require.Equal(t, src.Data(), back.Data())

	first.giveBack(2)
	require.Zero(t, owner.lent())
	require.Eventually(t, func() bool { // its registration ends a moment later
		return first.put("test", &there, 0, src) != nil || first.Flush(t.Context(), 2) != nil
	}, time.Minute, time.Millisecond)
	g, err = second.borrow(2)
	require.NoError(t, err)
	require.Equal(t, 1, g.Rank-1)
	second.giveBack(2)
	require.Zero(t, owner.lent())
}

// TestLendRefuses what this program does not ask for, and lends no more than it would ask for.
func TestLendRefuses(t *testing.T) {
	tm := newTeamWith(t, 2, 4096, transporttest.FabricConfig{}, nil, func(*Config) {})
	n := tm.e[1].nic()
	var out [loanAnswer]byte
	for _, c := range []struct {
		bytes uint64
		room  int
	}{{7, loanAnswer}, {0, loanAnswer}, {4096, loanAnswer - 1}} {
		k, status := n.lendTo(am.Request{Args: [4]uint64{c.bytes}}, out[:c.room])
		require.Zero(t, k)
		require.Equal(t, statusMalformed, status)
		require.Zero(t, n.lent())
	}
	k, status := n.lendTo(am.Request{Args: [4]uint64{1<<64 - 1}}, out[:])
	require.Equal(t, loanAnswer, k)
	require.Equal(t, statusOK, status)
	require.EqualValues(t, n.loanBytes(), binary.LittleEndian.Uint64(out[16:]), "no more than this rank would ask for")
	n.endLoan(0)
	require.Zero(t, n.lent())
}

// TestLendWithoutRoom: who may register no more lends nothing.
func TestLendWithoutRoom(t *testing.T) {
	tm := newTeamWith(t, 2, 4096, transporttest.FabricConfig{MaxPinned: 8 << 20}, nil, func(*Config) {})
	owner := tm.e[1].nic()
	for bytes := 1 << 20; bytes >= 4096; {
		key, err := owner.Domain.Register(filled(bytes), transport.LocalWrite)
		if err != nil {
			require.ErrorIs(t, err, transport.ErrLimit)
			bytes /= 2
			continue
		}
		defer func() { require.NoError(t, owner.Domain.Deregister(key)) }()
	}
	_, err := tm.e[0].nic().borrow(1)
	require.ErrorIs(t, err, nic.ErrRefused)
	require.Zero(t, owner.lent())
}

// TestNoLoan: where there is none to be had, since another rank has it, what is known of transfers stays.
func TestNoLoan(t *testing.T) {
	const n = 256 << 10
	tm := newTeamWith(t, 2, n, transporttest.FabricConfig{}, nil, func(*Config) {})
	e, to := tm.e[0], &tm.of[0][1]
	require.NoError(t, e.nic().measureNow())
	own := e.nic().prices()
	busy := &tm.e[1].nic().lending
	busy.mu.Lock()
	busy.to = 9 // another rank has it
	busy.mu.Unlock()
	src := filled(n)
	require.NoError(t, e.Put(to, 0, src))
	require.NoError(t, e.Flush(to))
	require.Eventually(t, e.Measured, time.Minute, time.Millisecond)
	require.Same(t, own, e.nic().prices())
	busy.mu.Lock()
	busy.to = 0
	busy.mu.Unlock()
}

// TestTurnWithoutLender: a peer that lends nothing and says nothing, as one that has stopped, keeps nobody else of the node from measuring, and nobody from being told
// what has been measured; nor this rank from its end.
func TestTurnWithoutLender(t *testing.T) {
	const n = 256 << 10
	tm := newTeamWith(t, 3, n, transporttest.FabricConfig{}, nil, func(*Config) {})
	tm.share()
	e, to := tm.e[0], &tm.of[0][2]
	require.NoError(t, e.nic().measureNow())
	stopped := &tm.e[2].nic().lending
	stopped.mu.Lock() // its poller waits in the question
	resume := sync.OnceFunc(stopped.mu.Unlock)
	defer resume()
	h, err := e.PutNB(to, 0, filled(n))
	require.NoError(t, err)
	require.NoError(t, h.Wait(t.Context()))
	require.False(t, tm.e[1].takeTurn(), "it may answer yet")
	require.Eventually(t, tm.e[1].takeTurn, time.Minute, time.Millisecond)
	var out [256]byte
	k, status := e.nic().tell(am.Request{From: 1, Args: [4]uint64{e.nic().kin(), 0, uint64(len(out))}}, out[:])
	require.Equal(t, statusOK, status)
	require.Greater(t, k, sheetHead)
	require.NoError(t, e.Close())
	require.False(t, e.takeTurn(), "who has left his turn does not take another one's with him")
	tm.e[1].leaveTurn()
	resume()
}

// TestLentToTheDead: what was lent to a rank that is gone is lent to the next one who asks.
func TestLentToTheDead(t *testing.T) {
	tm := newTeamWith(t, 3, 4096, transporttest.FabricConfig{}, nil, func(*Config) {})
	_, err := tm.e[0].nic().borrow(2)
	require.NoError(t, err)
	tm.fabric.Kill(0)
	src := filled(4096)
	require.Eventually(t, func() bool {
		_ = tm.e[2].Put(&tm.of[2][0], 0, src) // finds out
		_ = tm.e[2].Flush(&tm.of[2][0])
		return tm.e[2].nic().lent() == 0
	}, time.Minute, time.Millisecond)
	_, err = tm.e[1].nic().borrow(2)
	require.NoError(t, err)
	tm.e[1].nic().giveBack(2)
}
