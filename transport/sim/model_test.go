package sim

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// round is a model to work with by hand: 1 ns for a byte.
func round() Model {
	return Model{
		Name: "round", Latency: 1000, PerByte: 1000,
		Write: Cost{Post: 100, Gap: 200}, Read: Cost{Post: 100, Gap: 200, Target: 300},
		Atomic: Cost{Post: 100, Gap: 200, Target: 300}, Send: Cost{Post: 100, Gap: 200, Target: 40},
		Reap: 50, Detect: 7000, Connect: 0,
		Register: Linear{5000, 10}, Deregister: Linear{700, 3},
		Copy: []Level{{1000, 100}, {10000, 500}, {20000, 2000}},
	}
}

// lone is one rank of a test that has the NIC alone, without the library above it.
type lone struct {
	t    *testing.T
	rank int
	s    *sched.Sched
	d    transport.Domain
	mem  mem.Range
	reg  transport.Region
	all  []*lone
}

// run lets each rank run f, with 64 KiB of registered memory, and returns the machine.
func run(t *testing.T, n int, c Config, f func(r *lone)) *Fabric {
	m := sched.NewSim(0)
	fabric := New(m, n, c)
	all := make([]*lone, n)
	for i := range all {
		s := m.Rank()
		d, err := fabric.Provider(i).Open(t.Context(), transport.Config{Rank: i, Size: n, Sched: s})
		require.NoError(t, err)
		r := &lone{t: t, rank: i, s: s, d: d, mem: mem.Of(make([]uint64, 8192)), all: all}
		r.reg, err = d.Register(r.mem, transport.AllAccess) // before time begins
		require.NoError(t, err)
		all[i] = r
	}
	for _, r := range all {
		r.s.Go(func() { fabric.Begin(r.rank); f(r) })
	}
	require.NoError(t, m.Run())
	return fabric
}

// post posts operations of a kind, of so many bytes each, to a peer.
func (r *lone) post(kind transport.Kind, peer int, bytes ...int) {
	ep, err := r.d.Connect(r.t.Context(), peer, r.all[peer].d.Address())
	require.NoError(r.t, err)
	var ops []transport.Op
	for i, n := range bytes {
		p := r.all[peer]
		ops = append(ops, transport.Op{
			Kind: kind, Flags: transport.FlagSignaled, NSGE: 1, EP: ep, Cookie: uint64(i), Arg0: 1,
			SGE: [4]transport.SGE{{Mem: r.mem.Slice(0, n), LKey: r.reg.LKey}}, RAddr: p.mem.Addr(), RKey: p.reg.RKey,
		})
	}
	n, err := r.d.Post(ops)
	require.NoError(r.t, err)
	require.Equal(r.t, len(ops), n)
}

// wait returns the next completion.
func (r *lone) wait() transport.Completion {
	var cq [1]transport.Completion
	sp := r.s.Begin(context.Background(), sched.What{Op: "completion", Peer: -1}, nil)
	defer sp.End()
	for {
		n, err := r.d.Poll(cq[:])
		require.NoError(r.t, err)
		if n == 1 {
			return cq[0]
		}
		require.NoError(r.t, sp.Step())
	}
}

// until waits until the byte at off of the rank's memory is v.
func (r *lone) until(off int, v byte) {
	sp := r.s.Begin(context.Background(), sched.What{Op: "byte", Peer: -1}, nil)
	defer sp.End()
	for r.mem.Data()[off] != v {
		require.NoError(r.t, sp.Step())
	}
}

func (r *lone) at(d time.Duration, what string) {
	r.t.Helper()
	require.Equal(r.t, d, r.s.Now(), what)
}

func TestPutByHand(t *testing.T) {
	run(t, 2, Config{Model: round()}, func(r *lone) {
		if r.rank == 1 {
			r.until(999, 7)
			r.at(2100, "o 100, L 1000, 1000 bytes")
			return
		}
		r.mem.Data()[999] = 7
		r.post(transport.OpWrite, 1, 1000)
		r.at(100, "only o is the processor's")
		require.Equal(t, transport.StatusOK, r.wait().Status)
		r.at(3150, "there at 2100, the answer takes L, and 50 to take it")
	})
}

func TestGetAndAtomicByHand(t *testing.T) {
	run(t, 2, Config{Model: round()}, func(r *lone) {
		if r.rank == 1 {
			r.mem.Data()[0] = 9
			return
		}
		r.post(transport.OpRead, 1, 1000)
		r.wait()
		r.at(3450, "o 100, L 1000, target 300, L 1000, 1000 bytes, 50")
		require.EqualValues(t, 9, r.mem.Data()[0])
		r.post(transport.OpFetchAdd, 1, 8)
		r.wait()
		r.at(3450+2450, "o 100, L 1000, target 300, L 1000, 50")
		require.EqualValues(t, 9, r.mem.Word64(0).Load())
		require.EqualValues(t, 10, r.all[1].mem.Word64(0).Load())
	})
}

func TestChainByHand(t *testing.T) {
	f := run(t, 2, Config{Model: round()}, func(r *lone) {
		if r.rank == 1 {
			return
		}
		r.post(transport.OpWrite, 1, 1000, 1000, 1000)
		r.at(300, "three times o")
		// The NIC begins at 100, 1300 and 2500: 1000 bytes and the gap lie between.
		for i, end := range []time.Duration{3150, 4350, 5550} {
			require.EqualValues(t, i, r.wait().Cookie)
			r.at(end, "sent, there 2000 later, answered 1000 later, taken")
		}
	})
	require.EqualValues(t, 3, f.Counts().Writes)
	require.EqualValues(t, 3000, f.Counts().Bytes)
}

func TestTwoRanksShareANIC(t *testing.T) {
	for perNode, second := range map[int]time.Duration{1: 2100, 2: 3300} {
		run(t, 4, Config{Model: round(), RanksPerNode: perNode}, func(r *lone) {
			if r.rank < 2 {
				r.mem.Data()[0] = 1
				r.post(transport.OpWrite, 2+r.rank, 1000)
				return
			}
			r.until(0, 1)
			// One NIC sends the second one's bytes after the first one's 1000 and the gap of 200.
			r.at([]time.Duration{2100, second}[r.rank-2], "there")
		})
	}
}

func TestTwoSendersShareAReceiver(t *testing.T) {
	run(t, 3, Config{Model: round()}, func(r *lone) {
		if r.rank < 2 {
			r.post(transport.OpWrite, 2, 1000)
			r.wait()
			r.at([]time.Duration{3150, 4150}[r.rank], "the receiver takes one message's 1000 bytes, then the other's")
		}
	})
}

func TestAtomicsOnOneNICComeOneAfterTheOther(t *testing.T) {
	run(t, 4, Config{Model: round()}, func(r *lone) {
		if r.rank < 3 {
			r.post(transport.OpFetchAdd, 3, 8)
			r.wait()
			r.at(2450+300*time.Duration(r.rank), "each takes the target's unit for 300")
		}
	})
}

func TestMessageByHand(t *testing.T) {
	run(t, 2, Config{Model: round()}, func(r *lone) {
		if r.rank == 1 {
			require.NoError(t, r.s.Sleep(context.Background(), 5000))
			n, err := r.d.PostRecv([]transport.Recv{{Buf: transport.SGE{Mem: r.mem, LKey: r.reg.LKey}}})
			require.NoError(t, err)
			require.Equal(t, 1, n)
			require.Equal(t, transport.OpRecv, r.wait().Kind)
			r.at(6190, "the message waited for the buffer until 5100; target 40, 1000 bytes, 50")
			return
		}
		r.post(transport.OpSend, 1, 1000)
		r.wait()
		r.at(7190, "there at 6140, the answer takes L, 50")
	})
}

func TestLongWriteLandsInPieces(t *testing.T) {
	m := round()
	m.Fragment = 4096
	run(t, 2, Config{Model: m}, func(r *lone) {
		if r.rank == 1 {
			for _, p := range []struct {
				last int
				at   time.Duration
			}{{4095, 1100 + 4096}, {8191, 1100 + 8192}, {9999, 1100 + 10000}} {
				require.Zero(t, r.mem.Data()[p.last])
				r.until(p.last, 5)
				r.at(p.at, "a piece")
			}
			return
		}
		for i := range r.mem.Data() {
			r.mem.Data()[i] = 5
		}
		r.post(transport.OpWrite, 1, 10000)
	})
}

func TestRegistrationAndCopyByHand(t *testing.T) {
	f := run(t, 1, Config{Model: round()}, func(r *lone) {
		reg, err := r.d.Register(r.mem.Slice(0, 4096*2+1), transport.AllAccess)
		require.NoError(t, err)
		r.at(5030, "5000 and 3 pages of 10")
		require.NoError(t, r.d.Deregister(reg))
		r.at(5030+709, "700 and 3 pages of 3")
		r.s.ChargeCopy(1000, 1000)
		r.at(5739+100, "100 ps a byte in the nearest cache")
		r.s.ChargeCopy(1000, 1001)
		r.at(5839+500, "a part of a longer copy is as slow as that")
		r.s.ChargeCopy(500, 1<<20)
		r.at(6339+1000, "the last level serves all that is longer")
	})
	require.EqualValues(t, 2, f.Counts().Registrations, "with that of the rank's memory")
}

// TestCopyRunsBesideTheWire: while the NIC sends what was posted the processor copies on.
func TestCopyRunsBesideTheWire(t *testing.T) {
	run(t, 2, Config{Model: round()}, func(r *lone) {
		if r.rank == 1 {
			return
		}
		r.post(transport.OpWrite, 1, 20000)
		r.s.ChargeCopy(5000, 20000)
		r.at(10100, "o 100, 5000 bytes of 2 ns")
		r.wait()
		r.at(100+1000+20000+1000+50, "as if nobody had copied")
	})
}

func TestPollingInVainTakesTime(t *testing.T) {
	m := round()
	m.Poll = 10
	run(t, 2, Config{Model: m}, func(r *lone) {
		if r.rank == 1 {
			return
		}
		r.post(transport.OpWrite, 1, 1000)
		var cq [1]transport.Completion
		for n := 0; n == 0; { // a program that does not wait, but asks
			var err error
			n, err = r.d.Poll(cq[:])
			require.NoError(t, err)
		}
		require.GreaterOrEqual(t, r.s.Now(), 3150*time.Nanosecond)
		require.Less(t, r.s.Now(), 3150*time.Nanosecond+2*manyVain*m.Poll)
	})
}

// TestWaitWithoutPollingTakesTime: who is told again and again of what another goroutine is about to take must not stop the
// world.
func TestWaitWithoutPollingTakesTime(t *testing.T) {
	run(t, 2, Config{Model: round()}, func(r *lone) {
		if r.rank == 1 {
			return
		}
		r.post(transport.OpWrite, 1, 1000)
		for r.s.Now() < 10*time.Microsecond {
			require.NoError(t, r.d.Wait(t.Context()))
		}
		r.wait()
	})
}

func TestModelsAreNamedAndSourced(t *testing.T) {
	for _, name := range []string{"graphene", "helper", "modern"} {
		m, err := Named(name)
		require.NoError(t, err)
		require.Equal(t, name, m.Name)
		require.Contains(t, m.Source, "ssumed", "which constants are assumed is said")
		require.Positive(t, m.Latency)
		require.Positive(t, m.PerByte)
	}
	_, err := Named("infini")
	require.ErrorContains(t, err, "graphene")
	m := Graphene()
	require.Equal(t, 68*time.Microsecond+16*200, m.Register.of(64<<10), "as published")
	require.InDelta(t, 2e9, 1e12/float64(m.PerByte), 1e6, "2 GB/s")
	require.InDelta(t, 0.57, float64(m.PerByte)/float64(m.PerByte+2*m.Copy[3].PerByte), 0.01, "naive copies end at 57 % of the wire")
	require.InDelta(t, 0.91, 500/(500+200e3/4096), 0.01, "registration on the fly ends at 91 %")
}
