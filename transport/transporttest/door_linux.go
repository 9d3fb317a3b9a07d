package transporttest

import (
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Door returns a port of an IPv4 address of this machine that is this process's, and on which nobody listens before it is opened: the kernel
// refuses who calls, as it does for a process that has ended. The port is given back when the test ends.
func Door(t *testing.T, at netip.Addr) (port netip.AddrPort, open func() (net.Listener, error)) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	require.NoError(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: at.As4()}))
	sa, err := unix.Getsockname(fd)
	require.NoError(t, err)
	return netip.AddrPortFrom(at, uint16(sa.(*unix.SockaddrInet4).Port)), func() (net.Listener, error) {
		if err := unix.Listen(fd, 16); err != nil {
			return nil, err
		}
		twin, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		f := os.NewFile(uintptr(twin), "door")
		defer f.Close()
		return net.FileListener(f)
	}
}
