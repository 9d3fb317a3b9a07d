package tcp

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/internal/wire"
	"gopgas/transport"
)

const longRead = 1 << 20 // bytes

// longReaders are two ranks of which b reads much of a.
type longReaders struct {
	a, b *testRank
	l    *link // a's
	to   transport.SGE
	from mem.Range
	key  transport.Region
}

func newLongReaders(t *testing.T) *longReaders {
	r := &longReaders{}
	r.a, r.b, r.l = twoRanks(t, Config{MaxMessage: 2 * longRead})
	r.from = mem.Of(make([]uint64, longRead/8))
	to := mem.Of(make([]uint64, longRead/8))
	var err error
	r.key, err = r.a.Register(r.from, transport.AllAccess)
	require.NoError(t, err)
	key, err := r.b.Register(to, transport.AllAccess)
	require.NoError(t, err)
	r.to = transport.SGE{Mem: to, LKey: key.LKey}
	return r
}

// read has b put a word, which a may poll for, and read all, whose last word is k.
func (r *longReaders) read(t *testing.T, k uint64) {
	t.Helper()
	r.from.Word64(longRead - 8).Store(k)
	back := r.b.links[0].Load()
	word := r.b.op(transport.OpWrite, back, r.a, 0, 0, 8)
	word.Flags = 0
	n, err := r.b.Post([]transport.Op{word, {
		Kind: transport.OpRead, Flags: transport.FlagSignaled, NSGE: 1, EP: back.ep,
		RAddr: r.from.Addr(), RKey: r.key.RKey, SGE: [4]transport.SGE{r.to},
	}})
	require.NoError(t, err)
	require.Equal(t, 2, n)
}

// came awaits the end of it.
func (r *longReaders) came(t *testing.T, k uint64) {
	t.Helper()
	c := r.b.await(t, func(transport.Completion) bool { return true })
	require.Equal(t, transport.StatusOK, c.Status)
	require.Equal(t, k, r.to.Mem.Word64(longRead-8).Load())
}

// performed has a poll until it has taken the request.
func (r *longReaders) performed(t *testing.T, before uint64) {
	t.Helper()
	var cq [1]transport.Completion
	for began := time.Now(); r.a.Performed() == before; {
		_, err := r.a.Poll(cq[:])
		require.NoError(t, err)
		require.Less(t, time.Since(began), testPatience)
	}
}

// TestLongAnswerIsHandedOn: who polls without a pause leaves a long answer to his next look, and if there is none somebody else sends it, whichever way he ends.
func TestLongAnswerIsHandedOn(t *testing.T) {
	for _, how := range []sched.Polling{sched.Seldom, sched.NoMore} {
		r := newLongReaders(t)
		for k := range uint64(200) {
			before := r.a.Performed()
			r.a.Hush(sched.Steadily)
			for range 8 { // from here on nobody is wakened for what comes
				_, err := r.a.Poll(make([]transport.Completion, 1))
				require.NoError(t, err)
			}
			r.read(t, k+1)
			r.performed(t, before)
			r.a.Hush(how)
			r.came(t, k+1)
		}
		require.Eventually(t, func() bool { return r.a.lefts.Load() == 0 }, testPatience, time.Millisecond)
	}
}

// TestRequestGoesBeforeLongAnswer: what this rank asks for sets out before what it has been asked for, if that is long, and in one call with it.
func TestRequestGoesBeforeLongAnswer(t *testing.T) {
	r := newLongReaders(t)
	defer r.a.alone(t, r.l)()
	r.a.Hush(sched.Steadily)
	defer r.a.Hush(sched.Seldom)
	var sent [][]wire.Kind // with each call
	r.l.mu.Lock()
	write := r.l.writeFn
	r.l.writeFn = func(fd uintptr) {
		var kinds []wire.Kind
		for b := r.l.vector()[0]; len(b) > 0; {
			var h wire.Header
			n, err := h.Decode(b)
			if err != nil || n == 0 {
				break
			}
			kinds = append(kinds, h.Kind)
			b = b[n:]
		}
		sent = append(sent, kinds)
		write(fd)
	}
	r.l.mu.Unlock()
	both := []wire.Kind{wire.Read, wire.Data}
	for k := uint64(1); k < 100; k++ {
		before := r.a.Performed()
		r.read(t, k)
		r.performed(t, before)
		r.a.post(t, 1, r.a.op(transport.OpRead, r.l, r.b, 0, 0, 64))
		r.came(t, k)
	}
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	require.True(t, slices.ContainsFunc(sent, func(kinds []wire.Kind) bool { return slices.Equal(kinds, both) }), "%v", sent)
	require.False(t, slices.ContainsFunc(sent, func(kinds []wire.Kind) bool {
		return len(kinds) > 1 && kinds[0] == wire.Data
	}), "%v", sent)
}

// TestManyLongAnswers: long reads among short ones, atomics and writes of the same bytes, all at once, come as they should, in the order in which they were posted.
func TestManyLongAnswers(t *testing.T) {
	r := newLongReaders(t)
	back := r.b.links[0].Load()
	long := transport.Op{
		Kind: transport.OpRead, Flags: transport.FlagSignaled, NSGE: 1, EP: back.ep,
		RAddr: r.from.Addr(), RKey: r.key.RKey, SGE: [4]transport.SGE{r.to},
	}
	for round := range 20 {
		var ops []transport.Op
		for i := range 24 {
			op := long
			switch i % 4 {
			case 1:
				op = r.b.op(transport.OpFetchAdd, back, r.a, 8, 8, 8)
				op.Arg0 = 1
			case 2:
				op = r.b.op(transport.OpRead, back, r.a, 64, 64, 256)
			case 3:
				op.Kind = transport.OpWrite // waits until what it changes has been sent
				op.SGE[0] = transport.SGE{Mem: r.b.open.Slice(testOpen/2, testOpen/2), LKey: r.b.reg.LKey}
			}
			op.Cookie = uint64(i)
			ops = append(ops, op)
		}
		for len(ops) > 0 {
			n, err := r.b.Post(ops)
			require.NoError(t, err)
			ops = ops[n:]
		}
		for i := range uint64(24) {
			c := r.b.await(t, func(transport.Completion) bool { return true })
			require.Equal(t, transport.StatusOK, c.Status, "round %d", round)
			require.Equal(t, i, c.Cookie, "round %d", round)
		}
	}
	require.EqualValues(t, 20*6, r.a.open.Word64(8).Load())
}

// TestLongReadsWakeNobody: who waits asleep is wakened for what a peer writes, and for short reads, which may go on, but for no long one.
func TestLongReadsWakeNobody(t *testing.T) {
	r := newLongReaders(t)
	var rings, sleepers atomic.Uint32
	bell := sched.NewBell(&rings, &sleepers)
	r.a.sched.SetBell(bell)
	bell.Arm()
	back := r.b.links[0].Load()
	for _, c := range []struct {
		kind  transport.Kind
		bytes int
		wakes bool
	}{
		{transport.OpRead, longRead, false},
		{transport.OpRead, gulpMost + 8, false},
		{transport.OpRead, gulpMost, true},
		{transport.OpRead, 8, true},
		{transport.OpWrite, longRead, true},
		{transport.OpWrite, 8, true},
		{transport.OpRead, longRead, false},
	} {
		before := rings.Load()
		r.b.post(t, 1, transport.Op{
			Kind: c.kind, Flags: transport.FlagSignaled, NSGE: 1, EP: back.ep, RAddr: r.from.Addr(), RKey: r.key.RKey,
			SGE: [4]transport.SGE{{Mem: r.to.Mem.Slice(0, c.bytes), LKey: r.to.LKey}},
		})
		if c.wakes {
			require.Eventually(t, func() bool { return rings.Load() != before }, testPatience, time.Millisecond, "%v of %d bytes", c.kind, c.bytes)
		} else {
			time.Sleep(time.Millisecond) // who has read rings after that
			require.Equal(t, before, rings.Load(), "%v of %d bytes", c.kind, c.bytes)
		}
	}
}
