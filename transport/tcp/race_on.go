//go:build race

package tcp

// The race detector is told of a socket's ordering before the memory is read for a send, and after it is written
// by a receive; the kernel does both inside the call. So under the detector the memory is copied outside of it.

func readInto(fd int, bufs [][]byte) (int, error) {
	tmp := like(bufs)
	n, err := readv(fd, tmp)
	left := n
	for i := range bufs {
		if left <= 0 {
			break
		}
		left -= copy(bufs[i], tmp[i][:min(left, len(tmp[i]))])
	}
	return n, err
}

func writeFrom(fd int, bufs [][]byte) (int, error) {
	tmp := like(bufs)
	for i := range bufs {
		copy(tmp[i], bufs[i])
	}
	return writev(fd, tmp)
}

func like(bufs [][]byte) [][]byte {
	tmp := make([][]byte, len(bufs))
	for i := range bufs {
		tmp[i] = make([]byte, len(bufs[i]))
	}
	return tmp
}
