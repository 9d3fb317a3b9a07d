package tcp

import (
	crand "crypto/rand"
	"errors"
	"io"
	"net"
	"os"

	"gopgas/internal/wire"
	"gopgas/transport"
)

// accept serves the passive side: every connection in a goroutine of its own, until it is a link or refused.
// spare is a descriptor to spare, or nil.
func (d *domain) accept(l *net.TCPListener, spare *os.File) {
	defer func() { _ = spare.Close() }()
	for {
		if spare == nil {
			spare = openSpare()
		}
		conn, err := l.AcceptTCP() // where there are no descriptors an error, also when nobody calls
		if err != nil {
			if d.stop.Load() || errors.Is(err, net.ErrClosed) {
				return
			}
			if transport.Shortage("", err) != nil {
				_ = spare.Close()
				d.turnAway(l)
				spare = openSpare()
			}
			_ = d.sched.Sleep(d.ctx, againLongest) // out of descriptors: some may come back
			continue
		}
		if !d.begin(conn) {
			return
		}
		d.spawn(func() {
			if d.answerCall(conn) != nil {
				_ = conn.Close() // who called finds out; there is nobody to tell here
			}
			d.grown(conn)
		})
	}
}

// openSpare takes a descriptor that can be given back when there is no other; nil where there is none now.
func openSpare() *os.File {
	f, err := os.Open(os.DevNull)
	if err != nil {
		return nil // whose Close is an error and no more
	}
	return f
}

// turnAway takes one connection on the descriptor that was given back, and tells the caller that there is none for it: one
// that hears nothing would take this rank for dead. It waits for the caller's
// first message, a fifth of the failure timeout at most.
func (d *domain) turnAway(l *net.TCPListener) {
	if err := setListenDeadline(l, againLongest); err != nil {
		return
	}
	conn, err := l.AcceptTCP()
	_ = setListenDeadline(l, 0) // an error: the listener is closed, which its next Accept says
	if err != nil {
		return
	}
	defer conn.Close()
	if !d.begin(conn) {
		return
	}
	defer d.grown(conn)
	var h wire.Hello
	if setDeadline(conn, d.cfg.FailureTimeout/ticks) != nil {
		return
	}
	if verdict, err := d.readHello(conn, &h); err == nil {
		if verdict == wire.Accepted {
			verdict = wire.Full
		}
		_, _ = conn.Write((&wire.Challenge{Verdict: verdict}).Append(nil)) // who has left needs no answer
	}
}

// errRefused ends the handshake on this side.
var errRefused = errors.New("refused")

// answerCall does the called side's part of the handshake.
func (d *domain) answerCall(conn *net.TCPConn) error {
	if err := setDeadline(conn, d.cfg.FailureTimeout); err != nil {
		return err
	}
	s := wire.Session{Secret: d.job.Secret}
	verdict, err := d.readHello(conn, &s.Hello)
	if err != nil {
		return err
	}
	ch := wire.Challenge{Verdict: verdict}
	if verdict == wire.Accepted {
		if _, err := crand.Read(ch.Nonce[:]); err != nil {
			return err
		}
		s.Nonce = ch.Nonce
		ch.MAC = s.ChallengeMAC()
	}
	if _, err := conn.Write(ch.Append(nil)); err != nil {
		return err
	}
	if verdict != wire.Accepted {
		return errRefused
	}
	var buf [wire.ProofBytes]byte
	if _, err := io.ReadFull(conn, buf[:]); err != nil {
		return err
	}
	proof, err := wire.DecodeProof(buf[:])
	if err != nil {
		return err
	}
	if !wire.Same(proof.MAC, s.ProofMAC(proof)) || proof.Window == 0 || proof.Window > maxWindow {
		return errRefused
	}
	// From here on the caller is a rank of this job.
	if err := clearDeadline(conn); err != nil {
		return err
	}
	return d.welcome(conn, &s, proof)
}

// readHello reads the first message and judges it.
func (d *domain) readHello(conn net.Conn, h *wire.Hello) (wire.Verdict, error) {
	var buf [wire.HelloBytes]byte
	if _, err := io.ReadFull(conn, buf[:wire.PrefixBytes]); err != nil {
		return 0, err
	}
	p, err := wire.DecodePrefix(buf[:])
	if err != nil {
		return 0, err
	}
	if p.Version != wire.Version {
		return wire.OtherFormat, nil
	}
	if _, err := io.ReadFull(conn, buf[wire.PrefixBytes:]); err != nil {
		return 0, err
	}
	if *h, err = wire.DecodeHello(buf[:]); err != nil {
		return 0, err
	}
	switch {
	case h.Job != d.jobHash:
		return wire.OtherJob, nil
	case h.To != d.me.rank || h.From >= uint32(len(d.links)):
		return wire.OtherRank, nil
	case h.Callee != d.me.instance:
		return wire.OldAddress, nil
	case d.stop.Load():
		return wire.Closing, nil
	}
	return wire.Accepted, nil
}

// welcome decides whether the caller's connection is the one to use, and if so makes it the link.
func (d *domain) welcome(conn *net.TCPConn, s *wire.Session, proof wire.Proof) error {
	peer := int(s.Hello.From)
	d.mu.Lock()
	defer d.mu.Unlock()
	w := wire.Welcome{Verdict: d.judgeLocked(peer, s.Hello.Caller, proof.Last), Window: uint32(d.cfg.MaxPost)}
	if w.Verdict == wire.Accepted {
		w.Incarnation = max(proof.Last, d.last[peer]) + 1
	}
	w.MAC = s.WelcomeMAC(w)
	if w.Verdict != wire.Accepted {
		_, _ = conn.Write(w.Append(nil)) // the first bytes but one into an empty socket: it takes them at once
		return errRefused
	}
	l, err := newLink(d, peer, transport.EP{Index: uint32(peer), Incarnation: w.Incarnation}, s.Hello.Caller, int(proof.Window), conn)
	if err != nil {
		return err
	}
	l.hidden = peer == int(d.me.rank)
	old := d.links[peer].Load()
	if l.hidden {
		old = d.mirror
	}
	if old != nil {
		old.retire(l.instance) // nothing of it may happen when the caller begins
	}
	// The welcome is the first thing that the link sends: nothing can overtake it.
	copy(l.pend.room(wire.WelcomeBytes).Data(), w.Append(nil))
	if !d.attachLocked(l) {
		return errRefused
	}
	d.grownLocked(conn) // from here on it makes room for nobody: its end would look like a death
	return nil
}

// judgeLocked says whether to accept a call of a peer's domain that knows of incarnations up to last. Of what this rank has with another domain of the peer's
// it will never hear.
func (d *domain) judgeLocked(peer int, instance uint64, last uint32) wire.Verdict {
	if peer == int(d.me.rank) {
		return wire.Accepted // it is this domain's only call to itself
	}
	if l := d.links[peer].Load(); l != nil && l.alive.Load() && l.instance == instance && l.ep.Incarnation > last {
		return wire.Meet // the peer will hear of that one, or has just done so
	}
	if c := d.calls[peer]; c != nil && c.to.instance == instance && int(d.me.rank) < peer {
		return wire.Meet // of two calls that cross, the lower rank's is the one
	}
	return wire.Accepted
}
