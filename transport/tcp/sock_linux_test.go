package tcp

import (
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestUnpaced: both ends of a link within this machine send without pacing, from before they are connected on: later is too late.
func TestUnpaced(t *testing.T) {
	a, b, l := twoRanks(t, Config{})
	a.stuck(t, l, b)() // b's end is there
	for _, l := range []*link{l, b.links[0].Load()} {
		require.Equal(t, "reno", controlOf(t, l.raw))
	}
	for _, l := range b.listeners {
		raw, err := l.SyscallConn()
		require.NoError(t, err)
		require.Equal(t, "reno", controlOf(t, raw))
	}
	systems, err := os.ReadFile("/proc/sys/net/ipv4/tcp_congestion_control")
	require.NoError(t, err)
	require.Equal(t, strings.TrimSpace(string(systems)), b.control)
}

// TestPacedBetweenMachines: both ends of a connection are Reno's as soon as they are connected; those of different addresses are given back, once they are links'.
func TestPacedBetweenMachines(t *testing.T) {
	lc := net.ListenConfig{Control: unpaced(func(string) {})}
	listener, err := lc.Listen(t.Context(), "tcp4", "127.0.0.2:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	other := "reno" // where users may choose no other
	allowed, err := os.ReadFile("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
	require.NoError(t, err)
	for name := range strings.FieldsSeq(string(allowed)) {
		if name != "reno" {
			other = name
		}
	}
	for from, want := range map[string]string{"127.0.0.1": other, "127.0.0.2": "reno"} {
		dialer := net.Dialer{Control: unpaced(func(string) {}), LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		there, err := dialer.DialContext(t.Context(), "tcp4", listener.Addr().String())
		require.NoError(t, err)
		here, err := listener.Accept()
		require.NoError(t, err)
		for _, c := range []net.Conn{here, there} {
			raw, err := c.(*net.TCPConn).SyscallConn()
			require.NoError(t, err)
			require.Equal(t, "reno", controlOf(t, raw))
			require.NoError(t, raw.Control(func(fd uintptr) {
				require.NoError(t, repace(int(fd), ""))
				require.NoError(t, repace(int(fd), other))
			}))
			require.Equal(t, want, controlOf(t, raw))
			require.NoError(t, c.Close())
		}
	}
}

// controlOf is a socket's congestion control.
func controlOf(t *testing.T, raw syscall.RawConn) (name string) {
	t.Helper()
	require.NoError(t, raw.Control(func(fd uintptr) {
		var err error
		name, err = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		require.NoError(t, err)
	}))
	return name
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
