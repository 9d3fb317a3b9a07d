//go:build !race

package tcp

// readInto fills bufs, one after another, with what has come, without waiting.
func readInto(fd int, bufs [][]byte) (int, error) { return readv(fd, bufs) }

// writeFrom sends what the socket takes of bufs, without waiting.
func writeFrom(fd int, bufs [][]byte) (int, error) { return writev(fd, bufs) }
