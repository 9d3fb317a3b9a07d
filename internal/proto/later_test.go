package proto

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// posts counts the Posts of a domain and the operations in them.
type posts struct {
	transport.Domain
	calls, ops atomic.Int64
}

func (p *posts) Post(ops []transport.Op) (int, error) {
	n, err := p.Domain.Post(ops)
	p.calls.Add(1)
	p.ops.Add(int64(n))
	return n, err
}

// since returns how many Posts there were since others counted calls and ops, as soon as n operations are counted: the last Post may
// not have returned when its operations are done.
func (p *posts) since(t *testing.T, calls, ops, n int64) int64 {
	t.Helper()
	if p.ops.Load()-ops != n {
		require.Eventually(t, func() bool { return p.ops.Load()-ops == n }, 10*time.Second, time.Millisecond)
	}
	return p.calls.Load() - calls
}

// TestSmallPutsCrossTogether: 64 small puts for which nobody waits are one Post, and go before what comes after them, to memory that is
// registered as a whole as to a bucket that is held.
func TestSmallPutsCrossTogether(t *testing.T) {
	t.Run("whole", func(t *testing.T) { smallPutsCrossTogether(t, transporttest.FabricConfig{}) })
	t.Run("bucket", func(t *testing.T) { smallPutsCrossTogether(t, transporttest.FabricConfig{MaxPinned: tightPins}) })
}

func smallPutsCrossTogether(t *testing.T, c transporttest.FabricConfig) {
	var count *posts
	tm := newTeamOf(t, 2, tightBytes, c, func(d transport.Domain) transport.Domain { count = &posts{Domain: d}; return count })
	e, to := tm.e[0], &tm.of[0][1]
	require.Equal(t, c.MaxPinned != 0, to.hosed != nil)
	word := [1]uint64{}
	require.NoError(t, e.Put(to, 0, mem.Of(word[:])))
	require.NoError(t, e.Flush(to))
	best := int64(nic.Batch)
	for range 100 { // a poll in between, by whoever serves the NIC, may send some earlier
		calls, ops := count.calls.Load(), count.ops.Load()
		for i := range nic.Batch {
			word[0] = uint64(i + 1)
			_, err := e.PutNB(to, 8*i, mem.Of(word[:]))
			require.NoError(t, err)
		}
		require.NoError(t, e.Flush(to))
		best = min(best, count.since(t, calls, ops, nic.Batch))
	}
	require.EqualValues(t, 1, best, "posts")
	for i := range 3 * nic.Batch {
		word[0] = uint64(i + 1)
		_, err := e.PutNB(to, 0, mem.Of(word[:]))
		require.NoError(t, err)
	}
	word[0] = 7
	require.NoError(t, e.Put(to, 0, mem.Of(word[:])))
	last, err := e.Load64(to, 0)
	require.NoError(t, err)
	require.EqualValues(t, 7, last)

	// Any wait sends them on, not only a flush.
	_, err = e.PutNB(to, 8, mem.Of(word[:]))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		e.nic().Progress()
		return tm.mem[1].Word64(8).Load() == 7
	}, 5*time.Second, time.Millisecond)
}

// TestSmallPutsAllocateNothing also when they wait for room.
func TestSmallPutsAllocateNothing(t *testing.T) {
	tm := newTeam(t, 2, transporttest.FabricConfig{MaxPost: 8}, nil)
	e, to := tm.e[0], &tm.of[0][1]
	src := mem.Of(make([]uint64, 2))
	require.NoError(t, e.Put(to, 0, src))
	require.NoError(t, e.Flush(to))
	require.Zero(t, testing.AllocsPerRun(50, func() {
		for i := range 200 {
			if _, err := e.PutNB(to, 16*i, src); err != nil {
				panic("put")
			}
		}
		if e.Flush(to) != nil {
			panic("flush")
		}
	}))
}
