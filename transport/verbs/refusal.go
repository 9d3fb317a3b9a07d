package verbs

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"gopgas/transport"
	"gopgas/transport/verbs/internal/side"
)

// What a dial that came to nothing says of the peer: a word of its listener, an answer of its machine's kernel, or nothing.

// refusal is the error of a listener's word that is not wordAccept.
func refusal(w side.Word) error {
	switch w {
	case side.WordAccept:
		return nil
	case side.WordYield:
		return errYield
	case side.WordInstance:
		return fmt.Errorf("the rank that published this address has ended; another listens there now: %w", transport.ErrPeerGone)
	case side.WordJob:
		return errors.New("the rank that listens there is of another job")
	case side.WordRank:
		return errors.New("the peer knows no such rank: do both take part in one job of one size?")
	case side.WordTrouble:
		return errTrouble
	case side.WordFull:
		return errFull
	default:
		return side.ErrFrame
	}
}

// errCut marks a handshake that was cut in its middle. So ends the handshake of who meets a process that ends, or a listener that has no room: the
// next try tells, since who calls a process that has ended is refused.
var errCut = errors.New("the handshake was cut")

// goneIfCut takes a connection that was cut in the middle of the handshake for the end of the peer, if no other try goes better.
func goneIfCut(err error) error {
	if errors.Is(err, side.ErrSecret) || errors.Is(err, side.ErrMAC) || errors.Is(err, side.ErrFrame) {
		return err
	}
	for _, e := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE} {
		if errors.Is(err, e) {
			return fmt.Errorf("%w: %w: %w", transport.ErrPeerGone, errCut, err)
		}
	}
	return fmt.Errorf("%w: %w", transport.ErrPeerGone, err)
}

// lateError is the error of a Connect that has lasted for longer than the patience, and of which the last dial failed with err.
func (d *domain) lateError(rank int, err error) error {
	switch {
	case errors.Is(err, errFull):
		return &transport.LimitError{
			What: fmt.Sprintf("a connection with rank %d", rank), Found: "no file descriptor left in that rank's process for " + d.patience.String(),
			Needed: "1 more there", Setting: "ulimit -n on that rank's machine, or nofile in /etc/security/limits.conf", Err: err,
		}
	case d.alive(rank):
		return fmt.Errorf("no connection within %v, though its process lives: %w", d.patience, err)
	default:
		return fmt.Errorf("no connection within %v: %w", d.patience, err)
	}
}

// alive reports whether the process of a rank is known to live.
func (d *domain) alive(rank int) bool {
	lives, known := d.job.LifeOf(rank)
	return known && lives
}

// ended reports whether what became of an attempt to reach a rank, to see whether it is there, says that it is not. What this rank or that one lacks says nothing of an
// end: what the pair owes is reported as flushed, and who connects with the rank next hears what is lacking.
func (d *domain) ended(rank int, err error) bool {
	if lives, known := d.job.LifeOf(rank); known && !lives {
		return err != nil
	}
	return err != nil && !errors.Is(err, transport.ErrLimit) && !errors.Is(err, errNoPair)
}

// mayPass reports whether a dial failed for a reason that may pass, such as a link that is down at either end, rather than
// by an answer that says that the peer is not there. A process that lives may refuse for a while; one that has ended is not waited for.
func (d *domain) mayPass(rank int, err error) bool {
	if lives, known := d.job.LifeOf(rank); known && !lives {
		return false
	}
	return d.job.Spares(rank, err) || passing(err) || d.cut()
}

// cut reports whether this rank's port has no link. Whoever connects may ask when the domain has just been closed, and the device with it.
func (d *domain) cut() bool {
	d.life.RLock()
	defer d.life.RUnlock()
	return !d.closed.Load() && !d.linked()
}

// passing reports whether err is of the network, of a handshake that was cut, or of a queue pair that may be made better, and not the answer of a machine where
// nobody listens.
func passing(err error) bool {
	for _, e := range []error{syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENETDOWN, syscall.EADDRNOTAVAIL, errTrouble, errFull, errRoute, errCut} {
		if errors.Is(err, e) {
			return true
		}
	}
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}
