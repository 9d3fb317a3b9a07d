package tcp

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestUnpaced: both ends of a link within this machine send without pacing.
func TestUnpaced(t *testing.T) {
	a, b, l := twoRanks(t, Config{})
	a.stuck(t, l, b)() // b's end is there
	for _, l := range []*link{l, b.links[0].Load()} {
		require.NoError(t, l.raw.Control(func(fd uintptr) {
			how, err := unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
			require.NoError(t, err)
			require.Equal(t, "reno", how)
		}))
	}
}

func TestSameHost(t *testing.T) {
	v4 := func(last byte, port int) unix.Sockaddr {
		return &unix.SockaddrInet4{Port: port, Addr: [4]byte{192, 0, 2, last}}
	}
	v6 := func(last byte, port int) unix.Sockaddr {
		return &unix.SockaddrInet6{Port: port, Addr: [16]byte{0: 0x20, 1: 0x01, 15: last}}
	}
	require.True(t, sameHost(v4(1, 5), v4(1, 6)))
	require.True(t, sameHost(v6(1, 5), v6(1, 6)))
	require.False(t, sameHost(v4(1, 5), v4(2, 5)))
	require.False(t, sameHost(v6(1, 5), v6(2, 5)))
	require.False(t, sameHost(v4(1, 5), v6(1, 5)))
	require.False(t, sameHost(&unix.SockaddrUnix{}, &unix.SockaddrUnix{}), "a pair of sockets for tests")
}
