package tcp

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/internal/wire"
	"gopgas/transport"
)

func TestGulpOf(t *testing.T) {
	for left, want := range map[int]int32{0: 1, 1: 1, gulpLeast: 1, gulpLeast + 1: gulpLeast + 1, gulpMost: gulpMost, 1 << 30: gulpMost} {
		require.Equal(t, want, gulpOf(left), "%d bytes to come", left)
	}
}

// sipper is a stranger that puts long payloads, a bit at a time.
type sipper struct {
	*stranger
	r    *testRank
	l    *link
	dst  mem.Range
	key  uint64
	said []byte // all that it put
	sent int    // bytes of the present payload
	seq  uint64
}

func newSipper(t *testing.T, cfg Config, room int) *sipper {
	t.Helper()
	r := openRank(t, 0, 3, cfg, transport.Config{})
	dst := mem.Of(make([]uint64, room/8))
	reg, err := r.Register(dst, transport.AllAccess)
	require.NoError(t, err)
	s := &sipper{stranger: knock(t, r).enter(), r: r, dst: dst, key: reg.RKey}
	require.Eventually(t, func() bool { s.l = r.links[1].Load(); return s.l != nil }, testPatience, time.Millisecond)
	return s
}

// begin begins a payload of so many bytes.
func (s *sipper) begin(n int) {
	s.l.rmu.Lock() // who reads does that after what the test has looked at, which the race detector cannot see
	s.said, s.sent = make([]byte, n), 0
	s.l.rmu.Unlock()
	for i := range s.said {
		s.said[i] = byte(rand.Uint32())
	}
	s.send(frame(wire.Header{Kind: wire.Write, Flags: wire.AckWanted, Seq: s.seq, Len: uint32(n), RAddr: s.dst.Addr(), RKey: s.key}))
	s.seq++
}

func (s *sipper) more(n int) {
	s.send(s.said[s.sent:][:n])
	s.sent += n
}

// taken is how much of the payload was read.
func (s *sipper) taken() int {
	s.l.rmu.Lock()
	defer s.l.rmu.Unlock()
	switch in := &s.l.in; {
	case in.expect == s.seq:
		return len(s.said)
	case in.mode == toNowhere:
		return 0 // it has not begun
	default:
		return in.off
	}
}

func (s *sipper) eventually(taken, gulp int) {
	t := s.t.(*testing.T)
	t.Helper()
	require.Eventually(t, func() bool { return s.taken() == taken && wakesAt(t, s.l) == gulp }, testPatience, time.Millisecond,
		"want %d bytes read, and wakened for %d", taken, gulp)
}

// TestGulps: in the midst of a long payload the reader is wakened for a gulp, and never for more than is to come, also where others have read some of it; and
// for what is hushed meanwhile, behind that.
func TestGulps(t *testing.T) {
	const room = 1 << 20
	s := newSipper(t, Config{FailureTimeout: time.Hour}, room)
	var cq [1]transport.Completion
	poll := func() {
		time.Sleep(sipTime)
		_, err := s.r.Poll(cq[:])
		require.NoError(t, err)
	}
	for round := range 3 {
		s.begin(room)
		s.eventually(0, gulpMost)
		s.more(gulpMost / 2) // not enough
		time.Sleep(20 * time.Millisecond)
		require.Zero(t, s.taken(), "the reader gets up for less than a gulp")
		before := s.r.Performed()
		s.more(gulpMost / 2)
		s.eventually(s.sent, gulpMost)
		require.NotEqual(t, before, s.r.Performed(), "who lingers goes on with that while more comes")
		s.more(gulpMost)
		s.eventually(s.sent, gulpMost)
		s.more(gulpMost)
		s.eventually(s.sent, room-s.sent)

		polled := func(gulp func() int) { // who polls reads what comes
			s.more(20_000)
			for s.taken() < s.sent {
				poll()
			}
			require.Equal(t, gulp(), wakesAt(t, s.l))
		}
		polled(func() int { return room - s.sent })
		if round == 1 {
			s.r.Hush(sched.Steadily)
			for range 10 * (patience + 1) {
				poll() // it was asked over this link last
			}
			polled(func() int { return hushBytes })
			s.r.Hush(sched.Seldom)
			require.Equal(t, room-s.sent, wakesAt(t, s.l))
		}
		s.more(room - s.sent)
		s.eventually(room, 1) // nobody polls
		require.True(t, bytes.Equal(s.said, s.dst.Data()))
	}
}

// TestGulpsSlowly: of a payload that comes slowly no gulp may come for long: the peer is not silent for that.
func TestGulpsSlowly(t *testing.T) {
	const timeout = time.Second // longer than others keep this program from its turn
	s := newSipper(t, Config{FailureTimeout: timeout}, gulpMost)
	s.begin(gulpMost)
	for began := time.Now(); time.Since(began) < 3*timeout; time.Sleep(10 * time.Millisecond) {
		s.more(100)
	}
	require.True(t, s.l.alive.Load())
	s.more(gulpMost - s.sent)
	require.Eventually(t, func() bool { return s.taken() == gulpMost }, testPatience, time.Millisecond)
	require.True(t, bytes.Equal(s.said, s.dst.Data()))
}

// TestGulpsAndHushes: puts of any length arrive while others poll for any time, and when they are over the reader is wakened for a single byte.
func TestGulpsAndHushes(t *testing.T) {
	const room = 1 << 20
	rounds := 200
	if testing.Short() {
		rounds = 60
	}
	s := newSipper(t, Config{FailureTimeout: time.Hour}, room)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for k := range 2 {
		all.Go(func() {
			var cq [1]transport.Completion
			for {
				select {
				case <-stop:
					return
				default:
				}
				s.r.Hush(sched.Steadily)
				for range (1 - k) * rand.IntN(200) { // one polls at a time
					if n, _ := s.r.Poll(cq[:]); n != 0 {
						return // it is gone
					}
				}
				s.r.Hush(sched.Polling(1 + rand.IntN(2)))
				time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
			}
		})
	}
	for range rounds {
		n := copyMost + 1 + rand.IntN(room-copyMost-1)
		s.begin(n)
		for s.sent < n {
			s.more(min(n-s.sent, 1+rand.IntN(200_000)))
			if rand.IntN(3) == 0 {
				runtime.Gosched()
			}
		}
		require.Eventually(t, func() bool { return s.taken() == n }, testPatience, 100*time.Microsecond, "%d bytes", n)
		require.True(t, bytes.Equal(s.said, s.dst.Slice(0, n).Data()))
	}
	close(stop)
	all.Wait()
	require.Eventually(t, func() bool { return wakesAt(t, s.l) == 1 }, testPatience, time.Millisecond)
}
