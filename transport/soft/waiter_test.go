package soft

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// alone opens a domain of one rank whose engine's thread is awake, and leaves what is long to a waiter for so long.
func alone(t *testing.T, wait time.Duration) (*domain, mem.Range, transport.Op) {
	t.Helper()
	return aloneAs(t, Config{Spin: time.Minute, headStart: wait})
}

func aloneAs(t *testing.T, cfg Config) (*domain, mem.Range, transport.Op) {
	t.Helper()
	cfg.MaxPinned = 1 << 30
	p := New(cfg)
	open, err := p.Open(t.Context(), transport.Config{Size: 1, Job: "job", Secret: []byte("s"), Sched: sched.Process(1)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, open.Close()) })
	ep, err := open.Connect(t.Context(), 0, open.Address())
	require.NoError(t, err)
	m := mem.Of(make([]uint64, 2*chunk/8))
	reg, err := open.Register(m, transport.AllAccess)
	require.NoError(t, err)
	for i := range m.Data()[:chunk] {
		m.Data()[i] = byte(i>>8 ^ i)
	}
	op := transport.Op{Kind: transport.OpWrite, Flags: transport.FlagSignaled, NSGE: 1, EP: ep, RAddr: m.Addr() + chunk, RKey: reg.RKey}
	op.SGE[0] = transport.SGE{Mem: m.Slice(0, chunk), LKey: reg.LKey}
	return open.(*domain), m, op
}

// once has an operation made and says after how many polls it was reported, again and again until that is as wanted: at times the thread is not idle
// when it is posted, or looks at that very moment, and moves it itself. That it always does is what is not to be.
func once(t *testing.T, d *domain, m mem.Range, op transport.Op, wanted func(polls int) bool) {
	t.Helper()
	bytes := op.SGE[0].Mem.Bytes
	for range 100 {
		clear(m.Data()[chunk : chunk+bytes])
		_, err := d.Post([]transport.Op{op})
		require.NoError(t, err)
		var cq [1]transport.Completion
		polls := 0
		for n := 0; n == 0; polls++ {
			n, err = d.Poll(cq[:])
			require.NoError(t, err)
		}
		require.Equal(t, transport.StatusOK, cq[0].Status)
		require.Equal(t, m.Data()[:bytes], m.Data()[chunk:chunk+bytes])
		if wanted(polls) {
			return
		}
	}
	t.Fatalf("%d bytes: never as wanted", bytes)
}

// TestWaiterGoesFirst: a thread that is awake leaves a long operation to who waits for it, and that moves a whole chunk when it has
// polled in vain for a while.
func TestWaiterGoesFirst(t *testing.T) {
	d, m, op := alone(t, time.Minute)
	for range 3 {
		once(t, d, m, op, func(polls int) bool { return polls == patience+1 })
	}
}

// TestPollerMovesAtOnce: what takes no more than a few microseconds the first who polls moves, though a thread is awake; what is a byte longer not.
func TestPollerMovesAtOnce(t *testing.T) {
	d, m, op := alone(t, time.Minute)
	for _, bytes := range []int{atOnceBytes + 1, pollBytes, pollBytes + 1} {
		op.SGE[0].Mem = m.Slice(0, bytes)
		want := 1
		if bytes > pollBytes {
			want = patience + 1
		}
		once(t, d, m, op, func(polls int) bool { return polls == want })
	}
}

// TestNobodyWaits: what nobody waits for is moved by the thread, when it has left it alone for a moment.
func TestNobodyWaits(t *testing.T) {
	d, _, op := alone(t, 20*time.Millisecond)
	for range 3 {
		_, err := d.Post([]transport.Op{op})
		require.NoError(t, err)
		for end := time.Now().Add(20 * time.Second); !d.cq.ready(); time.Sleep(time.Millisecond) {
			require.True(t, time.Now().Before(end))
		}
		var cq [1]transport.Completion
		n, err := d.Poll(cq[:])
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
}

// TestNoPostIsMissed: an engine's thread that falls asleep at once is wakened for all that is posted meanwhile, by several at a time, though each time by the first of
// them only: who sees nothing of a wake-up that is under way waits here for more than the test may take.
func TestNoPostIsMissed(t *testing.T) {
	d, _, op := aloneAs(t, Config{Spin: 1, headStart: 1, sleepMax: time.Hour})
	op.SGE[0].Mem = op.SGE[0].Mem.Slice(0, atOnceBytes+8)
	var posters sync.WaitGroup
	const each, all = 5000, 2
	for k := range all {
		posters.Go(func() {
			for i := range each {
				for n := 0; n == 0; {
					n, _ = d.Post([]transport.Op{op}) // 0 where the ring is full
				}
				for pause := d.sched.Now() + time.Duration((7*i+k)%60)*time.Microsecond; d.sched.Now() < pause; {
					sched.Pause()
				}
			}
		})
	}
	var cq [16]transport.Completion
	done := 0
	for end := time.Now().Add(20 * time.Second); done < all*each; {
		require.True(t, time.Now().Before(end), "%d of %d reported", done, all*each)
		if !d.cq.ready() { // who polls would do the work
			runtime.Gosched()
			continue
		}
		n, err := d.Poll(cq[:])
		require.NoError(t, err)
		for _, c := range cq[:n] {
			require.Equal(t, transport.StatusOK, c.Status)
		}
		done += n
	}
	posters.Wait()
}
