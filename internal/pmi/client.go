package pmi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Sentinels; match with errors.Is.
var (
	// ErrServerGone: the launcher closed its end of the connection.
	ErrServerGone = errors.New("the launcher has gone")
	// ErrNotFound: nobody has put that key (or not before the last barrier).
	ErrNotFound = errors.New("key not found")

	errBusy = errors.New("another goroutine still waits for the launcher")
)

// Client is one rank's connection to its launcher. See the package comment for its life.
type Client struct {
	conn net.Conn
	rank int
	size int

	write sync.Mutex // one message at a time on the wire; held only while writing

	extended bool // the launcher is pgasrun: it can say who is missing in a barrier

	turn chan struct{} // P1: one token, held from a request to its answer; guards rd
	rd   *bufio.Reader

	mu     sync.Mutex // guards what follows; never held while waiting
	kvs    string
	broken error // P4
	done   bool
}

// NewClient speaks on conn for rank of size. Connect is the usual way to a Client.
func NewClient(conn net.Conn, rank, size int) *Client {
	c := &Client{conn: conn, rank: rank, size: size, rd: bufio.NewReaderSize(conn, MaxLine), turn: make(chan struct{}, 1)}
	c.turn <- struct{}{}
	return c
}

// Rank returns this process's number in the job.
func (c *Client) Rank() int { return c.rank }

// Size returns the number of ranks.
func (c *Client) Size() int { return c.size }

// KVSName returns the name of the job's key-value space, which differs between jobs.
func (c *Client) KVSName() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kvs
}

// Init opens the conversation and learns the name of the key-value space. Connect has done it already.
func (c *Client) Init(ctx context.Context) error {
	if _, err := c.call(ctx, Msg("init", "pmi_version", "1", "pmi_subversion", "1"), "response_to_init"); err != nil {
		return fmt.Errorf("begin PMI with the launcher: %w", err)
	}
	m, err := c.call(ctx, Msg("get_my_kvsname"), "my_kvsname")
	if err != nil {
		return fmt.Errorf("ask the launcher for the job's name: %w", err)
	}
	name, _ := m.Get("kvsname")
	if name == "" || len(name) > MaxKVSName {
		return fmt.Errorf("ask the launcher for the job's name: %w: a name of %d bytes", ErrMalformed, len(name))
	}
	c.mu.Lock()
	c.kvs = name
	c.mu.Unlock()
	return nil
}

// Put publishes value under key; others see it after the next Barrier. A key is put once: on a second put
// servers differ in which one wins.
func (c *Client) Put(ctx context.Context, key, value string) error {
	if err := errors.Join(CheckKey(key), CheckValue(value)); err != nil {
		return err
	}
	_, err := c.call(ctx, Msg("put", "kvsname", c.KVSName(), "key", key, "value", value), "put_result")
	return wrap(err, "put %s", key)
}

// Get returns what was put under key, or an error wrapping ErrNotFound.
func (c *Client) Get(ctx context.Context, key string) (string, error) {
	if err := CheckKey(key); err != nil {
		return "", err
	}
	m, err := c.call(ctx, Msg("get", "kvsname", c.KVSName(), "key", key), "get_result")
	if rc := (*rcError)(nil); errors.As(err, &rc) {
		err = ErrNotFound
	}
	if err != nil {
		return "", wrap(err, "get %s", key)
	}
	value, ok := m.Get("value")
	if !ok {
		return "", fmt.Errorf("get %s: %w: answer without a value", key, ErrMalformed)
	}
	return value, nil
}

// Barrier returns when every rank has called it. Where one never will, and the launcher says which, the error wraps a
// *GoneError. When ctx ends the error is its cause, and under pgasrun it names the ranks that have not come.
func (c *Client) Barrier(ctx context.Context) error {
	_, err := c.call(ctx, Msg("barrier_in"), "barrier_out")
	return wrap(err, "barrier of the launcher")
}

// UniverseSize returns how many ranks the launcher could run; servers often say Size.
func (c *Client) UniverseSize(ctx context.Context) (int, error) {
	m, err := c.call(ctx, Msg("get_universe_size"), "universe_size")
	if err != nil {
		return 0, err
	}
	return m.Int("size")
}

// Appnum returns which program of a job of several this is; -1 where the server does not say.
func (c *Client) Appnum(ctx context.Context) (int, error) {
	m, err := c.call(ctx, Msg("get_appnum"), "appnum")
	if err != nil {
		return 0, err
	}
	return m.Int("appnum")
}

// Abort asks the launcher to end the whole job with code. There is no answer; it may be called while another
// goroutine waits in Barrier. why is sent unless empty, escaped as in a URL, which is for servers known to read it.
func (c *Client) Abort(code int, why string) error {
	m := Msg("abort", "exitcode", strconv.Itoa(code))
	if why != "" {
		m.Fields = append(m.Fields, Field{"msg", url.PathEscape(why[:min(len(why), MaxValue/3-1)])})
	}
	return wrap(c.send(m), "ask the launcher to abort the job")
}

// lastWord is how long a launcher may take to answer a rank that leaves. It is waited for twice: a process that was stopped meanwhile finds the first
// time over when it goes on.
const lastWord = 15 * time.Second

// Finalize says that this rank is leaving in good order and closes the connection, also when it could not say so. It
// waits for the launcher's answer, which needs no other rank and so comes soon, if it comes, but not for another goroutine's request: that one fails, and
// so does Finalize. Further calls do nothing.
func (c *Client) Finalize() error { return c.finalize(lastWord) }

func (c *Client) finalize(patience time.Duration) error {
	c.mu.Lock()
	again := c.done
	c.done = true
	c.mu.Unlock()
	if again {
		return nil
	}
	err := errBusy
	select {
	case <-c.turn:
		if err = c.failure(); err == nil {
			err = c.leave(patience)
		}
		c.fail(net.ErrClosed)
		c.turn <- struct{}{}
	default:
	}
	c.fail(net.ErrClosed)
	return errors.Join(wrap(err, "tell the launcher that this rank is done"), c.conn.Close())
}

// leave says that this rank is done, and waits for the answer, but not for ever: nobody could end that wait but by ending the process.
func (c *Client) leave(patience time.Duration) error {
	const want = "finalize_ack"
	req := Msg("finalize")
	_ = c.conn.SetDeadline(time.Now().Add(patience)) // an error: the connection is closed, and what follows says so
	_, err := c.roundTrip(req, want)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		_ = c.conn.SetDeadline(time.Now().Add(patience))
		_, err = c.answer(req, want)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("it has not answered for %v: %w", 2*patience, err)
	}
	return err
}

// rcError is an answer that says no.
type rcError struct {
	rc      int
	msg     string
	missing bool // msg names those that have not come to a barrier that this rank gave up
}

// GoneError is the launcher's word that a barrier can never be complete.
type GoneError struct {
	Rank int    // that will not come
	Why  string // in a sentence: "rank 1 exited with 9"
}

func (e *GoneError) Error() string { return e.Why }

func (e *rcError) Error() string {
	if e.msg == "" {
		return "the launcher answered rc=" + strconv.Itoa(e.rc)
	}
	return fmt.Sprintf("the launcher answered rc=%d: %s", e.rc, e.msg)
}

// call sends a request and waits for the answer named want.
func (c *Client) call(ctx context.Context, req Message, want string) (Message, error) {
	select {
	case <-c.turn:
	case <-ctx.Done():
		return Message{}, context.Cause(ctx)
	}
	defer func() { c.turn <- struct{}{} }()
	if err := c.failure(); err != nil {
		return Message{}, fmt.Errorf("the connection to the launcher ended before: %w", err)
	}
	if ctx.Err() != nil {
		return Message{}, context.Cause(ctx) // nothing was sent: the connection is still good
	}
	stop := context.AfterFunc(ctx, func() { c.giveUp(want) })
	m, err := c.roundTrip(req, want)
	no, gone := (*rcError)(nil), (*GoneError)(nil)
	saidNo, saidGone := errors.As(err, &no), errors.As(err, &gone)
	if !stop() { // the deadline is set, or is about to be, even where the answer came first
		cause := context.Cause(ctx)
		c.fail(cause)
		switch {
		case err == nil, saidGone:
		case saidNo && no.missing:
			err = fmt.Errorf("%w: %s", cause, no.msg)
		default:
			err = cause
		}
	}
	if err != nil && !saidNo && !saidGone {
		c.fail(err)
	}
	return m, err
}

// lastAnswer is how long a launcher may take to say who is missing.
const lastAnswer = time.Second

// giveUp ends the read of an answer from outside, by a deadline in the past. It is never taken back: P4. Writes stay possible, for
// Abort. A launcher that can say for whom a barrier waited in vain is asked first.
func (c *Client) giveUp(want string) {
	deadline := time.Unix(1, 0)
	if c.extended && want == "barrier_out" && c.send(Msg("barrier_missing")) == nil {
		deadline = time.Now().Add(lastAnswer)
	}
	_ = c.conn.SetReadDeadline(deadline) // an error: the connection is closed, and the read has ended
}

// fail records the first reason why the connection is of no more use.
func (c *Client) fail(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken == nil {
		c.broken = why
	}
}

func (c *Client) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

func (c *Client) roundTrip(req Message, want string) (Message, error) {
	if err := c.send(req); err != nil {
		return Message{}, err
	}
	return c.answer(req, want)
}

// answer reads the answer to req, which is named want.
func (c *Client) answer(req Message, want string) (Message, error) {
	m, err := c.read()
	if err != nil {
		return Message{}, err
	}
	if m.Cmd != want {
		return Message{}, fmt.Errorf("%w: %q as the answer to %q, wanted %q", ErrMalformed, m.Cmd, req.Cmd, want)
	}
	rc, err := m.RC()
	if err != nil {
		return Message{}, err
	}
	if rc != 0 {
		text, _ := m.Get("msg")
		text = strings.ReplaceAll(text, "_", " ") // the protocol has no blanks
		if rank, err := m.Int("gone"); err == nil {
			return Message{}, &GoneError{Rank: rank, Why: text}
		}
		_, missing := m.Get("missing")
		return Message{}, &rcError{rc, text, missing}
	}
	return m, nil
}

func (c *Client) read() (Message, error) {
	line, err := ReadLine(c.rd)
	if err != nil {
		return Message{}, gone(err)
	}
	return Parse(line)
}

func (c *Client) send(m Message) error {
	line, err := m.Append(nil)
	if err != nil {
		return err
	}
	c.write.Lock()
	defer c.write.Unlock()
	_, err = c.conn.Write(line)
	return gone(err)
}

// ReadLine returns the next line with its newline; it is valid until the next read. io.EOF means that the other
// end closed between two lines. The reader's buffer, MaxLine bytes at least, bounds what is kept (P3).
func ReadLine(rd *bufio.Reader) ([]byte, error) {
	line, err := rd.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, fmt.Errorf("%w: no newline within %d bytes", ErrMalformed, len(line))
	case errors.Is(err, io.EOF) && len(line) > 0:
		return nil, fmt.Errorf("%w: the connection ended within a line", ErrMalformed)
	}
	return line, err
}

// gone translates the ways in which a closed connection shows itself.
func gone(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		return ErrServerGone
	}
	return err
}

func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
