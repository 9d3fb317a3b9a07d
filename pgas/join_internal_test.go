package pgas

import (
	"context"
	"net"
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
