package verbs

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// The proofs. The dialer sends its hello with a nonce; the listener answers with a nonce of its own and a MAC over
// both, under a key that the job's secret gives; the dialer's first frame carries a MAC too. Both have then proved that
// they know the secret, for this connection only: a session's key depends on both nonces and on all that the
// hello says (ranks, instances, job). Every frame is authenticated under that key, by direction and number.

// authority is what a domain proves itself with.
type authority struct {
	secret []byte
	job    [16]byte
}

func newAuthority(secret []byte, job string) authority {
	sum := sha256.Sum256([]byte(job))
	return authority{secret: append([]byte(nil), secret...), job: [16]byte(sum[:16])}
}

// number draws 64 bits by lot. The standard library ends the program where the system has no randomness.
func number() uint64 {
	b := nonce()
	return binary.BigEndian.Uint64(b[:])
}

func nonce() (n [16]byte) {
	_, _ = rand.Read(n[:])
	return n
}

func mac(key []byte, label string, parts ...[]byte) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(label))
	for _, p := range parts {
		m.Write(p)
	}
	return m.Sum(nil)
}

const (
	macBytes       = 16
	frameBytes     = frameBody + macBytes
	challengeBytes = 16 + macBytes
)

var (
	errSecret = errors.New("the other side does not know this job's secret: it is of another job, or not of ours at all")
	errMAC    = errors.New("a message of the link was not sent by the peer, or was changed on the way")
)

// link is an authenticated TCP connection beside a pair.
type link struct {
	conn     net.Conn
	key      []byte
	dialer   bool
	sent     uint64
	received uint64
	mu       sync.Mutex // guards writes
}

// limits of waiting: beside the data path, in wall-clock time.
const (
	dialLimit      = 2 * time.Second
	handshakeLimit = 4 * time.Second
	goodbyeLimit   = 500 * time.Millisecond
)

// greet is the dialer's side of the proof. It sends h and returns a link on which frames can be exchanged.
func (a *authority) greet(conn net.Conn, h *hello) (*link, error) {
	if err := conn.SetDeadline(time.Now().Add(handshakeLimit)); err != nil {
		return nil, err
	}
	h.job, h.nonce = a.job, nonce()
	said := h.append(nil)
	if _, err := conn.Write(said); err != nil {
		return nil, fmt.Errorf("send the hello: %w", err)
	}
	var challenge [challengeBytes]byte
	if _, err := io.ReadFull(conn, challenge[:]); err != nil {
		return nil, fmt.Errorf("wait for the challenge: %w", err)
	}
	key := mac(a.secret, "session", said, challenge[:16])
	if !hmac.Equal(mac(key, "listener")[:macBytes], challenge[16:]) {
		return nil, errSecret
	}
	return &link{conn: conn, key: key, dialer: true}, nil
}

// answer is the listener's side of the proof. The dialer has proved nothing before its first frame is received.
func (a *authority) answer(conn net.Conn) (*link, hello, error) {
	if err := conn.SetDeadline(time.Now().Add(handshakeLimit)); err != nil {
		return nil, hello{}, err
	}
	var said [helloBytes]byte
	if _, err := io.ReadFull(conn, said[:]); err != nil {
		return nil, hello{}, fmt.Errorf("wait for the hello: %w", err)
	}
	h, err := parseHello(said[:])
	if err != nil {
		return nil, h, err
	}
	n := nonce()
	key := mac(a.secret, "session", said[:], n[:])
	if _, err := conn.Write(append(n[:], mac(key, "listener")[:macBytes]...)); err != nil {
		return nil, h, fmt.Errorf("send the challenge: %w", err)
	}
	return &link{conn: conn, key: key}, h, nil
}

// settled takes the handshake's time limit off.
func (l *link) settled() error { return l.conn.SetDeadline(time.Time{}) }

func direction(fromDialer bool) string {
	if fromDialer {
		return "dialer says"
	}
	return "listener says"
}

// send writes a frame.
func (l *link) send(f frame) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	body := f.body()
	var count [8]byte
	binary.BigEndian.PutUint64(count[:], l.sent)
	l.sent++
	_, err := l.conn.Write(append(body[:], mac(l.key, direction(l.dialer), count[:], body[:])[:macBytes]...))
	return err
}

// receive reads a frame. One goroutine at a time.
func (l *link) receive() (frame, error) {
	var b [frameBytes]byte
	if _, err := io.ReadFull(l.conn, b[:]); err != nil {
		return frame{}, err
	}
	var count [8]byte
	binary.BigEndian.PutUint64(count[:], l.received)
	l.received++
	if !hmac.Equal(mac(l.key, direction(!l.dialer), count[:], b[:frameBody])[:macBytes], b[frameBody:]) {
		return frame{}, errMAC
	}
	return parseFrame((*[frameBody]byte)(b[:frameBody]))
}

// listen waits for the end of the connection and returns why it has ended; faultNone after interrupt.
func (l *link) listen() fault {
	f, err := l.receive()
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return faultNone
	case err != nil:
		return faultLost
	case f.word == wordClosing:
		return faultPeerClosed
	default:
		return faultPeerEnded
	}
}

// interrupt makes listen return.
func (l *link) interrupt() { _ = l.conn.SetReadDeadline(longAgo()) }

// hangUp tells the peer that this end is over, and closes the connection. What the peer has said first needs no answer.
func (l *link) hangUp(f fault) {
	_ = l.conn.SetWriteDeadline(time.Now().Add(goodbyeLimit))
	switch f {
	case faultLost, faultPeerClosed, faultPeerEnded:
	case faultClosed:
		_ = l.send(frame{word: wordClosing})
	default:
		_ = l.send(frame{word: wordEnded})
	}
	l.conn.Close()
}

// hurry gives the next Accept no longer than retryPause.
func hurry(l *net.TCPListener) error { return l.SetDeadline(time.Now().Add(retryPause)) }
