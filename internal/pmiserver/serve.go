package pmiserver

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"gopgas/internal/pmi"
)

// patience is how long an answer may take to fit into the socket's buffer. A client that has one request in flight, as
// the protocol wants, never comes near it.
const patience = time.Second

// Serve speaks with rank on conn until the rank closes it or says something that is not PMI-1, and closes conn. It
// returns nil when the rank closed, whether finalized or not (State tells); any error names the rank, and State tells
// whether the rank or the connection was at fault. One Serve per rank.
func (s *Server) Serve(rank int, conn net.Conn) error {
	fault, err := s.converse(rank, conn)
	if err == nil {
		defer conn.Close()
		s.hungUp(rank, "has ended its PMI connection")
		return nil
	}
	s.deafTo(rank, fault)
	conn.Close() // now: this is how the rank hears of it
	s.hungUp(rank, "has lost its PMI connection")
	return fmt.Errorf("rank %d on its PMI connection: %w", rank, err)
}

// deafTo notes why rank is no longer listened to, unless it had left before.
func (s *Server) deafTo(rank int, fault State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := &s.ranks[rank]; r.state != Finalized {
		r.state = fault
	}
}

// converse answers until the rank has closed. With an error comes whose fault it is: Garbled or Broken.
func (s *Server) converse(rank int, conn net.Conn) (fault State, err error) {
	rd := bufio.NewReaderSize(conn, pmi.MaxLine)
	reply := func(m pmi.Message) error {
		line, err := m.Append(nil)
		if err != nil {
			return err
		}
		if err := conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		if _, err = conn.Write(line); errors.Is(err, os.ErrDeadlineExceeded) {
			err = fmt.Errorf("it has not read the launcher's answers for %v: %w", patience, err)
		}
		return err
	}
	for {
		line, err := pmi.ReadLine(rd)
		switch {
		case closed(err):
			return 0, nil
		case errors.Is(err, pmi.ErrMalformed):
			return Garbled, err
		case err != nil:
			return Broken, err
		}
		m, err := pmi.Parse(line)
		if err != nil {
			return Garbled, err
		}
		answer, wrong := s.handle(rank, m, reply)
		if answer != nil { // outside the lock: a rank that does not read holds up itself alone
			err = reply(*answer)
		}
		switch {
		case wrong != nil:
			return Garbled, wrong
		case err != nil && !closed(err): // one that left without waiting for the answer is heard to its end all the same
			return Broken, err
		}
	}
}

// closed says that an error means only: the other end, or this one, has closed.
func closed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}
