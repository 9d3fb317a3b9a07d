package verbs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"gopgas/transport"
	"gopgas/transport/verbs/internal/ibv"
	"gopgas/transport/verbs/internal/side"
)

// keepAlive notices within three seconds that a machine at the other end of an idle link is dead.
func keepAlive() net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 2}
}

// listen opens the listener, on the address that the port's GID stands for.
func (d *domain) listen() error {
	ip, err := d.listenAddress()
	if err != nil {
		return err
	}
	lc := net.ListenConfig{KeepAliveConfig: keepAlive()}
	d.listener, err = lc.Listen(context.Background(), "tcp", netip.AddrPortFrom(ip, 0).String())
	if err != nil {
		return fmt.Errorf("listen for peers on %v: %w", ip, err)
	}
	at := d.listener.Addr().(*net.TCPAddr).AddrPort()
	d.self = side.Address{Rank: uint32(d.rank), Instance: side.Number(), At: netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())}
	return nil
}

// listenAddress is the port's own address where it is one of IP, else the first of this machine's that others see.
func (d *domain) listenAddress() (netip.Addr, error) {
	gid := netip.AddrFrom16(d.port.gid.Raw).Unmap()
	switch {
	case d.port.state.LinkLayer == ibv.LinkInfiniBand:
	case gid.IsLinkLocalUnicast() && gid.Is6():
		nic, err := net.InterfaceByIndex(int(d.port.gid.NetDev))
		if err != nil {
			return gid, fmt.Errorf("find the interface of address %v: %w", gid, err)
		}
		return gid.WithZone(nic.Name), nil
	default:
		return gid, nil
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return gid, fmt.Errorf("list this machine's addresses: %w", err)
	}
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().IsGlobalUnicast() {
			return p.Addr(), nil
		}
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
}

// zone completes a link-local address of a peer: it is on the network of this port's interface.
func (d *domain) zone(a netip.AddrPort) netip.AddrPort {
	if ip := a.Addr(); ip.Is6() && ip.IsLinkLocalUnicast() {
		if nic, err := net.InterfaceByIndex(int(d.port.gid.NetDev)); err == nil {
			return netip.AddrPortFrom(ip.WithZone(nic.Name), a.Port())
		}
	}
	return a
}

// dial connects with a peer's listener. Whoever refuses or does not answer is gone; what this side lacks says nothing of it.
func (s *dialSet) dial(ctx context.Context, at netip.AddrPort) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialLimit, KeepAliveConfig: keepAlive()}
	conn, err := dialer.DialContext(ctx, "tcp", at.String())
	if err != nil {
		if short := transport.Shortage("a connection with the rank at "+at.String(), err); short != nil && !errors.Is(err, syscall.EADDRNOTAVAIL) {
			return nil, short
		}
		return nil, fmt.Errorf("%w: %w", transport.ErrPeerGone, err)
	}
	if !s.add(conn) {
		conn.Close()
		return nil, transport.ErrClosed
	}
	return conn, nil
}

// serve answers dials until the domain is closed. It keeps a descriptor to spare (nil: there was none), for who calls when there is no
// other.
func (d *domain) serve(spare *os.File) {
	defer func() { _ = spare.Close() }()
	for {
		if spare == nil {
			spare = openSpare()
		}
		conn, err := d.listener.Accept()
		switch {
		case err == nil:
			if !d.dials.remember(conn, d.size) || !d.start(func() { d.admit(conn) }) {
				conn.Close()
			}
		case errors.Is(err, net.ErrClosed):
			return
		case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
			_ = spare.Close()
			d.turnAway()
			spare = openSpare()
			if d.sched.Sleep(d.ctx, retryPause) != nil { // some descriptor will be closed
				return
			}
		default:
			if d.sched.Sleep(d.ctx, time.Millisecond) != nil {
				return
			}
		}
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

// turnAway takes one connection on the descriptor that was given back, and tells the dialer that there is none for it: one that heard
// nothing would take this rank for dead. It waits for a moment for somebody to call, and for his words as long as a handshake may take.
func (d *domain) turnAway() {
	l, ok := d.listener.(*net.TCPListener)
	if !ok || hurry(l) != nil {
		return
	}
	conn, err := l.Accept()
	_ = l.SetDeadline(time.Time{}) // an error: the listener is closed, which its next Accept says
	if err != nil {
		return
	}
	defer conn.Close()
	if !d.dials.remember(conn, d.size) {
		return
	}
	defer d.dials.forget(conn)
	link, _, err := d.auth.Answer(conn)
	if err != nil {
		return
	}
	if f, err := link.Receive(); err == nil && f.Word == side.WordOffer {
		_ = link.Send(side.Frame{Word: side.WordFull}) // who has left needs no answer
	}
}

// admit is the listener's part of a connection: proof, offer, accept, ready. It goes on as the pair's attendant.
func (d *domain) admit(conn net.Conn) {
	q := d.receive(conn)
	d.dials.forget(conn)
	if q == nil {
		conn.Close()
		return
	}
	q.attend()
}

// receive makes the pair that a dialer asks for; nil: there is none.
func (d *domain) receive(conn net.Conn) *pair {
	l, h, err := d.auth.Answer(conn)
	if err != nil {
		return nil
	}
	offered, err := l.Receive()
	if err != nil || offered.Word != side.WordOffer {
		return nil // W6: nothing has happened
	}
	rank := int(h.From.Rank)
	m := meeting{
		me: d.rank, peer: rank, size: d.size,
		self: d.self.Instance, wants: h.ToInstance, job: h.Job == d.auth.Job,
	}
	if int(h.ToRank) != d.rank {
		m.wants = ^m.self
	}
	if w := meet(m); w != side.WordAccept {
		_ = l.Send(side.Frame{Word: w})
		return nil
	}
	p := &d.peers[rank]
	q, err := d.newPair(p)
	if err == nil {
		err = q.connect(&offered.Card)
	}
	if err != nil {
		_ = l.Send(side.Frame{Word: side.WordTrouble})
		if q != nil {
			d.discard(q)
		}
		return nil
	}
	w, serial := d.welcome(p, q, l, &h, m)
	if w != side.WordAccept {
		_ = l.Send(side.Frame{Word: w})
		d.discard(q)
		return nil
	}
	// From here on the pair is installed; whatever goes wrong ends it, and its attendant cleans up. It makes room for nobody.
	d.dials.forget(conn)
	err = l.Send(side.Frame{Word: side.WordAccept, Card: *q.card(), Serial: serial})
	if err == nil {
		var f side.Frame
		if f, err = l.Receive(); err == nil && f.Word != side.WordReady {
			err = side.ErrFrame
		}
	}
	if err == nil {
		err = l.Settled()
	}
	if err != nil {
		q.end(faultDisconnect, nil)
	} else if q.state.CompareAndSwap(pairOpening, pairUp) {
		p.notify()
	} else {
		l.Interrupt() // it has ended meanwhile, and settled took the interruption back
	}
	return q
}

// welcome decides on a dial, and installs its pair.
func (d *domain) welcome(p *peer, q *pair, l *side.Link, h *side.Hello, m meeting) (side.Word, uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m.dialing = p.dialing && p.addr.Instance == h.From.Instance
	if cur := p.cur.Load(); cur != nil && cur.state.Load() != pairEnded {
		m.newer = cur.serial > h.Last && cur.to.Instance == h.From.Instance
	}
	w := meet(m)
	if w == side.WordAccept {
		p.serial = max(p.serial, h.Last) + 1
		q.link = l
		p.installLocked(q, h.From, pairOpening)
	}
	return w, q.serial
}

// dialSet are the connections on which a handshake is going on.
type dialSet struct {
	mu        sync.Mutex
	own       []net.Conn // that this side has dialed
	strangers []net.Conn // that others have, the oldest first
	closed    bool
}

// moreStrangers is how many strangers may be at the door at once beside twice as many as there are ranks.
const moreStrangers = 256

// remember adds a connection that another side has dialed, unless the domain is closed. Where there are as many as may be the oldest makes room: if it is
// a rank of this job, which says at once what it has to say, it dials again.
func (s *dialSet) remember(c net.Conn, ranks int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if len(s.strangers) >= 2*ranks+moreStrangers {
		s.strangers[0].Close()
		s.strangers = s.strangers[1:]
	}
	s.strangers = append(s.strangers, c)
	return true
}

// add adds a connection that this side has dialed, unless the domain is closed.
func (s *dialSet) add(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.own = append(s.own, c)
	return true
}

func (s *dialSet) forget(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, list := range [...]*[]net.Conn{&s.own, &s.strangers} {
		if i := slices.Index(*list, c); i >= 0 {
			*list = slices.Delete(*list, i, i+1)
		}
	}
}

// close ends all handshakes and lets no other begin.
func (s *dialSet) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, list := range [...][]net.Conn{s.own, s.strangers} {
		for _, c := range list {
			c.Close()
		}
	}
}
