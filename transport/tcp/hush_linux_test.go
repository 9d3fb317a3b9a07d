package tcp

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// wakesAt is for how many bytes the reader of a link is wakened.
func wakesAt(t *testing.T, l *link) (n int) {
	t.Helper()
	require.NoError(t, l.raw.Control(func(fd uintptr) {
		var err error
		n, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT)
		require.NoError(t, err)
	}))
	return n
}

// stuck posts a put over l that is not answered until answer is called, and looks for its end a few times.
func (r *testRank) stuck(t *testing.T, l *link, to *testRank) (answer func()) {
	t.Helper()
	far := to.links[r.me.rank].Load()
	far.rmu.Lock()
	n, err := r.Post([]transport.Op{r.op(transport.OpWrite, l, to, 0, 0, 8)})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	var cq [1]transport.Completion
	for range 4 * (patience + others) {
		n, err := r.Poll(cq[:])
		require.NoError(t, err)
		require.Zero(t, n)
	}
	return func() {
		far.rmu.Unlock()
		r.await(t, func(transport.Completion) bool { return true })
	}
}

// TestHush: while somebody polls without a pause the reader of the link with his operation sleeps, and when he has ended, or posts over another one,
// it is wakened again, for what came meanwhile too.
func TestHush(t *testing.T) {
	a, b, l := twoRanks(t, Config{})
	answer := a.stuck(t, l, b)
	require.Equal(t, 1, wakesAt(t, l), "nobody has said that he polls on")
	answer()
	a.Hush(sched.Steadily)
	a.Hush(sched.Steadily)
	require.Equal(t, 1, wakesAt(t, l), "nothing is under way")
	answer = a.stuck(t, l, b)
	require.Equal(t, hushBytes, wakesAt(t, l))
	answer()
	a.Hush(sched.Seldom)
	require.Equal(t, hushBytes, wakesAt(t, l), "another one polls still")
	a.Hush(sched.Seldom)
	require.Equal(t, 1, wakesAt(t, l))

	back, slept := b.links[0].Load(), false
	for k := uint64(1); k <= 20 && !slept; k++ { // it may still get up for what came before
		a.Hush(sched.Steadily)
		a.stuck(t, l, b)()
		b.open.Slice(64, 8).Word64(0).Store(k)
		b.post(t, 0, b.op(transport.OpWrite, back, a, 64, 64, 8))
		time.Sleep(20 * time.Millisecond)
		slept = a.open.Slice(64, 8).Word64(0).Load() != k
		a.Hush(sched.Seldom)
		b.await(t, func(transport.Completion) bool { return true }) // nobody else polls for a
		require.Equal(t, k, a.open.Slice(64, 8).Word64(0).Load())
	}
	require.True(t, slept, "it is wakened for each arrival")
}

// TestHushAsked: while somebody polls without a pause who has nothing under way, the reader of the link over which requests came last sleeps, and who polls
// performs the next ones.
func TestHushAsked(t *testing.T) {
	a, b, l := twoRanks(t, Config{})
	back := b.links[0].Load()
	require.Zero(t, a.Performed())
	b.post(t, 1, b.op(transport.OpWrite, back, a, 0, 0, 8))
	require.Eventually(t, func() bool { return a.Performed() != 0 }, time.Minute, time.Millisecond) // counted when the answer is on its way
	asked := a.Performed()
	var cq [1]transport.Completion
	poll := func() {
		for range 2 * (patience + 1) {
			n, err := a.Poll(cq[:])
			require.NoError(t, err)
			require.Zero(t, n)
		}
	}
	poll()
	require.Equal(t, 1, wakesAt(t, l), "nobody has said that he polls on")
	slept := false
	for k := uint64(1); k <= 20 && !slept; k++ { // it may still get up for what came before
		a.Hush(sched.Steadily)
		poll()
		require.Equal(t, hushBytes, wakesAt(t, l))
		b.open.Slice(0, 8).Word64(0).Store(k)
		n, err := b.Post([]transport.Op{b.op(transport.OpWrite, back, a, 0, 64, 8)})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		time.Sleep(20 * time.Millisecond)
		slept = a.open.Slice(64, 8).Word64(0).Load() != k
		poll()
		require.Equal(t, k, a.open.Slice(64, 8).Word64(0).Load())
		a.Hush(sched.Seldom)
		require.Equal(t, 1, wakesAt(t, l))
		b.await(t, func(transport.Completion) bool { return true })
	}
	require.True(t, slept, "it is wakened for each arrival")
	require.Greater(t, a.Performed(), asked)
}

// TestHushMoves: of two links that whose answers are looked for is the one.
func TestHushMoves(t *testing.T) {
	var r [3]*testRank
	var l [3]*link
	for i := range r {
		r[i] = openRank(t, i, len(r), Config{}, transport.Config{})
	}
	for i := 1; i < len(r); i++ {
		_, err := r[0].Connect(t.Context(), i, r[i].Address())
		require.NoError(t, err)
		l[i] = r[0].links[i].Load()
	}
	r[0].Hush(sched.Steadily)
	for round := range 4 {
		at := 1 + round%2
		r[0].stuck(t, l[at], r[at])()
		require.Equal(t, hushBytes, wakesAt(t, l[at]))
		require.Equal(t, 1, wakesAt(t, l[3-at]))
	}
	r[0].Hush(sched.Seldom)
	require.Equal(t, 1, wakesAt(t, l[1]))
	require.Equal(t, 1, wakesAt(t, l[2]))
}

// alone keeps the sender of l from sending until done is called: who is in Write has the connection to himself.
func (r *testRank) alone(t *testing.T, l *link) (done func()) {
	t.Helper()
	held, free := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		assert.NoError(t, l.raw.Write(func(uintptr) bool {
			close(held)
			<-free
			return true
		}))
	})
	<-held // what the sender was at is done
	return func() {
		close(free)
		all.Wait()
	}
}

// TestLeft: what Post leaves to the sender who polls without a pause sends himself, however long that one takes to get up.
func TestLeft(t *testing.T) {
	a, b, l := twoRanks(t, Config{})
	var ops []transport.Op
	for range 4 {
		ops = append(ops, a.op(transport.OpWrite, l, b, 0, 0, testOpen/2))
	}
	defer a.alone(t, l)()
	a.open.Slice(testOpen/2-8, 8).Word64(0).Store(9)
	n, err := a.Post(ops)
	require.NoError(t, err)
	require.Len(t, ops, n)
	require.True(t, l.left.Load())
	var cq [1]transport.Completion
	for range 100 {
		n, err := a.Poll(cq[:])
		require.NoError(t, err)
		require.Zero(t, n, "who pauses between looks has other things to do")
	}
	a.Hush(sched.Steadily)
	defer a.Hush(sched.Seldom)
	for range ops {
		c := a.await(t, func(transport.Completion) bool { return true })
		require.Equal(t, transport.StatusOK, c.Status)
	}
	require.EqualValues(t, 9, b.open.Slice(testOpen/2-8, 8).Word64(0).Load())
	require.False(t, l.left.Load())
}

// TestPostUnpaused: what is posted while somebody polls without a pause is sent at once, however long it is.
func TestPostUnpaused(t *testing.T) {
	a, b, l := twoRanks(t, Config{})
	defer a.alone(t, l)()
	op := a.op(transport.OpWrite, l, b, 0, 0, testOpen) // and the header: more than postBytes
	left := func(unpaused bool) bool {
		if unpaused {
			a.Hush(sched.Steadily)
		}
		n, err := a.Post([]transport.Op{op})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		left := l.left.Load()
		if !unpaused {
			a.Hush(sched.Steadily)
		}
		a.await(t, func(transport.Completion) bool { return true })
		a.Hush(sched.Seldom)
		require.Equal(t, 1, wakesAt(t, l))
		return left
	}
	require.True(t, left(false))
	for k := 0; left(true); k++ {
		require.Less(t, k, 100, "the system's buffer has grown by now")
	}
}

// TestPostUnpausedBehindABreak: what is posted to an older endpoint while somebody polls without a pause is given back like any other, and looked for.
func TestPostUnpausedBehindABreak(t *testing.T) {
	a, b, old := twoRanks(t, Config{})
	require.NoError(t, a.Disconnect(old.ep))
	_, err := a.Connect(t.Context(), 1, b.Address())
	require.NoError(t, err)
	a.Hush(sched.Steadily)
	defer a.Hush(sched.NoMore)
	n, err := a.Post([]transport.Op{a.op(transport.OpWrite, old, b, 0, 0, 8)})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	for range 2 * (patience + others) { // as who found nothing before that was posted
		a.look()
	}
	require.Equal(t, transport.StatusFlushed, a.await(t, func(transport.Completion) bool { return true }).Status)
}

// TestAnswersUnpaused: what a peer reads while somebody polls without a pause is not left to the sender, however long it is.
func TestAnswersUnpaused(t *testing.T) {
	a, b, l := twoRanks(t, Config{})
	back := b.links[0].Load()
	defer a.alone(t, l)()
	a.Hush(sched.Steadily)
	defer a.Hush(sched.Seldom)
	left := func(k uint64) (left bool) {
		a.open.Slice(testOpen-8, 8).Word64(0).Store(k)
		n, err := b.Post([]transport.Op{b.op(transport.OpRead, back, a, 0, 0, testOpen)}) // and the header: more than postBytes
		require.NoError(t, err)
		require.Equal(t, 1, n)
		var at, bt [1]transport.Completion
		require.Eventually(t, func() bool {
			left = left || l.left.Load()
			_, err := a.Poll(at[:])
			require.NoError(t, err)
			n, err := b.Poll(bt[:])
			require.NoError(t, err)
			return n == 1
		}, testPatience, time.Microsecond)
		require.Equal(t, transport.StatusOK, bt[0].Status)
		require.Equal(t, k, b.open.Slice(testOpen-8, 8).Word64(0).Load())
		return left
	}
	for k := uint64(1); left(k); k++ {
		require.Less(t, k, uint64(100), "the system's buffer has grown by now")
	}
}

// TestHelp: puts longer than what Post sends arrive, whoever sends them: the sender, who polls, or both by turns, while others begin and end polling.
func TestHelp(t *testing.T) {
	const room, rounds = 4 << 20, 60
	a, b, l := twoRanks(t, Config{MaxMessage: room})
	src, dst := mem.Of(make([]uint64, room/8)), mem.Of(make([]uint64, room/8))
	from, err := a.Register(src, transport.AllAccess)
	require.NoError(t, err)
	to, err := b.Register(dst, transport.AllAccess)
	require.NoError(t, err)

	var others sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				a.Hush(sched.Steadily)
				time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
				a.Hush(sched.Seldom)
				runtime.Gosched()
			}
		})
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range rounds {
		n := postBytes + 8*rng.IntN((room-postBytes)/8)
		for at := 0; at < n; at += 1 << 10 {
			src.Slice(at, 8).Word64(0).Store(uint64(round)<<32 | uint64(at))
		}
		op := transport.Op{
			Kind: transport.OpWrite, Flags: transport.FlagSignaled, NSGE: 1, EP: l.ep, RAddr: dst.Addr(), RKey: to.RKey,
			SGE: [4]transport.SGE{{Mem: src.Slice(0, n), LKey: from.LKey}},
		}
		if round%3 > 0 {
			a.Hush(sched.Steadily)
		}
		a.post(t, 1, op)
		if round%3 > 0 {
			a.Hush(sched.Seldom)
		}
		require.True(t, bytes.Equal(src.Slice(0, n).Data(), dst.Slice(0, n).Data()), "round %d, %d bytes", round, n)
	}
	close(stop)
	others.Wait()
	require.Equal(t, 1, wakesAt(t, l))
	require.Eventually(t, func() bool { // who sent the last piece may still be about to say so
		l.mu.Lock()
		defer l.mu.Unlock()
		return !l.writing && !l.left.Load() && !l.blocked
	}, 5*time.Second, time.Millisecond)
}
