package pgas

import (
	"context"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOneInitAtATime: while one Init speaks with the launcher another one of the same process is refused before it does, and when the first has come to
// nothing a third one may try again.
func TestOneInitAtATime(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, ln.Close()) }()
	calls := make(chan net.Conn, 3)
	go func() { // a launcher that says nothing
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			calls <- conn
		}
	}()
	environ := []string{"PMI_PORT=" + ln.Addr().String(), "PMI_ID=0", "GOMAXPROCS=2"}
	start := func(ctx context.Context) chan error {
		done := make(chan error, 1)
		go func() {
			_, err := Init(ctx, &Config{Environ: environ, StartTimeout: time.Minute})
			done <- err
		}()
		return done
	}
	heard := func() net.Conn {
		select {
		case conn := <-calls:
			return conn
		case <-time.After(10 * time.Second):
			t.Fatal("nobody calls the launcher")
			return nil
		}
	}
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		first := start(ctx)
		conn := heard()
		select {
		case err := <-start(ctx):
			require.ErrorIs(t, err, ErrUnsupported)
		case conn := <-calls:
			t.Errorf("the second Init has called the launcher (%v)", conn.Close())
		}
		cancel()
		require.NoError(t, conn.Close())
		require.Error(t, <-first)
	}
	require.Empty(t, calls)
}

// TestInitAfterAFailure: an Init that has failed with the launcher's descriptor in its hands has used it up. The next one says so, and how that one failed; the
// variables are not another process's.
func TestInitAfterAFailure(t *testing.T) {
	t.Cleanup(func() { joined.Store(nil) })
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Close(ends[0])) }() // a launcher that says nothing
	c := &Config{Environ: []string{fmt.Sprint("PMI_FD=", ends[1]), "PMI_RANK=0", "PMI_SIZE=2", "GOMAXPROCS=2"}}
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = Init(ended, c)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, ErrUnsupported)
	late, enough := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer enough()
	_, err = Init(late, c) // which may speak with the launcher, since the one before has not
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, ErrUnsupported)
	for range 2 {
		_, again := Init(t.Context(), c)
		require.ErrorIs(t, again, ErrUnsupported)
		require.ErrorContains(t, again, "it failed then: "+err.Error())
	}
}
