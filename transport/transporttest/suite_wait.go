package transporttest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
)

var waitChecks = []check{
	{"Wait/completion already there", testWaitThere},
	{"Wait/completion comes", testWaitComes},
	{"Wait/message comes", testWaitMessage},
	{"Wait/Wake before and during", testWake},
	{"Wait/context ends", testWaitContext},
	{"Wait/Close", testWaitClose},
	{"Wait/solicited", testWaitSolicited},
	{"Wait/nothing is missed", testWaitPingPong},
}

// beside starts f and returns where its error arrives.
func beside(f func() error) chan error {
	c := make(chan error, 1)
	go func() { c <- f() }()
	return c
}

// soon returns what f returned, or fails the test when it does not return.
func (n *node) soon(c chan error, what string) error {
	n.t.Helper()
	select {
	case err := <-c:
		return err
	case <-time.After(n.s.opt.Timeout):
		require.Fail(n.t, "Wait does not return", what)
		return nil
	}
}

func testWaitThere(t *testing.T, s *suite) {
	a, _ := s.pair(t, 4096)
	a.post(a.op(transport.OpWrite, 1, 0, 0, 8))
	time.Sleep(20 * time.Millisecond)
	for range 3 { // as long as it has not been polled
		require.NoError(t, a.soon(beside(func() error { return a.d.Wait(t.Context()) }), "with a completion to poll"))
	}
	_, err := a.await(s.opt.Timeout, func(*transport.Completion) bool { return true })
	require.NoError(t, err)
}

// waitFor waits until a completion has been polled.
func (n *node) waitFor(ctx context.Context) error {
	for {
		if k, err := n.drain(); k > 0 || err != nil {
			return err
		}
		if err := n.d.Wait(ctx); err != nil {
			return err
		}
	}
}

func testWaitComes(t *testing.T, s *suite) {
	a, _ := s.pair(t, 4096)
	for range 5 {
		op := a.op(transport.OpWrite, 1, 0, 0, 8)
		c := beside(func() error { return a.waitFor(context.Background()) })
		time.Sleep(10 * time.Millisecond)
		for n := 0; n == 0; {
			var err error
			n, err = a.d.Post([]transport.Op{op})
			require.NoError(t, err)
		}
		require.NoError(t, a.soon(c, "although an operation has completed"))
		require.Equal(t, op.Cookie, a.wait(op.Cookie).Cookie)
	}
}

func testWaitMessage(t *testing.T, s *suite) {
	need(t, s.caps.Sends, "sends")
	a, b := s.pair(t, 4096)
	b.postRecv(1, 0, 8)
	c := beside(func() error { return b.waitFor(context.Background()) })
	a.ep(1)
	time.Sleep(10 * time.Millisecond)
	a.must(a.op(transport.OpSend, 1, 0, 0, 8))
	require.NoError(t, b.soon(c, "although a message has come"))
	b.recv()
}

func testWake(t *testing.T, s *suite) {
	a := s.rig(t, 1, 64).nodes[0]
	wait := func() error { return a.d.Wait(context.Background()) }
	a.d.Wake()
	require.NoError(t, a.soon(beside(wait), "after Wake"))
	c := beside(wait)
	select {
	case <-c:
		// A Wait may return early.
	case <-time.After(10 * time.Millisecond):
	}
	a.d.Wake()
	if len(c) == 0 {
		require.NoError(t, a.soon(c, "woken while it waits"))
	}
	a.none()
}

func testWaitContext(t *testing.T, s *suite) {
	a := s.rig(t, 1, 64).nodes[0]
	cause := errors.New("the test has ended it")
	ctx, cancel := context.WithCancelCause(t.Context())
	c := beside(func() error { return a.waitFor(ctx) })
	time.Sleep(10 * time.Millisecond)
	start := time.Now()
	cancel(cause)
	err := a.soon(c, "although its context has ended")
	require.True(t, errors.Is(err, cause) || errors.Is(err, context.Canceled), "%v", err)
	require.Less(t, time.Since(start), time.Second)
	require.Error(t, a.waitFor(ctx), "a context that has ended before")
	a.none()
}

func testWaitClose(t *testing.T, s *suite) {
	r := s.rig(t, 1, 64)
	a := r.nodes[0]
	c := beside(func() error { return a.waitFor(context.Background()) })
	time.Sleep(10 * time.Millisecond)
	require.NoError(t, a.d.Close())
	r.gone[0] = true
	require.ErrorIs(t, a.soon(c, "although the domain is closed"), transport.ErrClosed)
}

// solicited is a domain that can sleep for what peers send alone.
type solicited interface {
	WaitSolicited(ctx context.Context, limit time.Duration) (some bool, err error)
}

// testWaitSolicited holds a domain that can sleep for what peers send alone to it: a message and a write with immediate end the sleep, and so do
// Wake, before and during, the limit, a context that ends, and Close; the end of an operation of the rank's own does not.
func testWaitSolicited(t *testing.T, s *suite) {
	need(t, s.caps.Sends, "sends")
	r := s.rig(t, 2, 4096)
	a, b := r.nodes[0], r.nodes[1]
	d, ok := b.d.(solicited)
	need(t, ok, "solicited events")
	var some atomic.Bool // what the last one has said
	doze := func(ctx context.Context, limit time.Duration) error {
		told, err := d.WaitSolicited(ctx, limit)
		some.Store(told)
		return err
	}
	wait := func(ctx context.Context, limit time.Duration) chan error {
		c := beside(func() error { return doze(ctx, limit) })
		time.Sleep(10 * time.Millisecond)
		return c
	}
	a.ep(1)
	for k, kind := range []transport.Kind{transport.OpSend, transport.OpWriteImm} {
		b.postRecv(uint64(k), 0, 8)
		c := wait(t.Context(), time.Hour)
		a.must(a.op(kind, 1, 0, 64, 8))
		require.NoError(t, b.soon(c, "although a peer has sent something"))
		require.True(t, some.Load())
		require.NoError(t, b.soon(beside(func() error { return doze(t.Context(), time.Hour) }), "as long as it has not been polled"))
		require.True(t, some.Load())
		b.recv()
	}

	b.d.Wake()
	require.NoError(t, b.soon(wait(t.Context(), time.Hour), "after Wake"))
	c := wait(t.Context(), time.Hour)
	b.d.Wake()
	require.NoError(t, b.soon(c, "woken while it waits"))
	require.True(t, some.Load())

	const limit = 200 * time.Millisecond
	slept := func() time.Duration { // beside a write of its own
		began := time.Now()
		c := wait(t.Context(), limit)
		b.post(b.op(transport.OpWrite, 0, 0, 64, 8))
		for over := len(b.got) + 1; len(b.got) < over; time.Sleep(time.Millisecond) { // it must not wait: somebody does
			_, err := b.drain()
			require.NoError(t, err)
			require.Less(t, time.Since(began), s.opt.Timeout)
		}
		require.Equal(t, transport.StatusOK, b.got[len(b.got)-1].Status)
		b.got = b.got[:len(b.got)-1]
		require.NoError(t, b.soon(c, "beyond its limit"))
		return time.Since(began)
	}
	if slept() < limit/2 { // the device was asked for the end of any operation before, which ended that sleep
		require.Greater(t, slept(), limit/2, "an operation of its own has ended it")
	}
	require.False(t, some.Load(), "nobody has sent anything")

	// What comes between two sleeps, of which the first has ended by its limit, ends the second, which it may also where it was polled meanwhile.
	b.postRecv(2, 0, 8)
	a.must(a.op(transport.OpSend, 1, 0, 64, 8))
	require.NoError(t, b.soon(wait(t.Context(), time.Hour), "although a peer has sent something since the last"))
	require.True(t, some.Load())
	b.recv()
	require.NoError(t, b.soon(wait(t.Context(), time.Millisecond), "beyond its limit"))
	b.postRecv(3, 0, 8)
	a.must(a.op(transport.OpSend, 1, 0, 64, 8))
	b.recv()
	require.NoError(t, b.soon(wait(t.Context(), time.Millisecond), "beyond its limit"))
	c = wait(t.Context(), time.Hour)
	b.postRecv(4, 0, 8)
	a.must(a.op(transport.OpSend, 1, 0, 64, 8))
	require.NoError(t, b.soon(c, "although a peer has sent something"))
	b.recv()

	ctx, cancel := context.WithCancel(t.Context())
	c = wait(ctx, time.Hour)
	cancel()
	require.ErrorIs(t, b.soon(c, "although its context has ended"), context.Canceled)
	c = wait(t.Context(), time.Hour)
	require.NoError(t, b.d.Close())
	r.gone[1] = true
	require.ErrorIs(t, b.soon(c, "although the domain is closed"), transport.ErrClosed)
}

// testWaitPingPong lets two ranks sleep for each other's completions again and again: one that is missed hangs.
func testWaitPingPong(t *testing.T, s *suite) {
	need(t, s.caps.Sends, "sends")
	r := s.rig(t, 2, 4096)
	for _, n := range r.nodes {
		n.ep(1 - n.rank)
		for k := range 4 {
			n.postRecv(uint64(k), 64*k, 8)
		}
	}
	together(t, 2, func(i int) error {
		n := r.nodes[i]
		for k := range s.opt.Ops / 4 {
			if k%2 == i {
				op := n.op(transport.OpSend, 1-i, 1024, 0, 8)
				if err := n.tryPost(op); err != nil {
					return err
				}
				if _, err := n.tryWait(op.Cookie); err != nil {
					return err
				}
				continue
			}
			c, err := n.await(s.opt.Timeout, func(c *transport.Completion) bool { return c.Kind == transport.OpRecv })
			if err != nil {
				return err
			}
			if _, err := n.d.PostRecv([]transport.Recv{{Buf: n.sge(64*int(c.Cookie), 8), Cookie: c.Cookie}}); err != nil {
				return err
			}
		}
		return nil
	})
}
