package pmiserver

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"gopgas/internal/pmi"
)

// patience is how long an answer may take to fit into the socket's buffer. A client that has one request in flight, as
// the protocol wants, never comes near it.
const patience = time.Second

// Serve speaks with rank on conn until the rank closes it or says something that is not PMI-1, and closes conn. It
// returns nil when the rank closed, whether finalized or not (State tells); any error names the rank. One Serve per rank.
func (s *Server) Serve(rank int, conn net.Conn) error {
	err := s.converse(rank, conn)
	defer conn.Close()
	if err == nil {
		s.hungUp(rank)
	} else {
		s.garbled(rank)
		s.Gone(rank, "has lost its PMI connection")
		return fmt.Errorf("rank %d on its PMI connection: %w", rank, err)
	}
	return nil
}

// garbled notes that rank is no longer listened to, unless it had left before.
func (s *Server) garbled(rank int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := &s.ranks[rank]; r.state != Finalized {
		r.state = Garbled
	}
}

func (s *Server) converse(rank int, conn net.Conn) error {
	rd := bufio.NewReaderSize(conn, pmi.MaxLine)
	reply := func(m pmi.Message) error {
		line, err := m.Append(nil)
		if err != nil {
			return err
		}
		if err := conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		_, err = conn.Write(line)
		return err
	}
	for {
		line, err := pmi.ReadLine(rd)
		if closed(err) {
			return nil
		}
		if err != nil {
			return err
		}
		m, err := pmi.Parse(line)
		if err != nil {
			return err
		}
		answer, err := s.handle(rank, m, reply)
		if answer != nil { // outside the lock: a rank that does not read holds up itself alone
			if werr := reply(*answer); closed(werr) {
				return nil // it left without waiting for the answer
			} else if err == nil {
				err = werr
			}
		}
		if err != nil {
			return err
		}
	}
}

// closed says that an error means only: the other end, or this one, has closed.
func closed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}
