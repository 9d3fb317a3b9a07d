package tcp

import "golang.org/x/sys/unix"

// available says whether this system has what the NIC needs.
func available() error { return nil }

// readv fills bufs, one after another, with what has come, without waiting.
func readv(fd int, bufs [][]byte) (n int, err error) {
	for {
		if len(bufs) == 1 {
			n, err = unix.Read(fd, bufs[0])
		} else {
			n, err = unix.Readv(fd, bufs)
		}
		if err != unix.EINTR {
			return n, err
		}
	}
}

// writev sends what the socket takes of bufs, without waiting.
func writev(fd int, bufs [][]byte) (n int, err error) {
	for {
		if len(bufs) == 1 {
			n, err = unix.Write(fd, bufs[0])
		} else {
			n, err = unix.Writev(fd, bufs)
		}
		if err != unix.EINTR {
			return n, err
		}
	}
}

// lowWater sets for how many bytes whoever waits for the socket is wakened.
func lowWater(fd, bytes int) error {
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT, bytes)
}

// Connections within this machine send as fast as their other ends take the bytes. What paces, as BBR does by the rate that it has measured, would
// measure the processors' turns there and no network: 1 MiB took 2.6 times as long. Reno (RFC 5681) is there on every system, for every user
// (tcp(7), tcp_allowed_congestion_control); without a network it loses nothing, and does not pace. Between machines it is the system's choice.
//
// A socket that has once been under a control that paces is paced for ever, whatever controls it later (Linux, sk_pacing_status): behind a pause of a second,
// when Reno begins anew, each message of 32 KiB waited 10 us for the system's timer. So all are Reno's before they are connected, as are those that
// a listener of Reno's accepts, and the ones that leave the machine are given back.

// unpace makes a socket that is not connected Reno's, and says whose it was.
func unpace(fd int) (was string, err error) {
	if was, err = unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION); err != nil {
		return "", err
	}
	return was, unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno")
}

// repace gives a connection that leaves the machine back to control, the system's; empty: there is nothing to give back.
func repace(fd int, control string) error {
	here, err := unix.Getsockname(fd)
	if err != nil {
		return err
	}
	there, err := unix.Getpeername(fd)
	if err != nil || control == "" || sameHost(here, there) {
		return err
	}
	return unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, control)
}

// sameHost reports whether two sockets have the same address, but for the port: the system gives a connection to an address of its own that one at both ends.
func sameHost(a, b unix.Sockaddr) bool {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		b, ok := b.(*unix.SockaddrInet4)
		return ok && a.Addr == b.Addr
	case *unix.SockaddrInet6:
		b, ok := b.(*unix.SockaddrInet6)
		return ok && a.Addr == b.Addr
	}
	return false
}

// notNow reports whether a call would have had to wait.
func notNow(err error) bool { return err == unix.EAGAIN }
