package control

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Handler is what a rank knows of itself. See the package comment for who calls it.
type Handler interface {
	// Waits lists the calls of this rank that have not returned, the longest first.
	Waits() []Wait
	// Stats returns the counters as of now.
	Stats() Stats
	// Sample returns what there is to see now.
	Sample() Sample
	// PeerGone says that rank has ended before its time; why is a few words for a person.
	PeerGone(rank int, why string)
}

// FromEnviron takes the channel that environ, as os.Environ returns it, names, and returns nil where it names none. The
// descriptor is close-on-exec from then on. Ask only under pgasrun: a launcher within another leaves the outer one's
// variable in place.
func FromEnviron(environ []string) (net.Conn, error) {
	for _, e := range environ {
		value, ok := strings.CutPrefix(e, EnvFD+"=")
		if !ok {
			continue
		}
		fd, err := strconv.Atoi(value)
		if err != nil || fd < 0 {
			return nil, fmt.Errorf("%s=%q: wanted a descriptor's number", EnvFD, value)
		}
		return Adopt(fd)
	}
	return nil, nil
}

// Adopt makes a connection of an inherited socket. The number is free afterwards. What is not an open stream socket is
// an error and is left alone.
func Adopt(fd int) (net.Conn, error) {
	kind, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_TYPE)
	if err != nil || kind != syscall.SOCK_STREAM {
		return nil, fmt.Errorf("%s=%d is not an open stream socket (%v): was it set for another process?", EnvFD, fd, err)
	}
	syscall.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), "control")
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("%s=%d: %w", EnvFD, fd, err)
	}
	return conn, nil
}

// Serve answers the launcher until it closes the channel, or conn is closed here; both give nil. It blocks, so it runs in a
// goroutine of its own.
func Serve(conn net.Conn, h Handler) error {
	return lines(conn, func(l line) error {
		switch l.Kind {
		case askWaits:
			return send(conn, line{Kind: waits, ID: l.ID, Waits: h.Waits()})
		case askStats:
			s := h.Stats()
			return send(conn, line{Kind: stats, ID: l.ID, Stats: &s})
		case askNow:
			s := h.Sample()
			return send(conn, line{Kind: now, ID: l.ID, Sample: &s})
		case gone:
			h.PeerGone(l.Rank, l.Why)
		}
		return nil // a question of a newer launcher: no answer is an answer
	})
}

// SendStats gives the launcher the counters unasked, at the end of a rank. It does not wait: an error says that nobody
// listens, which is no reason for a rank to fail.
func SendStats(conn net.Conn, s Stats) error {
	return send(conn, line{Kind: stats, Stats: &s})
}
