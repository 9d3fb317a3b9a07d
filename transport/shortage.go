package transport

import (
	"errors"
	"fmt"
	"syscall"
)

// Shortage returns the *LimitError behind a system error which says that this process or this machine has run out of file
// descriptors, of what it takes to watch them, of memory for sockets, or of local addresses for connections; nil for any other. what was wanted, in words such
// as "a connection with rank 3". Such an error says nothing about the rank at the other end.
func Shortage(what string, err error) error {
	l := &LimitError{What: what, Err: err}
	switch {
	case errors.Is(err, syscall.EMFILE):
		l.Found, l.Needed = "no file descriptor left for this process", "1 more"
		l.Setting = "ulimit -n, or nofile in /etc/security/limits.conf"
		if n := openFiles(); n > 0 {
			l.Found = fmt.Sprintf("all of this process's %d file descriptors in use (RLIMIT_NOFILE)", n)
			l.Setting = fmt.Sprintf("ulimit -n %d, or nofile in /etc/security/limits.conf", 2*n+64)
		}
	case errors.Is(err, syscall.ENFILE):
		l.Found, l.Needed = "no file descriptor left on the machine", "1 more"
		l.Setting = "sysctl -w fs.file-max=..., twice the present value"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		l.Found, l.Needed = "no local address with a free port", "1"
		l.Setting = "sysctl net.ipv4.ip_local_port_range, or the addresses of this machine's interfaces"
	case errors.Is(err, syscall.ENOBUFS):
		l.Found, l.Needed = "no memory for sockets left in the kernel", "that of 1 socket more"
		l.Setting = "sysctl net.core.wmem_max, net.ipv4.tcp_mem, or fewer connections on this machine"
	case errors.Is(err, syscall.ENOMEM):
		l.Found, l.Needed = "no memory of the kernel left for this process", "that of 1 socket more"
		l.Setting = "memory.max of the control group, or fewer ranks and connections on this machine"
	case errors.Is(err, syscall.ENOSPC): // epoll_ctl(2), by which Go waits for sockets
		l.Found, l.Needed = "no room for one more descriptor of this user's that is watched (epoll)", "1 more"
		l.Setting = "sysctl -w fs.epoll.max_user_watches=..., twice the present value"
	default:
		return nil
	}
	return l
}
