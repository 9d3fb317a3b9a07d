package nic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/am"
	"gopgas/internal/mem"
	"gopgas/internal/peers"
	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// TestMendInOrder (N4): what was flushed is posted again before anything newer, in its order, wherever the connection breaks.
func TestMendInOrder(t *testing.T) {
	const many = 12
	for at := 1; at <= many; at++ {
		w := newWorld(t, 2, transporttest.FabricConfig{MaxPost: 8}, func(d transport.Domain) transport.Domain {
			return transporttest.Faulty(d, transporttest.FaultPlan{BreakAt: at, Delays: 30, Seed: uint64(at)})
		})
		for k := range many {
			w.put(t, 1, 0, uint64(k+1))
			w.put(t, 1, 8*(k+1), uint64(k+1))
		}
		require.NoError(t, w.n[0].Flush(t.Context(), 1), "break at %d", at)
		require.EqualValues(t, many, w.mem[1].Word64(0).Load(), "break at %d", at)
		for k := range many {
			require.EqualValues(t, k+1, w.mem[1].Word64(8*(k+1)).Load())
		}
		require.True(t, w.n[0].Idle())
	}
}

// afterPost is a NIC that does something behind a Post.
type afterPost struct {
	*brittle
	mu   sync.Mutex
	then func(ops []transport.Op)
}

func (d *afterPost) Post(ops []transport.Op) (int, error) {
	d.mu.Lock()
	then := d.then
	d.mu.Unlock()
	k, err := d.brittle.Post(ops)
	if then != nil {
		then(ops)
	}
	return k, err
}

// TestBreaksWhileOldIsReported: a connection that breaks while its mender is at work is mended once more, though something of the one before is reported behind that.
func TestBreaksWhileOldIsReported(t *testing.T) {
	b := &brittle{}
	d := &afterPost{brittle: b}
	w := newWorld(t, 2, transporttest.FabricConfig{}, func(inner transport.Domain) transport.Domain { b.Domain = inner; return d })
	n := w.n[0]
	require.NoError(t, n.Connect("connect", 1))
	before := n.ends[1].now()
	d.mu.Lock()
	d.then = func(ops []transport.Op) {
		if ops[0].EP == before || ops[0].EP.Index != 1 {
			return
		}
		d.mu.Lock()
		d.then = nil
		d.mu.Unlock()
		e := n.ends[1]
		for e.failed.Load() != e.ep.Load() { // the newer one has broken
			n.Progress()
		}
		sent, err := n.am.Request(before, 1, echo, [4]uint64{}, nil, FirstCookie)
		require.True(t, sent)
		require.NoError(t, err)
		n.Unask(1, 0)
		for !n.quiet() {
			n.Progress()
		}
	}
	d.mu.Unlock()
	b.cut(t, 1, nil)
	w.put(t, 1, 0, 7)
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	require.NoError(t, n.Flush(ctx, 1))
	require.EqualValues(t, 7, w.mem[1].Word64(0).Load())
}

// TestMostTries (N4): three breaks are survived, the fourth is told; the connection is of use again afterwards.
func TestMostTries(t *testing.T) {
	for weak := range am.MostTries + 1 {
		t.Run(fmt.Sprint(weak), func(t *testing.T) {
			w, b := newBrittle(t, 2, transporttest.FabricConfig{})
			w.put(t, 1, 0, 1)
			require.NoError(t, w.n[0].Flush(t.Context(), 1))
			b.cut(t, weak, nil)
			id := w.put(t, 1, 0, 2) // one break, and then those of weak connections
			err := w.n[0].Flush(t.Context(), 1)
			if weak < am.MostTries {
				require.NoError(t, err)
				require.EqualValues(t, 2, w.mem[1].Word64(0).Load())
			} else {
				require.ErrorIs(t, err, ErrConnectionLost)
			}
			require.GreaterOrEqual(t, w.to[0].ends[id], 1)
			w.put(t, 1, 0, 3)
			require.NoError(t, w.n[0].Flush(t.Context(), 1))
			require.EqualValues(t, 3, w.mem[1].Word64(0).Load())
		})
	}
}

// TestGivenUp: what was flushed, and requests, end with the reason where no connection can be made, and the client is told.
func TestGivenUp(t *testing.T) {
	w, b := newBrittle(t, 2, transporttest.FabricConfig{})
	n, l := w.n[0], w.to[0]
	w.put(t, 1, 0, 1)
	require.NoError(t, n.Flush(t.Context(), 1))
	const own = FirstCookie + 3
	sent, err := n.TryAsk(1, echo, [4]uint64{}, nil, own)
	require.NoError(t, err)
	require.True(t, sent)
	k, err := n.Keep("ask", 1, false, true)
	require.NoError(t, err)
	require.NoError(t, n.Ask("ask", k.ID, echo, [4]uint64{}, mem.Of([]byte("nobody polls there"))))
	require.False(t, n.Ordered(1))
	refusal := errors.New("the cable is out")
	b.cut(t, 0, refusal)
	w.put(t, 1, 0, 2)
	require.ErrorIs(t, n.Flush(t.Context(), 1), refusal)
	require.ErrorIs(t, k.Wait(t.Context()), refusal)
	n.Give(k.ID)
	w.until(t, func() bool { return n.ends[1].state.Load() == epNone })
	require.Equal(t, []uint64{own}, l.gaveUp)
	require.ErrorIs(t, l.cause, refusal)
	require.NoError(t, n.peers.Check(1), "nobody has called it gone")
	require.ErrorIs(t, n.Connect("put", 1), refusal)
	b.mu.Lock()
	b.dead = nil
	b.mu.Unlock()
	require.NoError(t, n.Connect("put", 1))
	require.True(t, n.Idle())
}

// TestMessages: the answer to a piece is in its buffer, or in its place; that to the client comes by name.
func TestMessages(t *testing.T) {
	w := newWorld(t, 2, transporttest.FabricConfig{}, nil)
	w.serve(t)
	n, l := w.n[0], w.to[0]
	require.Positive(t, n.Payload)
	ask := func(handler uint8, what string) (string, error) {
		k, err := n.Keep("ask", 1, false, true)
		require.NoError(t, err)
		require.NoError(t, n.Ask("ask", k.ID, handler, [4]uint64{}, mem.Of([]byte(what))))
		err = k.Wait(t.Context())
		buf, _ := n.Buffer(k.ID, len(what))
		said := string(buf.Data())
		n.Give(k.ID)
		return said, err
	}
	said, err := ask(echo, "hello")
	require.NoError(t, err)
	require.Equal(t, "hello", said)
	_, err = ask(refuse, "hello")
	require.ErrorIs(t, err, ErrRefused)
	old := mem.Of(make([]uint64, 1))
	h, id, _, err := n.BeginFetch("ask", 1, old)
	require.NoError(t, err)
	require.NoError(t, n.Ask("ask", id, echo, [4]uint64{}, mem.Of([]uint64{77})))
	require.NoError(t, h.Wait(t.Context()))
	require.EqualValues(t, 77, old.Word64(0).Load())
	sent, err := n.TryAsk(1, echo, [4]uint64{}, []byte("me too"), FirstCookie)
	require.NoError(t, err)
	require.True(t, sent)
	require.NoError(t, n.WaitUntil("ask", 1, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.answered) == 1
	}))
	require.Equal(t, "me too", l.answered[FirstCookie])
	require.True(t, n.Idle())
}

// TestPeerGone (N3): waits that name a rank end when it is known to be gone, and what is in flight to it says so; others go on.
func TestPeerGone(t *testing.T) {
	w := newWorld(t, 3, transporttest.FabricConfig{}, func(d transport.Domain) transport.Domain {
		return transporttest.Faulty(d, transporttest.FaultPlan{KillAt: 3})
	})
	n, l := w.n[0], w.to[0]
	told := make(chan struct{})
	l.tell = func() { close(told) }
	w.put(t, 2, 0, 1)
	w.put(t, 1, 0, 1)
	w.put(t, 1, 0, 2)
	err := n.Flush(t.Context(), 1)
	require.ErrorIs(t, err, transport.ErrPeerGone)
	require.ErrorIs(t, n.peers.Check(1), transport.ErrPeerGone)
	require.ErrorIs(t, n.WaitUntil("wait", 1, func() bool { return false }), transport.ErrPeerGone)
	l.mu.Lock()
	cause := l.cause
	l.mu.Unlock()
	require.ErrorIs(t, cause, transport.ErrPeerGone)
	w.until(t, func() bool {
		select {
		case <-told:
			return true
		default:
			return false
		}
	})
	require.NoError(t, n.Flush(t.Context(), 2))
	late := make(chan error)
	go func() { late <- n.WaitUntil("wait", 2, func() bool { return false }) }()
	n.peers.MarkGone(2, peers.Exited(1))
	require.ErrorIs(t, <-late, transport.ErrPeerGone)
}

// TestQuitEndsWaits (N3), of handles too, and of what runs beside.
func TestQuitEndsWaits(t *testing.T) {
	w := newWorld(t, 2, transporttest.FabricConfig{}, nil)
	n := w.n[0]
	require.NoError(t, n.Connect("put", 1))
	h, err := n.Begin("get", 1)
	require.NoError(t, err)
	ends := make(chan error)
	go func() { ends <- n.WaitUntil("wait", 1, func() bool { return false }) }()
	go func() { ends <- h.Wait(context.Background()) }()
	var over atomic.Bool
	n.Go(func() {
		<-n.Context().Done()
		over.Store(true)
	})
	n.Start()
	n.Quit()
	require.True(t, over.Load())
	for range 2 {
		err := <-ends
		require.ErrorIs(t, err, ErrOwnEnd)
		require.ErrorIs(t, err, transport.ErrClosed)
	}
	require.True(t, n.Closed())
	require.True(t, h.Done())
	require.False(t, n.Progress())
	require.ErrorIs(t, n.Connect("put", 0), ErrOwnEnd)
	broken := n.explain("get", 1, transport.NewOpError("get", 1, ErrConnectionLost))
	require.ErrorIs(t, broken, transport.ErrClosed, "a peer was quicker to end it than this rank's NIC")
	require.ErrorIs(t, broken, ErrConnectionLost)
	require.ErrorContains(t, broken, "get (rank 1)")
}

// TestKeptPastTheEnd: what waits for a result gives up when the NIC is closed, which may still bring it. So nobody gets that memory.
func TestKeptPastTheEnd(t *testing.T) {
	w := newWorld(t, 2, transporttest.FabricConfig{Seed: 1, Jitter: time.Hour}, nil)
	n := w.n[0]
	op := transport.Op{Kind: transport.OpRead, RAddr: w.mem[1].Addr(), RKey: w.rkey[1]}
	k, err := n.PostKept("get", 1, op, 8, false, true)
	require.NoError(t, err)
	n.Start()
	n.Quit()
	_, err = n.Take(k)
	require.ErrorIs(t, err, ErrOwnEnd)
	for {
		id, ok := n.TryAcquire(1, false)
		if !ok {
			return
		}
		require.NotEqual(t, k.ID, id, "a piece whose operation is under way")
	}
}

// slow is a NIC whose connections wait, as a NIC waits for a peer's answer, until they may be made.
type slow struct {
	transport.Domain
	sched *sched.Sched
	asked atomic.Bool
	may   atomic.Bool
}

func (s *slow) Connect(ctx context.Context, rank int, addr []byte) (transport.EP, error) {
	s.asked.Store(true)
	sp := s.sched.Begin(ctx, sched.What{Op: "connect", Peer: rank}, nil)
	defer sp.End()
	for !s.may.Load() {
		if err := sp.Step(); err != nil {
			return transport.EP{}, err
		}
	}
	return s.Domain.Connect(ctx, rank, addr)
}

// TestTellsBeside: who learns of a death has others told beside his own wait, since the telling may have to wait for what he waits for.
func TestTellsBeside(t *testing.T) {
	s := &slow{sched: sched.Goroutine(2)}
	w := newWorld(t, 3, transporttest.FabricConfig{}, func(d transport.Domain) transport.Domain { s.Domain = d; return s })
	n, l := w.n[0], w.to[0]
	began, told := make(chan struct{}), make(chan error)
	l.tell = func() { close(began); told <- n.Connect("tell", 1) }
	put := make(chan error)
	go func() { put <- n.Connect("put", 1) }()
	w.until(t, s.asked.Load)
	n.lost(2)
	require.True(t, n.news.Load())
	n.Progress()
	<-began
	require.False(t, n.news.Load())
	s.may.Store(true)
	require.NoError(t, <-put)
	require.NoError(t, <-told)
	w.until(t, func() bool { return !n.spreading.Load() })
}

// vanished is a NIC that finds a rank gone when it connects, and counts who is to look after it.
type vanished struct {
	transport.Domain
	wakes atomic.Int64
}

func (v *vanished) Connect(_ context.Context, rank int, _ []byte) (transport.EP, error) {
	return transport.EP{}, fmt.Errorf("nobody listens there: %w", transport.ErrPeerGone)
}

func (v *vanished) Wake() {
	v.wakes.Add(1)
	v.Domain.Wake()
}

// TestWhoDialsWakes: a death that is found by dialling is told to others though who has dialled polls no more: it wakes whoever attends.
func TestWhoDialsWakes(t *testing.T) {
	v := &vanished{}
	w := newWorld(t, 3, transporttest.FabricConfig{}, func(d transport.Domain) transport.Domain { v.Domain = d; return v })
	n := w.n[0]
	before := v.wakes.Load()
	require.ErrorIs(t, n.Connect("put", 2), transport.ErrPeerGone)
	require.True(t, n.news.Load())
	require.Greater(t, v.wakes.Load(), before)
}

// TestNewsWhileAnotherPolls: news come while somebody polls who has looked for news already, and never polls again. Whoever attends, woken
// for them, cannot poll at the time, and does not go to sleep on that.
func TestNewsWhileAnotherPolls(t *testing.T) {
	w := newWorld(t, 3, transporttest.FabricConfig{}, nil)
	n, told := w.n[0], make(chan struct{})
	w.to[0].tell = func() { close(told) }
	n.Start()
	require.Eventually(t, n.poll.take, patient, time.Millisecond)
	n.News()
	time.Sleep(20 * time.Millisecond) // it tries to poll
	n.poll.leave()
	select {
	case <-told:
	case <-time.After(patient):
		t.Fatal("nobody spreads the news")
	}
}

// TestToldAgain: news that not everybody could be told are told again, as often as it takes, and no more.
func TestToldAgain(t *testing.T) {
	w := newWorld(t, 2, transporttest.FabricConfig{}, nil)
	n, l := w.n[0], w.to[0]
	var told atomic.Int64
	l.tell = func() { told.Add(1) }
	l.missed.Store(1)
	n.Start()
	n.News()
	require.Eventually(t, func() bool { return told.Load() == 2 }, patient, time.Millisecond)
	time.Sleep(20 * time.Millisecond)
	require.EqualValues(t, 2, told.Load())
}

// TestWakeOutlastsPoller (N6): so it is with all that the NIC is woken for, such as a connection that messages wait for.
func TestWakeOutlastsPoller(t *testing.T) {
	w := newWorld(t, 2, transporttest.FabricConfig{}, nil)
	n, polls := w.n[0], &w.to[0].advances
	n.Start()
	for range 20 { // until whoever attends sleeps
		time.Sleep(time.Millisecond)
		n.Domain.Wake()
	}
	require.Eventually(t, n.poll.take, patient, time.Millisecond)
	before := polls.Load()
	n.Domain.Wake()
	time.Sleep(20 * time.Millisecond)
	n.poll.leave()
	require.Eventually(t, func() bool { return polls.Load() > before }, patient, time.Millisecond, "nobody looks")
}

// TestLent (N1): the client is told that a piece has landed, once, when the NIC has done with what was lent to it, also where it goes over
// a second connection.
func TestLent(t *testing.T) {
	w, b := newBrittle(t, 2, transporttest.FabricConfig{})
	w.serve(t)
	n, l := w.n[0], w.to[0]
	require.True(t, n.Gathers())
	mine := mem.Of(make([]byte, 3000))
	key, err := n.Domain.Register(mine, transport.LocalWrite)
	require.NoError(t, err)
	for round := range 8 {
		for i := range mine.Data() {
			mine.Data()[i] = byte(i*round + round)
		}
		k, err := n.Keep("ask", 1, true, true)
		require.NoError(t, err)
		before := l.ends[k.ID]
		n.Lend(k.ID)
		require.NoError(t, n.AskLent("ask", k.ID, echo, [4]uint64{}, transport.SGE{Mem: mine, LKey: key.LKey}))
		if round == 5 {
			b.cut(t, 1, nil)
		}
		require.NoError(t, k.Wait(t.Context()), "round %d", round)
		require.Equal(t, before+1, l.ends[k.ID])
		buf, _ := n.Buffer(k.ID, mine.Bytes)
		require.Equal(t, mine.Data(), buf.Data(), "round %d", round)
		n.Give(k.ID)
	}
	w.until(t, func() bool { return n.Idle() })
}
