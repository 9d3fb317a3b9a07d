package superpipe

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/soft"
	"gopgas/transport/transporttest"
)

// bench connects the two ranks of an opened pair for Measure.
func bench(t testing.TB, ds []transport.Domain, bytes int) Bench {
	ep, err := ds[0].Connect(t.Context(), 1, ds[1].Address())
	require.NoError(t, err)
	local, remote := mem.Of(make([]uint64, bytes/8)), mem.Of(make([]uint64, bytes/8))
	lreg, err := ds[0].Register(local, transport.LocalWrite)
	require.NoError(t, err)
	rreg, err := ds[1].Register(remote, transport.AllAccess)
	require.NoError(t, err)
	return Bench{
		Sched: sched.Goroutine(2), NIC: ds[0], Poll: ds[0].Poll, EP: ep,
		Local: transport.SGE{Mem: local, LKey: lreg.LKey}, RAddr: remote.Addr(), RKey: rreg.RKey,
	}
}

func closeAll(t testing.TB, ds []transport.Domain) {
	t.Cleanup(func() {
		for _, d := range ds {
			require.NoError(t, d.Close())
		}
	})
}

func TestMeasure(t *testing.T) {
	for name, open := range map[string]func(*testing.T, int) ([]transport.Domain, func(int)){
		"loopback": openFabric(transporttest.FabricConfig{}),
		"small":    openFabric(transporttest.FabricConfig{MaxPost: 2, MaxMessage: 8000}),
		"soft":     openSoft(soft.Config{}),
	} {
		t.Run(name, func(t *testing.T) {
			ds, _ := open(t, 2)
			closeAll(t, ds)
			b := bench(t, ds, 256<<10)
			b.Cold = mem.Of(make([]uint64, 8<<20/8))
			clear(b.Cold.Data())
			m, err := Measure(t.Context(), b)
			require.NoError(t, err)
			for what, v := range map[string]float64{
				"g": m.Gap, "lambda": m.Latency, "B_net": m.Net, "B_copy": m.Copy(1e5), "B_copy of little": m.Copy(1), "B_copy of much": m.Copy(1e12),
				"lambda_reg": m.RegLatency, "B_reg": m.Reg,
			} {
				require.True(t, v > 0 && !math.IsInf(v, 0), "%s is %v", what, v)
			}
			require.True(t, 0 <= m.Slowed && m.Slowed <= 1, "%v", m.Slowed)
			// In a cache that holds both, copies of much and of more may agree to the nanosecond, and what disturbs short copies can make them look as long
			// as longer ones: but not again and again.
			for tries := 1; m.Copy(1<<20) == m.Copy(8<<20) || m.Fresh == 0; tries++ {
				require.Less(t, tries, 5, "copies of much, or of fresh memory (%v), are not measured by themselves", m.Fresh)
				m, err = Measure(t.Context(), b)
				require.NoError(t, err)
			}
			require.Positive(t, m.Fresh, "copies of fresh memory")
			require.GreaterOrEqual(t, m.FreshStart, 0.0)
			require.True(t, 0 < m.Cut && m.Cut <= m.Gap, "%v, %v", m.Cut, m.Gap)
			p := PlanPut(m, 1<<20, Rules{Slot: 1 << 17})
			require.Positive(t, p.Time(m, 0))
		})
	}
}

// TestMeasureKnowsBandwidth: a NIC that is held to a bandwidth and a latency is measured as no faster.
func TestMeasureKnowsBandwidth(t *testing.T) {
	const bandwidth, latency = 200 << 20, 50 * time.Microsecond
	ds, _ := openSoft(soft.Config{Bandwidth: bandwidth, Latency: latency})(t, 2)
	closeAll(t, ds)
	b := bench(t, ds, 1<<20)
	var m *Model
	for range 5 { // others' work on this machine can make the short transfers look long, and so the long ones cheap
		var err error
		m, err = Measure(t.Context(), b)
		require.NoError(t, err)
		if m.Net < 1.3*bandwidth && m.Latency > 0.4*latency.Seconds() {
			return
		}
	}
	require.Fail(t, "measured as faster each time", "%.0f bytes a second, latency %v s", m.Net, m.Latency)
}

func TestMeasureFails(t *testing.T) {
	ds, _ := openFabric(transporttest.FabricConfig{})(t, 2)
	closeAll(t, ds)
	b := bench(t, ds, 1<<16)
	b.RKey++
	_, err := Measure(t.Context(), b)
	require.ErrorContains(t, err, "refused")
	b.Poll = func([]transport.Completion) (int, error) { return 0, nil }
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = Measure(ctx, b)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// TestSlowdown: by how much of the wire's bandwidth copies beside it are slower, by hand: 1000 bytes in 100 ns are 10 GB/s, in 125 ns 8 GB/s.
func TestSlowdown(t *testing.T) {
	for _, c := range []struct {
		alone, beside time.Duration
		net, want     float64
	}{
		{100, 125, 4e9, 0.5},
		{100, 125, 1e9, 1},
		{100, 100, 1e9, 0},
		{100, 90, 1e9, 0},
		{0, 90, 1e9, 0},
	} {
		require.InDelta(t, c.want, slowdown(1000, c.alone, c.beside, c.net), 1e-9, "%+v", c)
	}
}

// TestRatioBesideTheNIC: chunks grow by what copies do while the NIC is at work.
func TestRatioBesideTheNIC(t *testing.T) {
	m := &Model{Gap: 1e-7, Latency: 1e-6, Net: 2e9, Copy: func(float64) float64 { return 5.2e9 }}
	for slowed, want := range map[float64]float64{0: steepest, 0.8: 1.8, 1: m.OverlappedRatio(1 << 20)} {
		m.Slowed = slowed
		p := PlanPut(m, 1<<20, Rules{Slot: 1 << 17})
		require.InDelta(t, want, p.Ratio, 1e-9)
	}
	m.Copy, m.Slowed = func(float64) float64 { return 3e9 }, 1
	p := PlanPut(m, 1<<20, Rules{Slot: 1 << 17})
	require.InDelta(t, 1, p.Ratio, 0, "what does not outrun the wire beside it is sent in equal chunks")
}

// TestRegistersByTurns: registrations are tried as the program's are done, each of other memory than the one before, and behind a transfer; what
// stops one is Measure's error.
func TestRegistersByTurns(t *testing.T) {
	ds, _ := openFabric(transporttest.FabricConfig{})(t, 2)
	closeAll(t, ds)
	b := bench(t, ds, 256<<10)
	var last mem.Range
	polls, seen, pinned := 0, 0, 0
	b.Poll = func(cq []transport.Completion) (int, error) {
		polls++
		return ds[0].Poll(cq)
	}
	b.Pin = func(r mem.Range) error {
		if r.Bytes == 256<<10 {
			pinned++
			require.NotEqual(t, last.Addr(), r.Addr())
			require.Greater(t, polls, seen, "the NIC has had nothing to do since the last one")
			last, seen = r, polls
			time.Sleep(time.Millisecond)
		}
		return nil
	}
	m, err := Measure(t.Context(), b)
	require.NoError(t, err)
	require.GreaterOrEqual(t, pinned, fewTries)
	require.Less(t, m.Reg, 270e6, "256 KiB take a millisecond")
	b.Pin = func(mem.Range) error { return context.Canceled }
	_, err = Measure(t.Context(), b)
	require.ErrorIs(t, err, context.Canceled)
}

// TestLine: 1 KiB in 500 ns and 32 KiB in 3600 are 10.24 bytes a nanosecond after 400 ns, by hand; what tells nothing is nothing.
func TestLine(t *testing.T) {
	start, bandwidth := line(500, 3600)
	require.InDelta(t, 400e-9, start, 1e-12)
	require.InDelta(t, 10.24e9, bandwidth, 1)
	for _, c := range [][2]time.Duration{{500, 500}, {500, 400}, {0, 0}} {
		start, bandwidth = line(c[0], c[1])
		require.Zero(t, start)
		require.Zero(t, bandwidth)
	}
	start, _ = line(10, 3600)
	require.Zero(t, start, "it begins at once")
}
