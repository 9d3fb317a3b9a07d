package nic

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// TestCrowdSits: of many as many look as may, and all others sit; who leaves, or has looked for long, is replaced, in the order in which they sat down.
func TestCrowdSits(t *testing.T) {
	for look := 1; look <= 3; look++ {
		c := &crowd{look: look}
		g := goal{}
		var all [8]guest
		requireSat := func(sat ...int) {
			t.Helper()
			for i := range all {
				require.Equal(t, sat[i] == 1, all[i].seat != nil && all[i].seat.taken, "guest %d of %v", i, sat)
			}
		}
		for i := range look + 1 {
			all[i] = c.join()
			require.False(t, c.sits(&all[i], &g), "so few do not sit")
		}
		for i := look + 1; i < len(all); i++ {
			all[i] = c.join()
		}
		sat := make([]int, len(all))
		for i := range all {
			if len(all)-i > look {
				sat[i] = 1
			}
			require.Equal(t, sat[i] == 1, c.sits(&all[i], &g), "guest %d", i)
		}
		requireSat(sat...)
		require.Equal(t, look, c.lookers())

		last := &all[len(all)-1] // who leaves is replaced by the first
		c.leave(last)
		sat[0] = 0
		requireSat(sat...)
		require.False(t, c.sits(&all[0], &g))
		require.True(t, all[0].rose)
		require.Equal(t, look, c.lookers())

		c.tired.Add(1) // and who has looked for long by the next
		c.relieve()
		sat[1] = 0
		requireSat(sat...)
		require.False(t, c.sits(&all[1], &g))
		c.tired.Add(-1) // he has found something: there is one too many now, who sits down, the first who asks
		require.Equal(t, look+1, c.lookers())
		require.True(t, c.sits(&all[1], &g))
		sat[1] = 1
		requireSat(sat...)

		for i := range all[:len(all)-1] {
			c.leave(&all[i])
		}
		require.Zero(t, c.waits.Load())
		require.Zero(t, c.sat.Load())
		require.Empty(t, c.taken)
		require.LessOrEqual(t, len(c.empty), len(all))
	}
}

// crowded is a NIC that has crowds, which takes its time, and counts the posts.
type crowded struct {
	transport.Domain
	posts, polls atomic.Int64
}

func (*crowded) Hush(sched.Polling) {}

func (d *crowded) Post(ops []transport.Op) (int, error) {
	d.posts.Add(1)
	return d.Domain.Post(ops)
}

func (d *crowded) Poll(cq []transport.Completion) (int, error) {
	if d.polls.Add(1)%16 != 0 {
		runtime.Gosched()
		return 0, nil
	}
	return d.Domain.Poll(cq)
}

func newCrowded(t *testing.T) (*world, *crowded) {
	d := &crowded{}
	two := func(int) *sched.Sched { return sched.ProcessOn(1, 1) }
	return newWorldOn(t, 2, two, transporttest.FabricConfig{}, func(x transport.Domain) transport.Domain { d.Domain = x; return d }), d
}

// TestCrowd: many goroutines each wait for what they post, one by one: each gets what is its own, what many post goes together, and nobody is left.
func TestCrowd(t *testing.T) {
	w, d := newCrowded(t)
	n := w.n[0]
	require.Equal(t, 1, n.crowd.look)
	const guests, rounds = 16, 200
	for i := range guests {
		w.mem[1].Word64(8 * i).Store(uint64(i) << 32)
	}
	require.NoError(t, n.Connect("get", 1))
	begin := d.posts.Load()
	var all sync.WaitGroup
	for i := range guests {
		all.Go(func() {
			for k := range uint64(rounds) {
				if i%2 == 0 {
					v, err := w.await(1, 8*i, 0)
					if err != nil || v != uint64(i)<<32 {
						t.Errorf("guest %d has read %d: %v", i, v, err)
						return
					}
					continue
				}
				w.put(t, 1, 8*i, k)
				if err := n.Flush(t.Context(), 1); err != nil {
					t.Error(err)
					return
				}
				if v := w.mem[1].Word64(8 * i).Load(); v != k {
					t.Errorf("guest %d has put %d and finds %d behind the flush", i, k, v)
					return
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d operations in %d posts", guests*rounds, d.posts.Load()-begin)
	require.Less(t, d.posts.Load()-begin, int64(guests*rounds))
	require.Zero(t, n.crowd.waits.Load())
	require.Zero(t, n.crowd.sat.Load())
	require.Zero(t, n.crowd.tired.Load())
	require.Empty(t, n.crowd.taken)
	require.True(t, n.Idle())
}

// TestCrowdLeavesNothing: what was left to who looks is posted by him when he leaves or tires, and at once by who has left it where nobody looks any more.
func TestCrowdLeavesNothing(t *testing.T) {
	w, _ := newCrowded(t)
	n := w.n[0]
	require.NoError(t, n.Connect("put", 1))
	there := func() uint64 { return w.mem[1].Word64(0).Load() }
	some := make([]guest, 3)
	for i := range some {
		some[i] = n.crowd.join()
	}
	w.put(t, 1, 0, 1)
	require.Equal(t, 1, n.HeldBack())
	require.Zero(t, there())
	n.crowd.leave(&some[0])
	n.crowd.leave(&some[1])
	require.Equal(t, 1, n.HeldBack(), "one looks still")
	n.leaveCrowd(&some[2])
	require.Zero(t, n.HeldBack())
	require.NoError(t, n.Flush(t.Context(), 1))
	require.EqualValues(t, 1, there())

	for i := range some {
		some[i] = n.crowd.join()
	}
	sp := n.sched.Begin(t.Context(), sched.What{}, nil)
	defer sp.End()
	w.put(t, 1, 0, 2)
	for i := range some {
		require.Equal(t, 1, n.HeldBack())
		for range tiring {
			n.stepInCrowd(&some[i], &sp)
		}
	}
	require.Zero(t, n.HeldBack())
	n.crowd.moved(&some[0])
	require.Equal(t, 1, n.crowd.lookers())
	for i := range some {
		n.leaveCrowd(&some[i])
	}
	require.NoError(t, n.Flush(t.Context(), 1))
	require.EqualValues(t, 2, there())
	require.Zero(t, n.crowd.lookers())
}

// TestCrowdMet: a flush that sits gets up when what was put before it is over, though more is under way by then.
func TestCrowdMet(t *testing.T) {
	w, _ := newCrowded(t)
	n := w.n[0]
	require.NoError(t, n.Connect("put", 1))
	w.put(t, 1, 0, 1)
	g := goal{end: n.ends[1], mark: n.Begun(1)}
	some := make([]guest, 3)
	for i := range some {
		some[i] = n.crowd.join()
	}
	require.True(t, n.crowd.sits(&some[0], &g))
	w.put(t, 1, 0, 2) // held back: some look
	require.False(t, n.reached(&g))
	require.True(t, some[0].seat.taken)
	for some[0].seat.taken {
		n.inVain(false)
	}
	require.True(t, n.Pending(1))
	require.True(t, n.reached(&g))
	for i := range some {
		n.leaveCrowd(&some[i])
	}
	require.NoError(t, n.Flush(t.Context(), 1))
}
