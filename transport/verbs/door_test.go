package verbs

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOwnDialsAtTheDoor: who dials many ranks at once still answers those who dial it; only strangers keep others outside.
func TestOwnDialsAtTheDoor(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			defer conn.Close()
		}
	}()
	var s dialSet
	for range mostHandshakes {
		_, err := s.dial(t.Context(), netip.MustParseAddrPort(l.Addr().String()))
		require.NoError(t, err)
	}
	require.False(t, s.busy())
	for range mostHandshakes {
		here, there := net.Pipe()
		defer there.Close()
		require.False(t, s.busy())
		require.True(t, s.remember(here))
	}
	require.True(t, s.busy())
	for conn, own := range s.conns {
		if own {
			s.forget(conn)
			conn.Close()
		}
	}
	require.True(t, s.busy())
	s.close()
	require.False(t, s.busy())
	for conn := range s.conns {
		_, err := conn.Write([]byte{0})
		require.Error(t, err)
	}
}
