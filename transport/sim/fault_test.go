package sim

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/sched"
	"gopgas/transport"
)

func TestKilledAtAnOperation(t *testing.T) {
	var reached bool
	c := Config{Model: round(), Faults: Faults{Kill: []Fault{{Rank: 1, Op: 3}}}}
	f := run(t, 2, c, func(r *lone) {
		if r.rank == 1 {
			r.post(transport.OpWrite, 0, 8, 8)
			r.wait()
			r.wait()
			at := r.s.Now()
			r.all[0].mem.Word64(512).Store(uint64(at))
			r.post(transport.OpWrite, 0, 8)
			reached = true
			return
		}
		c := r.wait()
		require.Equal(t, transport.OpPeerDown, c.Kind)
		r.at(time.Duration(r.mem.Word64(512).Load())+7000+50, "heard of after Detect")
		_, err := r.d.Connect(t.Context(), 1, r.all[1].d.Address())
		require.ErrorIs(t, err, transport.ErrPeerGone)
	})
	require.False(t, reached, "a dead rank runs no further")
	require.True(t, f.Killed(1))
	require.False(t, f.Killed(0))
}

func TestKilledAtATime(t *testing.T) {
	c := Config{Model: round(), Faults: Faults{Kill: []Fault{{Rank: 1, At: 1500}}}}
	run(t, 2, c, func(r *lone) {
		if r.rank == 1 {
			require.NoError(t, r.s.Sleep(context.Background(), time.Hour))
			t.Error("it lives")
			return
		}
		r.post(transport.OpWrite, 1, 10000, 8) // on the way when the target dies
		var got []transport.Status
		for range 3 {
			if c := r.wait(); c.Kind == transport.OpWrite {
				got = append(got, c.Status)
			}
		}
		require.Equal(t, []transport.Status{transport.StatusPeerGone, transport.StatusFlushed}, got)
		require.GreaterOrEqual(t, r.s.Now(), 1500+7000*time.Nanosecond, "nobody knows before Detect")
		require.Less(t, r.s.Now(), 12*time.Microsecond, "when the long one would have been there everybody knows")
		require.Zero(t, r.all[1].mem.Data()[0])
	})
}

// TestKilledBeforeItsNICIsOpen: a rank need not have a NIC to die, and who runs the machine is told of each death once, when it can be known.
func TestKilledBeforeItsNICIsOpen(t *testing.T) {
	m := sched.NewSim(1)
	c := Config{Model: round(), Faults: Faults{Kill: []Fault{{Rank: 0, At: 50}, {Rank: 1, At: 100}, {Rank: 1, At: 200}, {Rank: 2, At: time.Hour}}}}
	f := New(m, 4, c)
	ranks := make([]*sched.Sched, 4)
	var ended, told []int
	for r := range ranks {
		ranks[r] = m.Rank()
		ranks[r].Go(func() {
			if r != 0 {
				require.NoError(t, ranks[r].Sleep(context.Background(), time.Minute))
			}
			ended = append(ended, r)
		})
	}
	f.Host(ranks, func(rank int) {
		told = append(told, rank)
		require.Equal(t, 100+7000*time.Nanosecond, m.Now())
	})
	require.NoError(t, m.Run())
	require.Equal(t, []int{1}, told)
	require.True(t, f.Killed(1))
	require.False(t, f.Killed(0), "it had ended")
	slices.Sort(ended)
	require.Equal(t, []int{0, 2, 3}, ended)
}

func TestBrokenConnection(t *testing.T) {
	c := Config{Model: round(), Faults: Faults{Break: []Fault{{Rank: 0, Op: 2}}}}
	run(t, 3, c, func(r *lone) {
		if r.rank != 0 {
			return
		}
		r.post(transport.OpWrite, 2, 8)
		require.Equal(t, transport.StatusOK, r.wait().Status)
		r.post(transport.OpWrite, 1, 8)
		require.Equal(t, transport.StatusFlushed, r.wait().Status)
		r.post(transport.OpWrite, 2, 8)
		require.Equal(t, transport.StatusOK, r.wait().Status, "other connections go on")
		r.post(transport.OpWrite, 1, 8) // connects anew
		require.Equal(t, transport.StatusOK, r.wait().Status)
	})
}

// TestDelayKeepsOrder and the next one tell what the contract allows.
func TestDelayKeepsOrder(t *testing.T) {
	late := 0
	run(t, 2, Config{Model: round(), Faults: Faults{Delay: 5000}}, func(r *lone) {
		require.True(t, r.d.Caps().OrderedWrites)
		if r.rank == 1 {
			return
		}
		sizes := make([]int, 100)
		for i := range sizes {
			sizes[i] = 8
		}
		r.post(transport.OpWrite, 1, sizes...)
		for i := range sizes {
			require.EqualValues(t, i, r.wait().Cookie)
		}
		if r.s.Now() > 100+99*208+8+2000+50 {
			late++
		}
	})
	require.Equal(t, 1, late, "nothing was delayed")
}

func TestReorderedWritesOvertake(t *testing.T) {
	overtaken := false
	c := Config{Model: round(), Faults: Faults{Delay: 5000, Reorder: true}}
	run(t, 2, c, func(r *lone) {
		require.False(t, r.d.Caps().OrderedWrites, "or the library would rely on order")
		if r.rank == 1 {
			return
		}
		ep, err := r.d.Connect(t.Context(), 1, r.all[1].d.Address())
		require.NoError(t, err)
		for i := range 50 {
			r.mem.Word64(8 * i).Store(uint64(i + 1))
			_, err := r.d.Post([]transport.Op{{
				Kind: transport.OpWrite, Flags: transport.FlagSignaled, NSGE: 1, EP: ep, Cookie: uint64(i),
				SGE: [4]transport.SGE{{Mem: r.mem.Slice(8*i, 8), LKey: r.reg.LKey}}, RAddr: r.all[1].mem.Addr() + uint64(8*i), RKey: r.all[1].reg.RKey,
			}})
			require.NoError(t, err)
		}
		for i := range 50 {
			require.EqualValues(t, i, r.wait().Cookie, "reports keep their order")
			there := r.all[1].mem
			require.EqualValues(t, i+1, there.Word64(8*i).Load())
			for k := i + 2; k < 50; k++ {
				overtaken = overtaken || there.Word64(8*(k-1)).Load() == 0 && there.Word64(8*k).Load() != 0
			}
		}
	})
	require.True(t, overtaken)
}
