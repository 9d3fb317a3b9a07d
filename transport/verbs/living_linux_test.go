package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
	"gopgas/transport/transporttest"
	"gopgas/transport/verbs/internal/side"
)

// TestMayPass: what is known of the peer's process decides on a refusal, and its end on everything.
func TestMayPass(t *testing.T) {
	refused, cut := fmt.Errorf("dial: %w", syscall.ECONNREFUSED), goneIfCut(io.EOF)
	old, down := refusal(side.WordInstance), fmt.Errorf("dial: %w", syscall.ENETUNREACH)
	for _, c := range []struct {
		err   error
		lives bool
		pass  bool
	}{
		{refused, true, true},
		{cut, true, true},
		{down, true, true},
		{errTrouble, true, true},
		{errFull, true, true},
		{refused, false, false},
		{cut, false, false},
		{down, false, false},
		{errTrouble, false, false},
	} {
		d := &domain{job: transport.Config{Lives: func(rank int) (lives, known bool) { return c.lives && rank == 3, true }}}
		require.Equal(t, c.pass, d.mayPass(3, c.err), "%+v", c)
		require.Equal(t, c.lives, d.alive(3))
	}
	for err, want := range map[error]bool{refused: false, cut: true, goneIfCut(fmt.Errorf("read: %w", syscall.ECONNRESET)): true, goneIfCut(side.ErrMAC): false, old: false, down: true, errTrouble: true, os.ErrDeadlineExceeded: true, side.ErrSecret: false} {
		require.Equal(t, want, passing(err), "%v", err)
	}
	c := transport.Config{Lives: func(int) (lives, known bool) { return true, true }}
	require.False(t, c.Spares(3, old), "another process's answer")
}

// told opens rank 0 of 2 with so much patience, which is told of others' lives.
func told(t *testing.T, patience time.Duration, lives func(rank int) (lives, known bool)) *rank {
	t.Helper()
	c := jobConfig(0, 2)
	c.Lives = lives
	d, err := Provider{FailureTimeout: patience}.Open(t.Context(), c)
	transporttest.SkipUnless(t, err)
	t.Cleanup(func() { d.Close() })
	return &rank{t: t, domain: d.(*domain)}
}

// newDoor returns a port on the address of d which refuses who calls, and a function by which d answers there.
func newDoor(t *testing.T, d *domain) (at netip.AddrPort, open func() error) {
	t.Helper()
	ip := d.self.At.Addr()
	require.True(t, ip.Is4())
	at, listen := transporttest.Door(t, ip)
	return at, func() error {
		l, err := listen()
		if err != nil {
			return err
		}
		context.AfterFunc(d.ctx, func() { l.Close() })
		if !d.start(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				if !d.dials.remember(conn, d.size) || !d.start(func() { d.admit(conn) }) {
					conn.Close()
				}
			}
		}) {
			return errors.New("the domain is closed")
		}
		return nil
	}
}

// TestNoDescriptors: a rank whose process has no descriptor left says so, and is not taken for dead.
func TestNoDescriptors(t *testing.T) {
	a := told(t, 2*time.Second, nil) // in which a process gets its turn in an emulated machine that is busy
	_, address, _, _ := spawn(t, 1, 2, tight)
	_, err := a.Connect(t.Context(), 1, address)
	var limit *transport.LimitError
	require.ErrorAs(t, err, &limit)
	require.NotErrorIs(t, err, transport.ErrPeerGone)
	require.ErrorContains(t, err, "a connection with rank 1: found no file descriptor left in that rank's process for 2s")
}

// TestRefusedByTheLiving: a rank that refuses a call is gone at once where its end is known, after the patience where it lives, and
// is reached where it listens in the end.
func TestRefusedByTheLiving(t *testing.T) {
	b := open(t, 1, 2)
	at, listen := newDoor(t, b.domain)
	to := b.self
	to.At = at
	var asked atomic.Int32
	call := func(patience time.Duration, lives func(rank int) (lives, known bool)) error {
		asked.Store(0)
		_, err := told(t, patience, lives).Connect(t.Context(), 1, to.Append(nil))
		return err
	}
	alive := func(int) (lives, known bool) { asked.Add(1); return true, true }
	err := call(300*time.Millisecond, alive)
	require.ErrorIs(t, err, transport.ErrPeerGone)
	require.ErrorContains(t, err, "no connection within 300ms, though its process lives")

	err = call(time.Hour, func(int) (lives, known bool) { return asked.Add(1) < 5, true })
	require.ErrorIs(t, err, transport.ErrPeerGone)
	require.NotContains(t, err.Error(), "lives")

	err = call(time.Hour, func(int) (lives, known bool) {
		if asked.Add(1) == 3 {
			if err := listen(); err != nil {
				t.Error(err)
				return false, true
			}
		}
		return true, true
	})
	require.NoError(t, err)
}
