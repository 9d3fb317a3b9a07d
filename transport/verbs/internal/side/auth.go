package side

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

// Authority is what a domain proves itself with.
type Authority struct {
	secret []byte
	Job    [16]byte // digest of the job's name
}

// NewAuthority is of a job with a secret, of which it keeps a copy.
func NewAuthority(secret []byte, job string) Authority {
	sum := sha256.Sum256([]byte(job))
	return Authority{secret: append([]byte(nil), secret...), Job: [16]byte(sum[:16])}
}

// Number draws 64 bits by lot. The standard library ends the program where the system has no randomness.
func Number() uint64 {
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

// What a failed proof is.
var (
	ErrSecret = errors.New("the other side does not know this job's secret: it is of another job, or not of ours at all")
	ErrMAC    = errors.New("a message of the link was not sent by the peer, or was changed on the way")
)

// Link is an authenticated TCP connection beside a pair.
type Link struct {
	conn     net.Conn
	key      []byte
	dialer   bool
	sent     uint64
	received uint64
	mu       sync.Mutex // guards writes
}

// Limits of waiting: beside the data path, in wall-clock time.
const (
	handshakeLimit = 4 * time.Second
	goodbyeLimit   = 500 * time.Millisecond
)

// Greet is the dialer's side of the proof. It sends h and returns a link on which frames can be exchanged.
func (a *Authority) Greet(conn net.Conn, h *Hello) (*Link, error) {
	if err := conn.SetDeadline(time.Now().Add(handshakeLimit)); err != nil {
		return nil, err
	}
	h.Job, h.nonce = a.Job, nonce()
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
		return nil, ErrSecret
	}
	return &Link{conn: conn, key: key, dialer: true}, nil
}

// Answer is the listener's side of the proof. The dialer has proved nothing before its first frame is received.
func (a *Authority) Answer(conn net.Conn) (*Link, Hello, error) {
	if err := conn.SetDeadline(time.Now().Add(handshakeLimit)); err != nil {
		return nil, Hello{}, err
	}
	var said [helloBytes]byte
	if _, err := io.ReadFull(conn, said[:]); err != nil {
		return nil, Hello{}, fmt.Errorf("wait for the hello: %w", err)
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
	return &Link{conn: conn, key: key}, h, nil
}

// Settled takes the handshake's time limit off.
func (l *Link) Settled() error { return l.conn.SetDeadline(time.Time{}) }

func direction(fromDialer bool) string {
	if fromDialer {
		return "dialer says"
	}
	return "listener says"
}

// Send writes a frame.
func (l *Link) Send(f Frame) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	body := f.body()
	var count [8]byte
	binary.BigEndian.PutUint64(count[:], l.sent)
	l.sent++
	_, err := l.conn.Write(append(body[:], mac(l.key, direction(l.dialer), count[:], body[:])[:macBytes]...))
	return err
}

// Receive reads a frame. One goroutine at a time.
func (l *Link) Receive() (Frame, error) {
	var b [frameBytes]byte
	if _, err := io.ReadFull(l.conn, b[:]); err != nil {
		return Frame{}, err
	}
	var count [8]byte
	binary.BigEndian.PutUint64(count[:], l.received)
	l.received++
	if !hmac.Equal(mac(l.key, direction(!l.dialer), count[:], b[:frameBody])[:macBytes], b[frameBody:]) {
		return Frame{}, ErrMAC
	}
	return parseFrame((*[frameBody]byte)(b[:frameBody]))
}

// Interrupt makes a Receive that waits return, with an error that is a timeout.
func (l *Link) Interrupt() { _ = l.conn.SetReadDeadline(time.Unix(1, 0)) }

// HangUp closes the connection, after a last word if there is one. It blocks for goodbyeLimit at most.
func (l *Link) HangUp(last Word) {
	if last != 0 {
		_ = l.conn.SetWriteDeadline(time.Now().Add(goodbyeLimit))
		_ = l.Send(Frame{Word: last})
	}
	l.conn.Close()
}
