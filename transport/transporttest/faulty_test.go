package transporttest

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// wrapped opens loop-back domains inside a wrapper.
func wrapped(l *loopbackUnderTest, wrap func(rank int, d transport.Domain) transport.Domain) Open {
	return func(t *testing.T, n int) []transport.Domain {
		ds := l.open(t, n)
		for r, d := range ds {
			ds[r] = wrap(r, d)
			l.mu.Lock()
			l.home[ds[r]] = l.home[d]
			l.mu.Unlock()
		}
		return ds
	}
}

func TestBenignFaultsConform(t *testing.T) {
	l := newLoopbackUnderTest(FabricConfig{MaxPost: 32})
	open := wrapped(l, func(rank int, d transport.Domain) transport.Domain {
		return Faulty(d, FaultPlan{Seed: uint64(rank), ShortPosts: 30, Delays: 30})
	})
	Run(t, open, Options{Kill: l.kill, Rounds: 1000, Ops: 800})
}

// faultyPair is two loop-back ranks, the first with a plan.
func faultyPair(t *testing.T, plan FaultPlan) (a, b *node) {
	l := newLoopbackUnderTest(FabricConfig{}.withDefaults())
	s := &suite{opt: Options{}.withDefaults(), caps: l.cfg.caps()}
	s.open = wrapped(l, func(rank int, d transport.Domain) transport.Domain {
		if rank == 0 {
			return Faulty(d, plan)
		}
		return d
	})
	return s.pair(t, 4096)
}

func TestFaultyBreaks(t *testing.T) {
	for _, kind := range []transport.Kind{transport.OpWrite, transport.OpFetchAdd} {
		a, b := faultyPair(t, FaultPlan{BreakAt: 4, BreakStatus: transport.StatusPeerGone})
		var ops []transport.Op
		for range 6 {
			ops = append(ops, a.op(kind, 1, 0, 64, 8))
			ops[len(ops)-1].Arg0 = 1
		}
		ops[3] = quiet(ops[3])
		a.post(ops...)
		low, high := a.requireEnds(append(append([]transport.Op{}, ops[:3]...), ops[4:]...), transport.StatusFlushed)
		if kind == transport.OpFetchAdd {
			v := b.mem.Word64(64).Load()
			require.GreaterOrEqual(t, v, low)
			require.LessOrEqual(t, v, high+1)
		}
		ep := a.redial(1)
		require.Greater(t, ep.Incarnation, ops[0].EP.Incarnation)
		a.must(a.op(transport.OpWrite, 1, 0, 0, 8))
	}
}

func TestFaultyBreakStatus(t *testing.T) {
	for kind, want := range map[transport.Kind]transport.Status{
		transport.OpWrite: transport.StatusPeerGone, transport.OpRead: transport.StatusPeerGone,
		transport.OpFetchAdd: transport.StatusInDoubt, transport.OpCompareSwap: transport.StatusInDoubt,
	} {
		a, _ := faultyPair(t, FaultPlan{BreakAt: 2, BreakStatus: transport.StatusPeerGone})
		a.must(a.op(transport.OpWrite, 1, 0, 0, 8))
		require.Equal(t, want, a.do(quiet(a.op(kind, 1, 0, 0, 8))).Status)
		require.Equal(t, transport.StatusFlushed, a.do(a.op(kind, 1, 0, 0, 8)).Status)
		a.redial(1)
		a.must(a.op(kind, 1, 0, 0, 8))
		a.none()
	}
}

func TestFaultyKills(t *testing.T) {
	a, b := faultyPair(t, FaultPlan{KillAt: 2})
	first, second := a.op(transport.OpWrite, 1, 0, 0, 8), a.op(transport.OpWrite, 1, 0, 8, 8)
	a.post(first, second)
	a.awaitDown(first.EP)
	require.Contains(t, []transport.Status{transport.StatusOK, transport.StatusFlushed}, a.wait(first.Cookie).Status)
	require.Equal(t, transport.StatusPeerGone, a.wait(second.Cookie).Status)
	_, err := a.d.Connect(t.Context(), 1, b.d.Address())
	require.ErrorIs(t, err, transport.ErrPeerGone)
	a.must(a.op(transport.OpWrite, 0, 0, 8, 8)) // its own rank goes on
	a.none()
}

func TestFaultyRegister(t *testing.T) {
	a, _ := faultyPair(t, FaultPlan{FailRegister: 3}) // the first was the rig's
	_, err := a.d.Register(a.mem, transport.AllAccess)
	require.NoError(t, err)
	_, err = a.d.Register(a.mem, transport.AllAccess)
	requireLimit(t, err)
	_, err = a.d.Register(a.mem, transport.AllAccess)
	require.NoError(t, err)
}

// TestFaultyIsDeterministic makes the same calls twice: the same posts are short.
func TestFaultyIsDeterministic(t *testing.T) {
	shorts := func(seed uint64) (list []int) {
		a, _ := faultyPair(t, FaultPlan{Seed: seed, ShortPosts: 50})
		for range 40 {
			n, err := a.d.Post([]transport.Op{quiet(a.op(transport.OpWrite, 1, 0, 0, 8)), quiet(a.op(transport.OpWrite, 1, 0, 0, 8))})
			require.NoError(t, err)
			list = append(list, n)
		}
		return list
	}
	first := shorts(3)
	require.Equal(t, first, shorts(3))
	require.NotEqual(t, first, shorts(4))
	require.Contains(t, first, 0)
	require.Contains(t, first, 2)
}

// TestFaultyDelays shows that completions of different endpoints overtake each other.
func TestFaultyDelays(t *testing.T) {
	a, _ := faultyPair(t, FaultPlan{Seed: 1, Delays: 40})
	var order []uint64
	for range 100 {
		a.post(a.op(transport.OpWrite, 1, 0, 0, 8), a.op(transport.OpWrite, 0, 0, 64, 8))
	}
	for deadline := time.Now().Add(10 * time.Second); len(order) < 200; {
		require.False(t, time.Now().After(deadline))
		_, err := a.drain()
		require.NoError(t, err)
		for _, c := range a.got {
			order = append(order, c.Cookie)
		}
		a.got = a.got[:0]
	}
	late := 0
	for i := 1; i < len(order); i++ {
		if order[i] < order[i-1] {
			late++
		}
	}
	require.Positive(t, late)
}

func TestTraceCounts(t *testing.T) {
	_, ds := openLoopback(t, 2, FabricConfig{MaxPost: 4})
	var rec Recorder
	d := Trace(ds[0], rec.Record)
	ep, err := d.Connect(t.Context(), 1, ds[1].Address())
	require.NoError(t, err)
	src, dst := mem.Of(make([]byte, 100)), mem.Of(make([]byte, 100))
	local, err := d.Register(src, transport.AllAccess)
	require.NoError(t, err)
	remote, err := ds[1].Register(dst, transport.AllAccess)
	require.NoError(t, err)
	ops := make([]transport.Op, 6)
	for i := range ops {
		ops[i] = transport.Op{
			Kind: transport.OpWrite, Flags: transport.FlagSignaled, NSGE: 1, EP: ep, Cookie: uint64(i),
			SGE: [4]transport.SGE{{Mem: src, LKey: local.LKey}}, RAddr: dst.Addr(), RKey: remote.RKey,
		}
	}
	ops[3].RKey++
	n, err := d.Post(ops)
	require.NoError(t, err)
	require.Equal(t, 4, n)
	for range n {
		pollOne(t, d)
	}
	got := rec.Counts()
	require.GreaterOrEqual(t, got.Polls, 4)
	got.Polls = 0
	require.Equal(t, Counts{
		Posts: 1, ShortPosts: 1, Ops: 4, Completions: 4, Errors: 1, Registers: 1, BytesPosted: 400, BytesPinned: 100,
	}, got)
	var kinds []EventKind
	for _, e := range rec.Events() {
		kinds = append(kinds, e.Call)
	}
	require.Equal(t, []EventKind{
		EventRegister, EventPost, EventOp, EventOp, EventOp, EventOp,
		EventPoll, EventCompletion, EventPoll, EventCompletion, EventPoll, EventCompletion, EventPoll, EventCompletion,
	}, kinds)
	require.NoError(t, d.Disconnect(ep))
	require.NoError(t, d.Deregister(local))
	require.Equal(t, 1, rec.Counts().Deregisters)
	rec.Reset()
	require.Zero(t, rec.Counts())
	require.Empty(t, rec.Events())
}

func TestTraceConforms(t *testing.T) {
	l := newLoopbackUnderTest(FabricConfig{})
	rec := Recorder{CountOnly: true}
	Run(t, wrapped(l, func(_ int, d transport.Domain) transport.Domain { return Trace(d, rec.Record) }),
		Options{Kill: l.kill, Rounds: 200, Ops: 400})
	require.Positive(t, rec.Counts().Ops)
	require.Empty(t, rec.Events())
}

// fakeTB notes what SkipUnless does to a test.
type fakeTB struct {
	testing.TB
	name, did string
}

func (f *fakeTB) Helper()               {}
func (f *fakeTB) Name() string          { return f.name }
func (f *fakeTB) Skip(...any)           { f.did += "skip" }
func (f *fakeTB) Fatal(...any)          { f.did += "fatal"; panic(f) }
func (f *fakeTB) Fatalf(string, ...any) { f.did += "fatal"; panic(f) }

func TestSkipUnless(t *testing.T) {
	missing := transport.NewOpError("open verbs", -1, transport.ErrUnsupported)
	for _, c := range []struct {
		require, test string
		err           error
		did           string
	}{
		{"", "TestX", nil, ""},
		{"", "TestX", missing, "skip"},
		{"", "TestX", errors.New("broken"), "fatal"},
		{"verbs", "TestX", missing, "fatal"},
		{"tcp, verbs", "TestX", missing, "fatal"},
		{"tcp,soft", "TestX", missing, "skip"},
		{"tcp", "TestWindow/tcp/put", transport.ErrUnsupported, "fatal"},
		{"TCP", "TestTCPPut", transport.ErrUnsupported, "fatal"},
		{"transporttest", "TestX", transport.ErrUnsupported, "fatal"},
		{"verb", "TestX", missing, "skip"},
		{"verbs", "TestX", nil, ""},
	} {
		t.Setenv(RequireVariable, c.require)
		tb := &fakeTB{name: c.test}
		func() {
			defer func() {
				if r := recover(); r != nil && r != any(tb) {
					panic(r)
				}
			}()
			SkipUnless(tb, c.err)
		}()
		require.Equal(t, c.did, tb.did, "%+v", c)
	}
}
