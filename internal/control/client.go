package control

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// ErrClosed: the rank closed the channel, or never opened it and ended.
var ErrClosed = errors.New("the rank's control channel is closed")

// Client is the launcher's end of one rank's channel.
type Client struct {
	conn    net.Conn
	onStats func(Stats)
	closed  chan struct{} // closed when Run returns

	mu      sync.Mutex // guards what follows
	next    uint64
	pending map[uint64]chan line // each has room for one answer
}

// NewClient returns the launcher's end on conn. onStats gets what the rank sends unasked, from the goroutine that runs
// Run; nil: it is dropped.
func NewClient(conn net.Conn, onStats func(Stats)) *Client {
	return &Client{conn: conn, onStats: onStats, closed: make(chan struct{}), next: 1, pending: map[uint64]chan line{}}
}

// Run reads until the rank closes the channel, which is no error, or says something broken. Call it once, in a goroutine.
func (c *Client) Run() error {
	defer close(c.closed)
	defer c.conn.Close()
	return lines(c.conn, func(l line) error {
		c.mu.Lock()
		answer := c.pending[l.ID]
		delete(c.pending, l.ID)
		c.mu.Unlock()
		switch {
		case answer != nil:
			answer <- l
		case l.ID == 0 && l.Kind == stats && l.Stats != nil && c.onStats != nil:
			c.onStats(*l.Stats)
		}
		return nil // anything else came too late (C3)
	})
}

// Waits asks what the rank waits for. It returns when the answer came, ctx ended or the channel closed.
func (c *Client) Waits(ctx context.Context) ([]Wait, error) {
	l, err := c.ask(ctx, askWaits)
	return l.Waits, err
}

// Stats asks for the rank's counters, with the same waiting as Waits.
func (c *Client) Stats(ctx context.Context) (Stats, error) {
	l, err := c.ask(ctx, askStats)
	if err == nil && l.Stats == nil {
		err = ErrMalformed
	}
	if err != nil {
		return Stats{}, err
	}
	return *l.Stats, nil
}

// Watch asks for a sample, hands it to f and asks again after that time, until the channel closes. It takes the question with it:
// one is open at a time, however long the rank takes, so a rank that is stopped, or does not know the question, is asked once.
func (c *Client) Watch(every time.Duration, f func(Sample)) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		l, err := c.ask(context.Background(), askNow)
		if err != nil {
			return
		}
		if l.Sample != nil {
			f(*l.Sample)
		}
		select {
		case <-t.C:
		case <-c.closed:
			return
		}
	}
}

// Gone tells the rank that another has ended. It does not wait.
func (c *Client) Gone(rank int, why string) error {
	return send(c.conn, line{Kind: gone, Rank: rank, Why: why})
}

func (c *Client) ask(ctx context.Context, what kind) (line, error) {
	answer := make(chan line, 1)
	c.mu.Lock()
	id := c.next
	c.next++
	c.pending[id] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.pending, id)
		c.mu.Unlock()
	}()
	if err := send(c.conn, line{Kind: what, ID: id}); err != nil {
		return line{}, err
	}
	select {
	case l := <-answer:
		return l, nil
	case <-ctx.Done():
		return line{}, ctx.Err()
	case <-c.closed:
		select {
		case l := <-answer: // it came just before
			return l, nil
		default:
			return line{}, ErrClosed
		}
	}
}
