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

// notNow reports whether a call would have had to wait.
func notNow(err error) bool { return err == unix.EAGAIN }
