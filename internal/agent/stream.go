package agent

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
)

// stream carries notes and channels over one reader and one writer. Nothing that is sent waits for the other end, but for the
// credit of its channel (A2).
type stream struct {
	in  reader
	out io.WriteCloser

	mu       sync.Mutex // guards what follows
	queue    []byte     // frames to write
	wake     *sync.Cond // of the writer: the queue is not empty, or closing or err is set
	closing  bool       // the queue is the last
	err      error      // why the stream ended
	channels map[uint32]*channel
	written  chan struct{} // closed when the writer has ended
}

// newStream begins to write; run reads.
func newStream(in *bufio.Reader, out io.WriteCloser) *stream {
	s := &stream{in: reader{from: in}, out: out, channels: map[uint32]*channel{}, written: make(chan struct{})}
	s.wake = sync.NewCond(&s.mu)
	go s.write()
	return s
}

// write moves the queue to the other end, several frames at once where there are several.
func (s *stream) write() {
	defer close(s.written)
	defer s.out.Close()
	var batch []byte
	for {
		s.mu.Lock()
		for len(s.queue) == 0 && !s.closing && s.err == nil {
			s.wake.Wait()
		}
		last := s.closing || s.err != nil
		batch, s.queue = s.queue, batch[:0]
		s.mu.Unlock()
		if len(batch) > 0 {
			if _, err := s.out.Write(batch); err != nil {
				s.fail(fmt.Errorf("write to the other end: %w", err))
				return
			}
		}
		if last {
			return
		}
	}
}

// sendLocked queues a frame; after the end it is dropped.
func (s *stream) sendLocked(f frame) {
	if s.err == nil && !s.closing {
		s.queue = f.append(s.queue)
		s.wake.Signal()
	}
}

// tell sends a note.
func (s *stream) tell(n note) { _ = s.trySend(n) }

// trySend is tell for a note that may be too long.
func (s *stream) trySend(n note) error {
	b, err := json.Marshal(n)
	if err == nil && len(b) > MaxNote {
		err = fmt.Errorf("%d bytes of arguments and environment, the limit is %d", len(b), MaxNote)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sendLocked(frame{kind: remark, payload: b})
	return nil
}

// close writes what is queued and closes the writer.
func (s *stream) close() {
	s.mu.Lock()
	s.closing = true
	s.wake.Signal()
	s.mu.Unlock()
}

// fail ends the stream: every channel's reads and writes end.
func (s *stream) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	s.wake.Signal()
	for _, c := range s.channels {
		c.changed.Broadcast()
	}
}

// run reads until the stream ends, is malformed or each returns an error, and returns that: io.EOF where the other end closed between two
// frames. Notes go to each, by this goroutine.
func (s *stream) run(each func(note) error) error {
	for {
		f, err := s.in.next()
		if err == nil && f.kind == remark {
			var n note
			if n, err = parseNote(f.payload); err == nil {
				err = each(n)
			}
		} else if err == nil {
			err = s.take(f)
		}
		if errors.Is(err, errFinished) {
			return err // what is told from now on still leaves
		}
		if err != nil {
			s.fail(err)
			return err
		}
	}
}

// take hands a frame to its channel.
func (s *stream) take(f frame) error {
	s.mu.Lock()
	c := s.channels[f.channel]
	if c == nil {
		s.mu.Unlock()
		return fmt.Errorf("%w: there is no channel %d", ErrMalformed, f.channel)
	}
	hook, err := c.takeLocked(f)
	s.mu.Unlock()
	if hook != nil {
		hook()
	}
	return err
}

// open makes a channel; both ends open the same numbers before anything is sent on them. onShut, which may be nil, is called by the
// goroutine that reads the stream when the other end takes no more.
func (s *stream) open(id uint32, onShut func()) *channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &channel{s: s, id: id, credit: Window, onShut: onShut, changed: sync.NewCond(&s.mu)}
	s.channels[id] = c
	return c
}

// channel returns one that was opened.
func (s *stream) channel(id uint32) *channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.channels[id]
}

// channel is one of the streams within the stream, in both directions. Its fields are guarded by the stream's lock.
type channel struct {
	s       *stream
	id      uint32
	onShut  func()
	changed *sync.Cond // anything that Read and Write wait for

	unread   []byte // has come, was not read
	taken    int    // bytes read whose credit was not given back yet
	theirEnd bool   // the other end sends no more
	myShut   bool   // this end takes no more

	credit    int // bytes that may be sent
	myEnd     bool
	theirShut bool
}

// takeLocked acts on a frame and returns what is to be called without the lock.
func (c *channel) takeLocked(f frame) (hook func(), err error) {
	defer c.changed.Broadcast()
	switch f.kind {
	case data:
		switch {
		case c.theirEnd:
			return nil, fmt.Errorf("%w: data on channel %d after its end", ErrMalformed, c.id)
		case c.myShut: // on its way when it was shut
		case len(c.unread)+c.taken+len(f.payload) > Window:
			return nil, fmt.Errorf("%w: more on channel %d than its window of %d bytes", ErrMalformed, c.id, Window)
		default:
			c.unread = append(c.unread, f.payload...)
		}
	case credit:
		n := int64(binary.LittleEndian.Uint32(f.payload))
		if int64(c.credit)+n > Window {
			return nil, fmt.Errorf("%w: %d bytes of credit more on channel %d, which has %d of %d", ErrMalformed, n, c.id, c.credit, Window)
		}
		c.credit += int(n)
	case end:
		c.theirEnd = true
	case shut:
		hook, c.theirShut = c.onShut, true
	}
	return hook, nil
}

// Read waits for data. io.EOF: the other end sends no more. io.ErrUnexpectedEOF: the stream ended before it had said so.
func (c *channel) Read(p []byte) (int, error) {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(c.unread) == 0 {
		switch {
		case c.myShut:
			return 0, io.ErrClosedPipe
		case c.theirEnd:
			return 0, io.EOF
		case s.err == io.EOF: // of the stream: the channel's would have been told
			return 0, io.ErrUnexpectedEOF
		case s.err != nil:
			return 0, s.err
		case len(p) == 0:
			return 0, nil
		}
		c.changed.Wait()
	}
	n := copy(p, c.unread)
	if c.unread = c.unread[n:]; len(c.unread) == 0 {
		c.unread = nil // a channel that is at rest holds no memory
	}
	if c.taken += n; c.taken >= Window/4 {
		s.sendLocked(frame{credit, c.id, binary.LittleEndian.AppendUint32(nil, uint32(c.taken))})
		c.taken = 0
	}
	return n, nil
}

// Write returns when all of p is on its way, for which it waits for credit.
func (c *channel) Write(p []byte) (done int, err error) {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(p) > 0 {
		switch {
		case c.myEnd:
			return done, io.ErrClosedPipe
		case c.theirShut:
			return done, syscall.EPIPE
		case s.err != nil:
			return done, errors.Join(syscall.EPIPE, s.err)
		}
		n := min(len(p), c.credit, MaxData)
		if n == 0 {
			c.changed.Wait()
			continue
		}
		s.sendLocked(frame{data, c.id, p[:n]})
		c.credit -= n
		p, done = p[n:], done+n
	}
	return done, nil
}

// CloseWrite tells the other end that nothing more will come.
func (c *channel) CloseWrite() { c.say(end, &c.myEnd) }

// Close ends both directions. It may be called more than once.
func (c *channel) Close() error {
	c.say(end, &c.myEnd)
	c.say(shut, &c.myShut)
	return nil
}

func (c *channel) say(k kind, done *bool) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if *done {
		return
	}
	*done = true
	if k == shut {
		c.unread = nil
	}
	c.s.sendLocked(frame{k, c.id, nil})
	c.changed.Broadcast()
}
