package tcp

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"syscall"
	"time"

	"gopgas/internal/wire"
	"gopgas/transport"
)

// call is a connection being made. It goes on when the Connect that began it has given up: a peer that has
// seen half of it could not tell that from a death.
type call struct {
	to   address
	done chan struct{} // closed when ep and err are set
	ep   transport.EP
	err  error
}

// Errors of Connect.
var (
	errOtherSecret = errors.New("the rank at that address does not know the job's secret: it belongs to another job, or the launcher " +
		"has not given all ranks the same secret")
	errOtherJob  = errors.New("the rank at that address belongs to another job")
	errNotARank  = errors.New("what listens at that address is no rank of a job")
	errOtherRank = errors.New("another rank listens at that address")
	errOld       = errors.New("the rank at that address is a newer one: this address is out of date")
	errMeet      = errors.New("the peer's own connection is on the way")
	errFull      = errors.New("the rank at that address has no file descriptor left for a connection")
	errSilent    = errors.New("no answer")
)

// jobHash is what tells the domains of one job from those of another.
func jobHash(c transport.Config) [32]byte { return wire.JobHash(c.Job, c.Size) }

func (d *domain) Connect(ctx context.Context, peer int, addr []byte) (transport.EP, error) {
	a, err := parseAddress(addr)
	if err != nil || peer < 0 || peer >= len(d.links) || a.rank != uint32(peer) {
		return transport.EP{}, fmt.Errorf("connect to rank %d of %d: %d bytes: %w of that rank", peer, len(d.links), len(addr), errAddress)
	}
	for {
		if ctx.Err() != nil {
			return transport.EP{}, context.Cause(ctx)
		}
		l, c := d.linkOrCall(peer, a)
		if l != nil {
			return l.ep, nil
		}
		if c == nil {
			return transport.EP{}, transport.ErrClosed
		}
		select {
		case <-c.done:
			if c.to.instance == a.instance {
				return c.ep, transport.NewOpError("connect", peer, c.err)
			}
		case <-ctx.Done():
		case <-d.ctx.Done():
			return transport.EP{}, transport.ErrClosed
		}
	}
}

// linkOrCall returns the working link with a, or the call that makes one; neither if the domain is closed.
func (d *domain) linkOrCall(peer int, a address) (*link, *call) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stop.Load() {
		return nil, nil
	}
	if l := d.links[peer].Load(); l != nil && l.used() && l.instance == a.instance {
		return l, nil
	}
	c := d.calls[peer]
	if c == nil {
		c = &call{to: a, done: make(chan struct{})}
		d.calls[peer] = c
		d.spawn(func() { d.run(c, peer) })
	}
	return nil, c
}

// Pace of a call that has to be tried again.
const (
	againFirst   = time.Millisecond
	againLongest = 50 * time.Millisecond
	triesLeast   = 8 // the first try may take one part in so many of the failure timeout
)

// tryFor is how long each of a peer's places may take to answer a try, where left is left of the failure timeout and share is what a
// try may take now: a message that was lost, or a peer that was busy, does not cost the whole time. The last try has more than half of it.
func tryFor(share, left time.Duration, places int) time.Duration {
	if left < 2*share {
		share = left
	}
	return max(share/time.Duration(places), time.Millisecond)
}

// run makes the connection, or finds that the peer has made it.
func (d *domain) run(c *call, peer int) {
	begun := d.sched.Now()
	limit, share := begun+d.cfg.FailureTimeout, d.cfg.FailureTimeout/triesLeast
	var full time.Duration // when the peer first said that it has no descriptor left
	for pause := againFirst; ; pause = min(2*pause, againLongest) {
		old := d.links[peer].Load()
		if old != nil && old.instance == c.to.instance {
			if d.await(old) {
				c.ep, c.err = old.ep, nil
				break
			}
			old.awaitReader() // nothing more is performed on it from now on
		}
		var again bool
		wait := tryFor(share, limit-begun, max(1, len(c.to.places)))
		if c.ep, again, c.err = d.dial(c.to, peer, wait); !again || d.stop.Load() {
			break
		}
		lives, known := d.job.LifeOf(peer)
		if known && !lives {
			c.err = ended(c.err)
			break
		}
		now := d.sched.Now()
		if now-begun >= wait {
			share *= 2
		}
		if errors.Is(c.err, errFull) {
			if full == 0 {
				full = now
			}
			if within := d.cfg.FailureTimeout / ticks; now-full > within {
				c.err = noRoom(c.err, peer, within)
				break
			}
		}
		if now >= limit {
			c.err = noConnection(c.err, d.cfg.FailureTimeout, known)
			break
		}
		_ = d.sched.Sleep(d.ctx, pause) // the domain's end is looked at above
		begun = d.sched.Now()
	}
	if d.stop.Load() && c.err != nil {
		c.err = transport.ErrClosed
	}
	d.mu.Lock()
	d.calls[peer] = nil
	d.mu.Unlock()
	close(c.done)
}

// noRoom is the error of a call that the peer has answered, for so long, by errFull.
func noRoom(err error, peer int, within time.Duration) error {
	return &transport.LimitError{
		What: fmt.Sprintf("a connection with rank %d", peer), Found: "no file descriptor left in that rank's process for " + within.String(),
		Needed: "1 more there", Setting: "ulimit -n on that rank's machine, or nofile in /etc/security/limits.conf", Err: err,
	}
}

// ended is the error of a call to a rank whose process has ended, as others know.
func ended(err error) error {
	if errors.Is(err, transport.ErrPeerGone) {
		return err
	}
	return fmt.Errorf("%w: its process has ended (%w)", transport.ErrPeerGone, err)
}

// noConnection is the error of a call that has been tried for so long, and failed with err the last time.
func noConnection(err error, within time.Duration, lives bool) error {
	though := ""
	if lives {
		though = ", though its process lives"
	}
	return fmt.Errorf("%w: no connection within %v%s (%w)", transport.ErrPeerGone, within, though, err)
}

// mayPass reports whether a dial failed for a reason of the network that may pass, not by an answer that nobody is there.
func mayPass(err error) bool {
	for _, e := range [...]error{syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENETDOWN, syscall.EHOSTDOWN, syscall.ETIMEDOUT} {
		if errors.Is(err, e) {
			return true
		}
	}
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// unpaced returns what a dialer or a listener is to do with a socket first, see unpace; was is told whose it has been. Where the system forbids it links are slower.
func unpaced(was func(control string)) func(network, address string, raw syscall.RawConn) error {
	return func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) {
			if control, err := unpace(int(fd)); err == nil {
				was(control)
			}
		})
	}
}

// dial tries the peer's places one after another, each of which may take wait until it has answered. again says that another try may be luckier.
func (d *domain) dial(to address, peer int, wait time.Duration) (ep transport.EP, again bool, err error) {
	dialer := net.Dialer{Timeout: wait, Control: unpaced(func(string) {})}
	for _, p := range to.places {
		begun := d.sched.Now()
		conn, failed := dialer.DialContext(d.ctx, "tcp", p.String())
		if failed != nil {
			if short := transport.Shortage(fmt.Sprintf("a connection with rank %d", peer), failed); short != nil {
				return ep, false, short // of this side: it says nothing about the peer
			}
			again = again || mayPass(failed) || d.job.Spares(peer, failed)
			if err == nil {
				err = fmt.Errorf("%w: %w", transport.ErrPeerGone, failed)
			} else {
				err = fmt.Errorf("%w; %w", err, failed)
			}
			continue
		}
		if !d.beginCall(conn) {
			return ep, false, transport.ErrClosed
		}
		ep, err = d.callOver(conn.(*net.TCPConn), to, peer, max(wait-(d.sched.Now()-begun), time.Millisecond))
		d.grown(conn)
		if err == nil {
			return ep, false, nil
		}
		_ = conn.Close() // the handshake's error says more
		switch last := p == to.places[len(to.places)-1]; {
		case errors.Is(err, errSilent):
			if again = true; !last {
				continue
			}
			return ep, true, err
		case errors.Is(err, errMeet), errors.Is(err, errFull):
			return ep, true, err
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
			return ep, true, err // it closes, or had no room for one more: the next try will tell
		case errors.Is(err, errNotARank) && !last:
			continue // several machines may use one private address
		}
		var ne net.Error
		if errors.As(err, &ne) && ne.Timeout() {
			err = fmt.Errorf("%w: no answer within %v (%w)", transport.ErrPeerGone, d.cfg.FailureTimeout, err)
		}
		return ep, false, err
	}
	return ep, again, err
}

// callOver does the dialling side's part of the handshake. The peer has so much time for its first answer. A call that ends before that has
// begun nothing at the peer and can be made again; later the peer may have a link already, whose end would look like a death.
func (d *domain) callOver(conn *net.TCPConn, to address, peer int, wait time.Duration) (ep transport.EP, err error) {
	if err := setDeadline(conn, wait); err != nil {
		return ep, err
	}
	s := wire.Session{Secret: d.job.Secret, Hello: wire.Hello{
		Job: d.jobHash, From: d.me.rank, To: to.rank, Caller: d.me.instance, Callee: to.instance,
	}}
	if _, err := crand.Read(s.Hello.Nonce[:]); err != nil {
		return ep, fmt.Errorf("random nonce: %w", err)
	}
	if _, err := conn.Write(s.Hello.Append(nil)); err != nil {
		return ep, err
	}
	ch, err := readChallenge(conn)
	if late := net.Error(nil); errors.As(err, &late) && late.Timeout() {
		return ep, fmt.Errorf("%w within %v (%w)", errSilent, wait.Round(time.Millisecond), err)
	}
	if err != nil {
		return ep, err
	}
	if err := setDeadline(conn, d.cfg.FailureTimeout); err != nil {
		return ep, err
	}
	s.Nonce = ch.Nonce
	if !wire.Same(ch.MAC, s.ChallengeMAC()) {
		return ep, errOtherSecret
	}
	// What is said of incarnations must be of one moment: to know of a working one and to call means that it is dead.
	d.mu.Lock()
	proof := wire.Proof{Last: d.last[peer], Window: uint32(d.cfg.MaxPost)}
	l := d.links[peer].Load()
	d.mu.Unlock()
	if l != nil && l.alive.Load() && l.instance == to.instance {
		return ep, errMeet
	}
	proof.MAC = s.ProofMAC(proof)
	if _, err := conn.Write(proof.Append(nil)); err != nil {
		return ep, err
	}
	var buf [wire.WelcomeBytes]byte
	if _, err := io.ReadFull(conn, buf[:]); err != nil {
		return ep, err
	}
	w, err := wire.DecodeWelcome(buf[:])
	switch {
	case err != nil:
		return ep, err
	case !wire.Same(w.MAC, s.WelcomeMAC(w)):
		return ep, errOtherSecret
	case w.Verdict != wire.Accepted:
		return ep, verdictError(w.Verdict)
	case w.Window == 0 || w.Window > maxWindow || w.Incarnation <= proof.Last:
		return ep, errProtocol
	}
	l, err = newLink(d, peer, transport.EP{Index: uint32(peer), Incarnation: w.Incarnation}, to.instance, int(w.Window), conn)
	if err != nil {
		return ep, err
	}
	if err := clearDeadline(conn); err != nil {
		return ep, err
	}
	l.meet()
	l.aliveDue = true // the peer learns so that there is a connection
	return l.ep, d.attach(l)
}

func readChallenge(conn net.Conn) (c wire.Challenge, err error) {
	var buf [wire.ChallengeBytes]byte
	if _, err := io.ReadFull(conn, buf[:wire.PrefixBytes]); err != nil {
		return c, err
	}
	p, err := wire.DecodePrefix(buf[:])
	if err != nil {
		return c, errNotARank
	}
	if p.Version != wire.Version {
		return c, versionError(p.Version)
	}
	if _, err := io.ReadFull(conn, buf[wire.PrefixBytes:]); err != nil {
		return c, err
	}
	if c, err = wire.DecodeChallenge(buf[:]); err != nil {
		return c, err
	}
	return c, verdictError(c.Verdict)
}

func versionError(v uint32) error {
	return fmt.Errorf("the peer speaks version %d of the wire format, this rank version %d: start all ranks with the same build", v, wire.Version)
}

// verdictError turns the peer's verdict into this side's words.
func verdictError(v wire.Verdict) error {
	switch v {
	case wire.Accepted:
		return nil
	case wire.OtherFormat:
		return fmt.Errorf("the peer does not speak version %d of the wire format: start all ranks with the same build", wire.Version)
	case wire.OtherJob:
		return errOtherJob
	case wire.OtherRank:
		return errOtherRank
	case wire.OldAddress:
		return fmt.Errorf("%w: %w", transport.ErrPeerGone, errOld)
	case wire.Meet:
		return errMeet
	case wire.Full:
		return errFull
	default:
		return fmt.Errorf("%w: it is closing", transport.ErrPeerGone)
	}
}

// Disconnect ends the link of an endpoint. One of an older incarnation is gone already.
func (d *domain) Disconnect(ep transport.EP) error {
	if d.stop.Load() {
		return transport.ErrClosed
	}
	if int(ep.Index) >= len(d.links) {
		return fmt.Errorf("disconnect: no endpoint %d", ep.Index)
	}
	if l := d.links[ep.Index].Load(); l != nil && l.ep == ep {
		l.end(endSaid)
		l.flush()
	}
	return nil
}

// attach makes l, which this rank has called for, the link of its rank and starts what serves it, unless the domain is closed. Its welcome may have been long
// on its way: where the peer's own call has brought a newer one meanwhile it is at its end already.
func (d *domain) attach(l *link) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last[l.peer] >= l.ep.Incarnation {
		return errMeet
	}
	if !d.attachLocked(l) {
		return transport.ErrClosed
	}
	return nil
}

func (d *domain) attachLocked(l *link) bool {
	if d.stop.Load() {
		return false
	}
	if l.hidden {
		d.mirror = l
	} else {
		if old := d.links[l.peer].Swap(l); old != nil {
			old.retire(l.instance)
		}
		d.last[l.peer] = l.ep.Incarnation
	}
	d.all[l] = struct{}{}
	d.listLocked()
	d.cq.reserve(d.cfg.MaxRecv + (len(d.all)+1)*(d.cfg.MaxPost+1) + len(d.links))
	d.spawn(l.runReader)
	d.spawn(l.runSender)
	l.flush()
	return true
}

// retire ends a link for good, since there is one with a domain of its peer's: when it returns nothing more is performed on it. Where that is another domain, the one
// of this link is gone.
func (l *link) retire(instance uint64) {
	how := endCut
	if l.instance != instance {
		how = endGone
	}
	l.end(how)
	l.awaitReader()
}

// awaitReader waits until who is reading has left. On a link that has ended nobody performs anything after that.
func (l *link) awaitReader() {
	l.rmu.Lock()
	defer l.rmu.Unlock()
}

func (d *domain) forget(l *link) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.all, l)
	d.listLocked()
}

// listLocked makes the list of links anew.
func (d *domain) listLocked() {
	open := make([]*link, 0, len(d.all))
	for l := range d.all {
		open = append(open, l)
	}
	d.open.Store(&open)
}

// beginCall notes a call of this rank that is in its handshake, so that Close can end it, unless the domain is closed. No stranger's
// call takes its place, and there are no more of them than ranks.
func (d *domain) beginCall(c net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stop.Load() {
		_ = c.Close()
		return false
	}
	d.dialed = append(d.dialed, c)
	return true
}

// begin is beginCall for who has called this rank. Where there are too many the oldest makes room.
func (d *domain) begin(c net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stop.Load() {
		_ = c.Close()
		return false
	}
	if len(d.young) >= 2*len(d.links)+moreYoung {
		_ = d.young[0].Close()
		d.young = d.young[1:]
	}
	d.young = append(d.young, c)
	return true
}

// moreYoung is how many strangers may be in the handshake beside twice as many as there are ranks.
const moreYoung = 32

// grown forgets a connection whose handshake is over.
func (d *domain) grown(c net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.grownLocked(c)
}

func (d *domain) grownLocked(c net.Conn) {
	for _, list := range [...]*[]net.Conn{&d.young, &d.dialed} {
		if i := slices.Index(*list, c); i >= 0 {
			*list = slices.Delete(*list, i, i+1)
		}
	}
}
