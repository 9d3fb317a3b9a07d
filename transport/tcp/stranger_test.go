package tcp

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/internal/wire"
	"gopgas/transport"
)

// testPatience is how long the tests wait for anything.
const testPatience = 20 * time.Second

// testRank is one rank with a registered region that has memory around it.
type testRank struct {
	*domain
	m    mem.Range // all of it
	open mem.Range // the registered part
	reg  transport.Region
}

const (
	testGuard = 4096
	testOpen  = 128 << 10
)

func openRank(t testing.TB, rank, size int, cfg Config, c transport.Config) *testRank {
	t.Helper()
	c.Rank, c.Size, c.Sched = rank, size, sched.Goroutine(size)
	if c.Job == "" {
		c.Job = "hostile"
	}
	if c.Secret == nil {
		c.Secret = []byte("secret")
	}
	d, err := New(cfg).Open(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() }) // some tests have closed it
	r := &testRank{domain: d.(*domain), m: mem.Of(make([]uint64, (testOpen+2*testGuard)/8))}
	r.open = r.m.Slice(testGuard, testOpen)
	r.reg, err = d.Register(r.open, transport.AllAccess)
	require.NoError(t, err)
	return r
}

// untouched fails the test if a byte around the region, or in it, is not what it was.
func (r *testRank) untouched(t testing.TB, inside bool) {
	t.Helper()
	for _, m := range []mem.Range{r.m.Slice(0, testGuard), r.m.Slice(testGuard+testOpen, testGuard)} {
		require.Zero(t, bytes.Compare(m.Data(), make([]byte, m.Bytes)), "memory around the region was touched")
	}
	require.False(t, inside && !bytes.Equal(r.open.Data(), make([]byte, testOpen)), "memory in the region was touched")
}

// serves checks that the rank still does honest work: it writes to itself through its own listener, or to peer.
func (r *testRank) serves(t testing.TB, peer *testRank) {
	t.Helper()
	ep, err := r.Connect(t.Context(), int(peer.me.rank), peer.Address())
	require.NoError(t, err)
	op := transport.Op{Kind: transport.OpRead, Flags: transport.FlagSignaled, NSGE: 1, EP: ep, RAddr: peer.open.Addr(), RKey: peer.reg.RKey, Cookie: 4711}
	op.SGE[0] = transport.SGE{Mem: r.open.Slice(0, 8), LKey: r.reg.LKey}
	n, err := r.Post([]transport.Op{op})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	c := r.await(t, func(c transport.Completion) bool { return c.Cookie == op.Cookie })
	require.Equal(t, transport.StatusOK, c.Status)
}

// await polls until a completion fits.
func (r *testRank) await(t testing.TB, fits func(transport.Completion) bool) transport.Completion {
	t.Helper()
	var cq [1]transport.Completion
	for end := time.Now().Add(testPatience); time.Now().Before(end); {
		n, err := r.Poll(cq[:])
		require.NoError(t, err)
		if n == 1 && fits(cq[0]) {
			return cq[0]
		}
		if n == 0 {
			time.Sleep(100 * time.Microsecond)
		}
	}
	require.Fail(t, "no completion")
	return transport.Completion{}
}

// stranger is a client that speaks the protocol by hand.
type stranger struct {
	t testing.TB
	net.Conn
	s wire.Session
}

func knock(t testing.TB, r *testRank) *stranger {
	t.Helper()
	c, err := net.Dial("tcp", r.me.places[0].String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(testPatience)))
	s := &stranger{t: t, Conn: c}
	s.s = wire.Session{Secret: r.job.Secret, Hello: wire.Hello{
		Job: r.jobHash, From: 1, To: r.me.rank, Caller: 77, Callee: r.me.instance,
	}}
	_, err = rand.Read(s.s.Hello.Nonce[:])
	require.NoError(t, err)
	return s
}

func (s *stranger) send(b []byte) {
	s.t.Helper()
	_, err := s.Write(b)
	require.NoError(s.t, err)
}

// hello sends the first message and returns the answer.
func (s *stranger) hello() wire.Challenge {
	s.t.Helper()
	s.send(s.s.Hello.Append(nil))
	buf := make([]byte, wire.ChallengeBytes)
	_, err := io.ReadFull(s, buf)
	require.NoError(s.t, err)
	c, err := wire.DecodeChallenge(buf)
	require.NoError(s.t, err)
	s.s.Nonce = c.Nonce
	return c
}

func (s *stranger) prove(p wire.Proof) {
	s.t.Helper()
	p.MAC = s.s.ProofMAC(p)
	s.send(p.Append(nil))
}

func (s *stranger) welcome() wire.Welcome {
	s.t.Helper()
	buf := make([]byte, wire.WelcomeBytes)
	_, err := io.ReadFull(s, buf)
	require.NoError(s.t, err)
	w, err := wire.DecodeWelcome(buf)
	require.NoError(s.t, err)
	return w
}

// enter does the whole handshake: the stranger is a rank that has gone bad.
func (s *stranger) enter() *stranger {
	s.t.Helper()
	require.Equal(s.t, wire.Accepted, s.hello().Verdict)
	s.prove(wire.Proof{Last: 1 << 20, Window: 64})
	w := s.welcome()
	require.Equal(s.t, wire.Accepted, w.Verdict)
	require.Equal(s.t, s.s.WelcomeMAC(w), w.MAC)
	return s
}

// dropped waits until the rank has ended the connection, and returns what it said before.
func (s *stranger) dropped() []byte {
	s.t.Helper()
	said, err := io.ReadAll(s)
	var ne net.Error
	require.False(s.t, errors.As(err, &ne) && ne.Timeout(), "the connection was not dropped")
	return said
}

// frames decodes what a rank has said; payloads are skipped.
func frames(t testing.TB, b []byte) (list []wire.Header) {
	for len(b) > 0 {
		var h wire.Header
		n, err := h.Decode(b)
		require.NoError(t, err)
		if n == 0 || len(b) < n+h.Payload() {
			break // cut off
		}
		list = append(list, h)
		b = b[n+h.Payload():]
	}
	return list
}
