package verbs

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/verbs/internal/side"
)

// without has f called while this process can open no file.
func without(t *testing.T, f func()) {
	t.Helper()
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Max: before.Max}))
	defer func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before)) }()
	f()
}

// TestEnded: what a rank lacks to reach another one is no end of that one, unless that is known.
func TestEnded(t *testing.T) {
	short := transport.Shortage("a connection", syscall.EMFILE)
	for err, want := range map[error]bool{
		short: false, fmt.Errorf("verbs: connect: %w", short): false, fmt.Errorf("%w: %w", errNoPair, errPairs): false,
		refusal(side.WordInstance): true, fmt.Errorf("%w: refused", transport.ErrPeerGone): true, errors.New("something else"): true,
	} {
		require.Equal(t, want, new(domain).ended(1, err), "%v", err)
		known := &domain{job: transport.Config{Lives: func(int) (lives, known bool) { return false, true }}}
		require.True(t, known.ended(1, err), "%v", err)
		require.False(t, known.ended(1, nil))
	}
}

// TestNoVerdictOfAShortage: who has no descriptor left to ask whether a peer is there has not heard that it is gone.
func TestNoVerdictOfAShortage(t *testing.T) {
	d := &domain{size: 2, peers: make([]peer, 2), sched: sched.Goroutine(1), ctx: t.Context()}
	p := &pair{d: d, peer: &d.peers[1], to: side.Address{Rank: 1, At: netip.MustParseAddrPort("127.0.0.1:1")}}
	without(t, func() { require.False(t, p.deserted()) })
}

// TestBrokenWithoutDescriptors: a connection that breaks without a word where this process has no descriptor left, so that it cannot be made again, is no end of the
// peer: what was posted is flushed, and when there are descriptors again there is a connection again. So it is where the peer's NIC refuses an operation.
func TestBrokenWithoutDescriptors(t *testing.T) {
	all := ranks(t, 2)
	a, b := all[0], all[1]
	ep := a.dial(b)
	without(t, func() {
		b.peers[0].cur.Load().link.HangUp(0)
		p := a.peers[1].cur.Load()
		require.Eventually(t, func() bool { return p.verdict.Load() != verdictNone }, 10*time.Second, time.Millisecond)
		require.EqualValues(t, verdictAlive, p.verdict.Load())
		require.ErrorIs(t, p.again, transport.ErrLimit)
		require.Equal(t, transport.StatusFlushed, a.do(a.write(ep, b.mem.Addr(), b.reg.RKey)).Status)
	})
	ep = a.dial(b)
	require.Equal(t, transport.StatusOK, a.do(a.write(ep, b.mem.Addr(), b.reg.RKey)).Status)
	without(t, func() {
		require.Equal(t, transport.StatusRemoteAccess, a.do(a.write(ep, b.mem.Addr(), b.reg.RKey+1)).Status)
	})
	require.Equal(t, transport.StatusOK, a.do(a.write(a.dial(b), b.mem.Addr(), b.reg.RKey)).Status)
}
