package transport_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
)

func TestShortage(t *testing.T) {
	for _, c := range []struct {
		err            error
		found, setting string // empty: no shortage
	}{
		{nil, "", ""},
		{errors.New("x"), "", ""},
		{syscall.ECONNREFUSED, "", ""},
		{syscall.ENETUNREACH, "", ""},
		{syscall.EMFILE, "file descriptor", "ulimit -n"},
		{fmt.Errorf("dial: %w", syscall.ENFILE), "on the machine", "fs.file-max"},
		{syscall.EADDRNOTAVAIL, "local address", "ip_local_port_range"},
		{syscall.ENOBUFS, "memory for sockets", "tcp_mem"},
		{os.NewSyscallError("socket", syscall.ENOMEM), "memory of the kernel", "memory.max"},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("epoll_ctl", syscall.ENOSPC)}, "watched", "fs.epoll.max_user_watches"},
	} {
		err := transport.Shortage("a connection", c.err)
		if c.found == "" {
			require.NoError(t, err, "%v", c.err)
			continue
		}
		var limit *transport.LimitError
		require.ErrorAs(t, err, &limit)
		require.ErrorIs(t, err, transport.ErrLimit)
		require.ErrorIs(t, err, c.err)
		require.Equal(t, "a connection", limit.What)
		require.Contains(t, limit.Found, c.found)
		require.Contains(t, limit.Setting, c.setting)
		require.NotEmpty(t, limit.Needed)
	}
}
