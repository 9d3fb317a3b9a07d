package control

import (
	"context"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func pair(t testing.TB) (launcher, rank net.Conn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	launcher, err = Adopt(fds[0])
	require.NoError(t, err)
	rank, err = FromEnviron([]string{"A=b", EnvFD + "=" + strconv.Itoa(fds[1])})
	require.NoError(t, err)
	t.Cleanup(func() { launcher.Close(); rank.Close() })
	return launcher, rank
}

type fake struct {
	waits []Wait
	stats Stats
	block chan struct{} // Waits waits for it
	asked int           // Samples

	gone chan string
}

func (f *fake) Waits() []Wait {
	if f.block != nil {
		<-f.block
	}
	return f.waits
}
func (f *fake) Stats() Stats { return f.stats }
func (f *fake) Sample() Sample {
	f.asked++
	return Sample{Node: "n", Waits: f.waits, Flows: []Flow{{With: f.asked, Via: "shm", Ops: 1, Bytes: 8}}}
}
func (f *fake) PeerGone(rank int, why string) { f.gone <- strconv.Itoa(rank) + " " + why }

func TestQuestionsAndAnswers(t *testing.T) {
	launcher, rank := pair(t)
	f := &fake{
		waits: []Wait{{Op: "barrier", Peer: -1, Since: 9800 * time.Millisecond, Where: "main.go:31"}, {Op: "lock", Peer: 2, Detail: "held since 4 s"}},
		stats: Stats{Rank: 3, Node: "n", Transports: map[string]map[string]Path{"shm": {"mapped": {1, 8, 0}}}, Extra: map[string]float64{"x": 1.5}},
		gone:  make(chan string, 1),
	}
	served := make(chan error, 1)
	go func() { served <- Serve(rank, f) }()
	unasked := make(chan Stats, 1)
	c := NewClient(launcher, func(s Stats) { unasked <- s })
	ran := make(chan error, 1)
	go func() { ran <- c.Run() }()

	var wg sync.WaitGroup
	for range 20 { // from many goroutines at once
		wg.Go(func() {
			w, err := c.Waits(t.Context())
			if err != nil || len(w) != 2 || w[0] != f.waits[0] || w[1] != f.waits[1] {
				t.Error(w, err)
			}
			s, err := c.Stats(t.Context())
			if err != nil || s.Transports["shm"]["mapped"] != (Path{1, 8, 0}) {
				t.Error(s, err)
			}
		})
	}
	wg.Wait()
	require.NoError(t, c.Gone(0, "was killed by SIGSEGV"))
	require.Equal(t, "0 was killed by SIGSEGV", <-f.gone)
	require.NoError(t, SendStats(rank, f.stats))
	require.Equal(t, f.stats, <-unasked)

	require.NoError(t, rank.Close())
	require.NoError(t, <-ran)
	require.NoError(t, <-served)
	_, err := c.Waits(t.Context())
	require.Error(t, err)
}

func TestWatch(t *testing.T) {
	launcher, rank := pair(t)
	go Serve(rank, &fake{waits: []Wait{{Op: "lock", Peer: 2}}})
	c := NewClient(launcher, nil)
	go c.Run()
	var got []Sample
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		c.Watch(time.Millisecond, func(s Sample) {
			if got = append(got, s); len(got) == 5 {
				rank.Close()
			}
		})
	}()
	<-watched // the end of the channel ends it
	require.Len(t, got, 5)
	for i, s := range got {
		require.Equal(t, Sample{Node: "n", Waits: []Wait{{Op: "lock", Peer: 2}}, Flows: []Flow{{With: i + 1, Via: "shm", Ops: 1, Bytes: 8}}}, s)
	}
}

// An older rank, or one that is stopped, is asked once: questions without answers would fill its socket.
func TestWatchAsksOnceWhereNobodyAnswers(t *testing.T) {
	launcher, rank := pair(t)
	c := NewClient(launcher, nil)
	go c.Run()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		c.Watch(time.Millisecond, func(Sample) { t.Error("a sample from nowhere") })
	}()
	asked := make(chan line, 100)
	go lines(rank, func(l line) error {
		asked <- l
		return nil
	})
	require.Equal(t, askNow, (<-asked).Kind)
	require.Never(t, func() bool { return len(asked) > 0 }, 100*time.Millisecond, 10*time.Millisecond)
	rank.Close()
	<-watched
}

func TestSamplesFit(t *testing.T) {
	s := Sample{Node: strings.Repeat("n", 64), Extra: map[string]float64{}, Transports: map[string]map[string]Path{"soft": {}}}
	for i := range MostFlows {
		s.Flows = append(s.Flows, Flow{1 << 20, "verbs", 1<<64 - 1, 1<<64 - 1})
		if i < 40 {
			s.Extra["firehose.something.long"+strconv.Itoa(i)] = 1.5e300
		}
	}
	for range MostWaits {
		s.Waits = append(s.Waits, Wait{Op: "exchange", Peer: 1 << 20, Since: 1 << 62, Where: strings.Repeat("x", 200), Detail: strings.Repeat("d", 200)})
	}
	b, err := encode(line{Kind: now, ID: 1 << 60, Sample: &s})
	require.NoError(t, err)
	require.LessOrEqual(t, len(b), MaxLine)
	l, err := decode(b)
	require.NoError(t, err)
	require.Equal(t, s, *l.Sample, "nothing is cut")
	for i := range s.Waits {
		s.Waits[i].Detail = strings.Repeat("d", MaxLine/4)
	}
	b, err = encode(line{Kind: now, Sample: &s})
	require.NoError(t, err)
	l, err = decode(b)
	require.NoError(t, err)
	require.Less(t, len(l.Sample.Waits), 4)
	require.Len(t, s.Waits, MostWaits, "the sample is the caller's")
}

func TestADeadlineEndsAQuestion(t *testing.T) {
	launcher, rank := pair(t)
	f := &fake{block: make(chan struct{}), waits: []Wait{{Op: "late"}}, stats: Stats{Rank: 1}}
	go Serve(rank, f)
	c := NewClient(launcher, nil)
	go c.Run()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := c.Waits(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	close(f.block)
	s, err := c.Stats(t.Context()) // the late answer before it is dropped
	require.NoError(t, err)
	require.Equal(t, 1, s.Rank)
}

func TestTheEndOfARankEndsAQuestion(t *testing.T) {
	launcher, rank := pair(t)
	c := NewClient(launcher, nil)
	go c.Run()
	done := make(chan error, 1)
	go func() { _, err := c.Waits(t.Context()); done <- err }()
	buf := make([]byte, 100)
	_, err := rank.Read(buf)
	require.NoError(t, err)
	rank.Close()
	require.ErrorIs(t, <-done, ErrClosed)
}

func TestNobodyListens(t *testing.T) {
	launcher, rank := pair(t)
	big := Stats{Node: strings.Repeat("n", 10<<10)}
	var err error
	for range 1000 { // C1: at 10 KiB each this would block long before
		if err = SendStats(rank, big); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, ErrNotListening)
	c := NewClient(launcher, nil)
	for range 100_000 {
		if err = c.Gone(1, strings.Repeat("y", 100)); err != nil {
			break
		}
	}
	require.Error(t, err)
}

func TestAnswersAreCutToFit(t *testing.T) {
	many := make([]Wait, 5000)
	for i := range many {
		many[i] = Wait{Op: "put", Peer: i, Where: "main.go:" + strconv.Itoa(i)}
	}
	b, err := encode(line{Kind: waits, Waits: many})
	require.NoError(t, err)
	require.LessOrEqual(t, len(b), MaxLine)
	l, err := decode(b)
	require.NoError(t, err)
	require.Greater(t, len(l.Waits), 100)
	require.Equal(t, many[:len(l.Waits)], l.Waits)
	_, err = encode(line{Kind: stats, Stats: &Stats{Node: strings.Repeat("n", MaxLine)}})
	require.ErrorContains(t, err, "the limit is")
}

func TestBrokenLinesEndTheChannelOnly(t *testing.T) {
	for _, bad := range []string{"noise\n", "{\n", `{"kind":1}` + "\n", strings.Repeat("x", MaxLine+1), `{"kind":"stats"`} {
		launcher, rank := pair(t)
		_, err := rank.Write([]byte(bad))
		require.NoError(t, err)
		rank.Close()
		require.ErrorIs(t, NewClient(launcher, nil).Run(), ErrMalformed, "%.20q", bad)
	}
	launcher, rank := pair(t)
	_, err := launcher.Write([]byte(`{"kind":"of a later version","id":4}` + "\n"))
	require.NoError(t, err)
	launcher.Close()
	require.NoError(t, Serve(rank, &fake{}), "unknown questions are left alone")
}

func TestWrongDescriptor(t *testing.T) {
	conn, err := FromEnviron([]string{"HOME=/"})
	require.NoError(t, err)
	require.Nil(t, conn)
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer f.Close()
	for _, v := range []string{"", "x", "-1", "1000000", strconv.Itoa(int(f.Fd()))} {
		_, err := FromEnviron([]string{EnvFD + "=" + v})
		require.ErrorContains(t, err, EnvFD, "%q", v)
	}
	_, err = f.Stat()
	require.NoError(t, err, "closed a descriptor that is not its own")
}

func FuzzClient(f *testing.F) {
	f.Add([]byte(`{"kind":"stats","stats":{"rank":1}}` + "\n"))
	f.Add([]byte(`{"kind":"waits","id":1,"waits":[{"op":"x","since":1}]}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		near, far := net.Pipe()
		go func() { far.Write(b); far.Close() }()
		_ = NewClient(near, func(Stats) {}).Run()
	})
}

func TestNoise(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		b := []byte(`{"kind":"stats","stats":{"rank":1,"transports":{"shm":{"mapped":{"ops":1}}}}}` + "\n")
		for range 1 + rnd.IntN(4) {
			b[rnd.IntN(len(b))] = byte(rnd.IntN(256))
		}
		near, far := net.Pipe()
		go func() { far.Write(b); far.Close() }()
		_ = NewClient(near, func(Stats) {}).Run()
	}
}
