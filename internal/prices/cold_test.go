package prices

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/internal/selector"
	"gopgas/regmgr"
	"gopgas/transport"
)

// coldShop is a NIC that knows with what memory transfers are made, and what of it is registered.
type coldShop struct {
	NIC
	t       *testing.T
	all     mem.Range
	refuses error // of far ends
	regs    map[uint64]mem.Range
	last    uint64
	far     *mem.Range // nil: the usual
	made    map[string]int
}

func (s *coldShop) Caps() transport.Caps { return transport.Caps{MaxMessage: 1 << 30} }

func (s *coldShop) Register(r mem.Range, a transport.Access) (transport.Region, error) {
	if s.refuses != nil && a&transport.RemoteWrite != 0 {
		return transport.Region{}, s.refuses
	}
	s.last++
	s.regs[s.last] = r
	return transport.Region{LKey: s.last, RKey: s.last}, nil
}

func (s *coldShop) Deregister(r transport.Region) error {
	require.Contains(s.t, s.regs, r.RKey)
	delete(s.regs, r.RKey)
	return nil
}

func (s *coldShop) With(far mem.Range, key transport.Region) NIC {
	require.Equal(s.t, far.Addr(), s.regs[key.RKey].Addr())
	of := *s
	of.far = &far
	return &of
}

func (s *coldShop) trial(what string, user mem.Range) error {
	require.True(s.t, s.all.Contains(user))
	if s.far != nil {
		require.True(s.t, s.all.Contains(*s.far))
		require.True(s.t, user.Addr()+uint64(user.Bytes) <= s.far.Addr() || s.far.Addr()+uint64(s.far.Bytes) <= user.Addr(), "apart")
		what += " both"
	}
	s.made[what]++
	return nil
}

func (s *coldShop) Slotted(_ bool, user mem.Range) error {
	if user.Bytes == tuneLeast { // wakes the NIC
		s.made["woken"]++
		return nil
	}
	return s.trial("slotted", user)
}

func (s *coldShop) Piped(_ bool, user mem.Range) error { return s.trial("piped", user) }

func (s *coldShop) Past(_ bool, user mem.Range, cache *regmgr.Manager) error {
	covered, _ := cache.Known(user, transport.LocalWrite)
	require.True(s.t, covered)
	return s.trial("past", user)
}

// TestCold: transfers whose memory finds no room in a cache, with the rest of what takes turns, are tried with memory that others have not touched
// since; some also with such at the other end. What was registered for that is given back after each, and where the NIC has no room for it only those are left out.
func TestCold(t *testing.T) {
	for _, refuses := range []error{nil, transport.ErrLimit} {
		w := &coldShop{t: t, all: mem.Of(make([]uint64, 4<<20/8)), refuses: refuses, regs: map[uint64]mem.Range{}, made: map[string]int{}}
		c := Config{Sched: sched.Process(1), NIC: w, Memory: mem.Of(make([]uint64, 2<<20/8)), Cold: w.all}
		require.NoError(t, c.measureCaches(t.Context()))
		k, err := c.afar()
		require.NoError(t, err)
		for bytes, want := range map[int][2]bool{ // of 4 MiB that caches hold, for all that is known
			64 * kib: {true, false}, 128 * kib: {true, true}, 256 * kib: {false, true}, 4096 * kib: {true, false},
		} {
			in, out := k.finds(bytes)
			require.Equal(t, want, [2]bool{in, out}, "%d bytes", bytes)
		}
		require.Equal(t, 512*kib, k.both())
		require.Equal(t, 2<<20, c.beyond())
		var all []attempt
		for p, what := range map[selector.Protocol]string{selector.Direct: "past", selector.Bounce: "slotted", selector.Pipe: "piped"} {
			all = append(all, k.attempt(p, false, 256*kib, false), k.attempt(p, false, k.both(), true))
			require.Zero(t, w.made[what])
		}
		require.NoError(t, brisk.passes(c.Sched.Now, c.rest, all, false))
		require.Empty(t, w.made, "their turn comes later")
		require.NoError(t, brisk.passes(c.Sched.Now, c.rest, all, true))
		for _, what := range []string{"past", "slotted", "piped"} {
			require.Positive(t, w.made[what])
			require.Equal(t, refuses == nil, w.made[what+" both"] > 0, what)
		}
		require.Equal(t, w.made["past"]+w.made["slotted both"]+w.made["piped both"]+w.made["past both"], w.made["woken"], "behind each registration")
		require.Empty(t, w.regs)
		for _, a := range all {
			require.Equal(t, refuses == nil || !a.both, len(a.took) > 0)
			require.Equal(t, a.both && refuses == nil, pace([]attempt{a}, a.p, a.get) > 0)
		}
		require.NoError(t, k.close())
	}
	k, err := (&Config{Sched: sched.Process(1), NIC: &coldShop{t: t}, Memory: mem.Of(make([]uint64, 2<<20/8))}).afar()
	require.NoError(t, err)
	in, out := k.finds(1 << 20)
	require.True(t, in && !out, "there is none")
	require.Zero(t, k.both())
	require.NoError(t, k.close())
}

// TestColdOfLittle: where a busy machine gave little cold memory in time, the two ends of a transfer are apart all the same.
func TestColdOfLittle(t *testing.T) {
	w := &coldShop{t: t, all: mem.Of(make([]uint64, 1<<20/8)), regs: map[uint64]mem.Range{}, made: map[string]int{}}
	k, err := (&Config{Sched: sched.Process(1), NIC: w, Memory: mem.Of(make([]uint64, 2<<20/8)), Cold: w.all}).afar()
	require.NoError(t, err)
	require.Equal(t, 512*kib, k.both(), "half of it")
	all := []attempt{k.attempt(selector.Pipe, true, 256*kib, false), k.attempt(selector.Pipe, true, k.both(), true)}
	require.NoError(t, brisk.passes(k.c.Sched.Now, k.c.rest, all, true))
	require.Positive(t, w.made["piped both"])
	require.NoError(t, k.close())
}

// TestColdGivesBack: a try that fails leaves nothing registered.
func TestColdGivesBack(t *testing.T) {
	fails := errors.New("no")
	w := &coldShop{t: t, all: mem.Of(make([]uint64, 4<<20/8)), refuses: fails, regs: map[uint64]mem.Range{}, made: map[string]int{}}
	c := Config{Sched: sched.Process(1), NIC: w, Memory: mem.Of(make([]uint64, 2<<20/8)), Cold: w.all}
	k, err := c.afar()
	require.NoError(t, err)
	require.ErrorIs(t, brisk.passes(c.Sched.Now, c.rest, []attempt{k.attempt(selector.Direct, true, 64*kib, true)}, true), fails)
	require.Empty(t, w.regs)
	require.Empty(t, w.made)
	require.NoError(t, k.close())
}

// TestPaced: transfers that find room in no cache cost their bytes by the pace, whatever shorter ones do.
func TestPaced(t *testing.T) {
	const pace = 3e-9
	s := Published(testMachine()).Selector
	for _, p := range []selector.Protocol{selector.Direct, selector.Bounce, selector.Pipe} {
		m := s.Machine()
		m.Puts[p] = paced(selector.More{{Bytes: 1 << 20, Seconds: 1e-4}}, s, p, false, 16<<20, pace)
		now := m.Selector(0)
		cost := func(bytes int) float64 { return now.Cost(p, query(p, false, bytes)) }
		require.InEpsilon(t, s.Cost(p, query(p, false, 1<<20))+1e-4, cost(1<<20), 1e-9)
		for _, bytes := range []int{32 << 20, 64 << 20, 1 << 30} {
			require.InEpsilon(t, pace*float64(bytes), cost(bytes), 0.01, "%v of %d bytes", p, bytes)
		}
		between := cost(24<<20) - s.Cost(p, query(p, false, 24<<20))
		require.InEpsilon(t, (1e-4+cost(32<<20)-s.Cost(p, query(p, false, 32<<20)))/2, between, 0.01, "%v, a part of which is in a cache", p)
	}
	own := selector.More{{Bytes: 4 << 20, Seconds: 1e-4}}
	m := s.Machine()
	m.Puts[selector.Direct] = paced(own, s, selector.Direct, false, 16<<20, pace)
	now := m.Selector(0)
	require.InEpsilon(t, 4*now.Cost(selector.Direct, query(selector.Direct, false, 4<<20)), now.Cost(selector.Direct, query(selector.Direct, false, 16<<20)), 0.01,
		"what is long goes on in proportion")
	own = selector.More{{Bytes: 1 << 20, Seconds: 1e-4}}
	require.Equal(t, own, paced(own, s, selector.Direct, false, 16<<20, 0), "nobody has tried")
	require.Equal(t, own, paced(own, s, selector.Direct, false, 1<<20, pace), "that is known")
	require.Empty(t, paced(nil, s, selector.Direct, false, 1<<20, pace))
}

// TestWarm: tries of a pass that come first do not count, since what others left in the caches shows in them, unless they take very long.
func TestWarm(t *testing.T) {
	var c ticker
	each := func(f func() error) func(int) error { return func(int) error { return f() } }
	k := 0
	resident := attempt{p: selector.Bounce, bytes: 1, make: func(int) error {
		if k++; k <= tuneTurns {
			return c.spend(5 * time.Microsecond)()
		}
		return c.spend(time.Microsecond)()
	}}
	require.NoError(t, resident.pass(c.Now, brisk))
	require.NotContains(t, resident.took, 5*time.Microsecond)
	cold := attempt{
		p: selector.Bounce, bytes: 1, make: each(c.spend(9*time.Microsecond, 3*time.Microsecond, 3*time.Microsecond)), before: c.spend(brisk.time),
		after: c.spend(brisk.time),
	}
	require.NoError(t, cold.pass(c.Now, brisk))
	require.Equal(t, slices.Repeat([]time.Duration{3 * time.Microsecond}, tuneCold), cold.took, "without what comes before and after")
	long := attempt{p: selector.Bounce, bytes: 1, make: each(c.spend(2 * brisk.long)), before: c.spend(1), after: c.spend(1)}
	require.NoError(t, long.pass(c.Now, brisk))
	require.Equal(t, []time.Duration{2 * brisk.long}, long.took)
}

// TestRoomy: what caches hold is the most within which copies are quick, also where the first ones of all were slow; and where all are, all there is.
func TestRoomy(t *testing.T) {
	for _, c := range []struct {
		took []float64 // within 1, 2, 3 and so on
		want int
	}{
		{[]float64{70, 70, 72, 110, 145}, 3},
		{[]float64{130, 115, 70, 69, 145, 143}, 4},
		{[]float64{70, 70, 70, 87, 88}, 4},
		{[]float64{70, 140, 71, 140}, 3}, // the second was disturbed
		{[]float64{70, 69, 71}, 3},
		{[]float64{70}, 1},
	} {
		var all []tried
		for i, seconds := range c.took {
			all = append(all, tried{i + 1, seconds})
		}
		require.Equal(t, c.want, roomy(all), "%v", c.took)
	}
}

// TestCaches: what caches hold is found within what there is, and where that is little it is taken for it.
func TestCaches(t *testing.T) {
	c := Config{Sched: sched.Process(1), Cold: mem.Of(make([]uint64, 4<<20/8))}
	require.NoError(t, c.measureCaches(t.Context()))
	require.Equal(t, 4<<20, c.caches)
	c.Cold = mem.Of(make([]uint64, 64<<20/8))
	require.NoError(t, c.measureCaches(t.Context()))
	require.GreaterOrEqual(t, c.caches, cacheLeast)
	require.LessOrEqual(t, c.caches, 64<<20)
}

// endsAt is a context that ends when it has been asked so often.
type endsAt struct {
	context.Context
	looks int
}

func (c *endsAt) Err() error {
	if c.looks--; c.looks >= 0 {
		return nil
	}
	return context.Canceled
}

func (c *endsAt) Done() <-chan struct{} { return nil }

// TestMeasureEnds: a measurement whose context ends while it finds out what caches hold, or before, makes no transfer any more.
func TestMeasureEnds(t *testing.T) {
	ended, cancel := context.WithCancelCause(t.Context())
	parted := errors.New("parted")
	cancel(parted)
	for _, bytes := range []int{0, 64 << 20} {
		c := Config{Sched: sched.Process(1), NIC: cutOff{err: errors.New("it is asked")}, Cold: mem.Of(make([]uint64, bytes/8))}
		_, err := Measure(ended, c)
		require.ErrorIs(t, err, parted)
	}
	c := Config{Sched: sched.Process(1), Cold: mem.Of(make([]uint64, 64<<20/8))}
	const looks = 10
	ctx := &endsAt{context.Background(), looks}
	require.ErrorIs(t, c.measureCaches(ctx), context.Canceled)
	require.Less(t, ctx.looks, 0)
	require.GreaterOrEqual(t, ctx.looks, -2, "nothing is copied behind its end")
}

// TestTouched: what is measured with is no more than the kernel gives in time, and something.
func TestTouched(t *testing.T) {
	var c ticker
	all := mem.Of(make([]uint64, 8<<20/8))
	step := 10 * time.Millisecond
	now := func() time.Duration {
		_ = c.spend(step)()
		return c.Now()
	}
	require.Equal(t, 3<<20, Touched(now, all, 3*step).Bytes)
	require.Equal(t, 1<<20, Touched(now, all, 0).Bytes)
	require.Equal(t, all.Bytes, Touched(now, all, time.Second).Bytes)
	require.Equal(t, 4096, Touched(now, all.Slice(0, 4096), time.Second).Bytes)
}
