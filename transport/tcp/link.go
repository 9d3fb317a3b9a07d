package tcp

import (
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gopgas/internal/softnic"
	"gopgas/internal/wire"
	"gopgas/transport"
)

// slot is one operation in a link's ring.
type slot struct {
	op       transport.Op
	fetches  uint64 // requests below this one include the newest read or atomic before it
	answered bool   // the answer to a read or atomic is here
}

// socket is what a link needs of a *net.TCPConn.
type socket interface {
	syscall.Conn
	SetDeadline(t time.Time) error
	CloseWrite() error
	Close() error
}

// State of a link. A link only goes forward.
type linkState uint8

const (
	stateUp    linkState = iota
	stateDying           // sends what it still owes, then Bye; performs and completes nothing any more
	stateDown            // everything outstanding has been reported
)

// link is one connection, which is one incarnation of an endpoint. Requests of both sides and their answers
// share it. It is served by two goroutines, reader and sender, and by every Post and Poll that finds it idle.
type link struct {
	d        *domain
	peer     int
	ep       transport.EP
	instance uint64 // the peer's domain
	window   int    // how many requests of the peer may be without an answer
	hidden   bool   // the far end of the connection with the own rank: it only serves

	conn socket
	raw  syscall.RawConn

	inflight atomic.Int32 // T4: posted and not yet polled
	lazy     atomic.Int32 // of these, those that the peer is not asked to answer
	alive    atomic.Bool  // state is stateUp; to be looked at without mu
	met      atomic.Bool  // the peer has sent a frame, or the link has ended
	heard    atomic.Bool  // something came since the last tick
	news     atomic.Bool  // something was reported and nobody was woken yet
	reading  atomic.Bool  // somebody is in serve
	left     atomic.Bool  // something was left to the sender and is not sent yet
	ended    atomic.Bool  // the reader has returned

	rmu sync.Mutex // held by who reads
	in  inbound    // guarded by rmu

	mu    sync.Mutex
	state linkState
	gone  bool // the peer's end was not announced as a mere end of the connection
	exact bool // the peer has said what it did not do
	hard  bool // nothing more can be sent
	deaf  bool // the peer says nothing more

	// This rank's requests: done <= next <= tail, all numbers of requests.
	ring     []slot
	inline   []byte
	done     uint64
	next     uint64 // the first not yet encoded
	tail     uint64
	fetches  uint64 // 1 + the number of the newest read or atomic posted
	quiet    int32  // done without a report since the last entry in the completion queue
	unasked  uint64 // 1 + the number of the newest request that the peer was not asked to answer, and
	wanted   uint64 // of the newest that it was, or answers in any case
	askDue   bool   // it is to be asked now
	notReady bool   // the peer has no receive buffer for request next
	bad      bool   // request next names memory that its LKey does not cover

	// The peer's requests.
	performed uint64 // how many are done, with their answers in long or further
	acked     uint64 // what the newest frame in pend said of that
	ackDue    bool
	aliveDue  bool
	byeDue    bool
	byeSent   bool
	bye       uint8
	waitSeq   uint64 // the request that the peer was told to wait with,
	waits     bool   // and has not been called for since
	lent      int    // regions in long, pend and cur
	waitLent  bool   // it waits for these
	called    bool   // it has been called for again

	// The way out: pend is being filled, cur is being sent.
	pend, cur batch
	long      []longAnswer // not in pend yet
	longBytes int          // of these
	owed      int          // answers in long and pend: the peer cannot have them
	writing   bool         // somebody sends from cur, without mu
	blocked   bool         // the socket took no more: only the sender sends
	failed    bool         // the socket takes nothing any more
	wrote     bool         // something was sent since the last tick
	vec       [callSegs][]byte
	wn        int
	werr      error
	silent    int // ticks since something was heard
	stuck     int // ticks since the socket took something
	age       int // ticks since the link began to die

	gulp    atomic.Int32 // for how many bytes the reader is wakened, unless the link is hushed
	gulping sync.Mutex   // held while the system is told

	known   chan struct{} // closed when met is set
	kick    chan struct{} // wakes the sender
	writeFn func(fd uintptr)
	pollFn  func(fd uintptr)

	hushFn, unhushFn func(fd uintptr)
}

func newLink(d *domain, peer int, ep transport.EP, instance uint64, window int, conn socket) (*link, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	n := d.cfg.MaxPost
	l := &link{
		d: d, peer: peer, ep: ep, instance: instance, window: window, conn: conn, raw: raw,
		ring: make([]slot, n), inline: make([]byte, n*maxInline), kick: make(chan struct{}, 1), known: make(chan struct{}),
	}
	l.in.buf = make([]byte, readBytes)
	l.alive.Store(true)
	l.heard.Store(true)
	l.gulp.Store(1)
	l.writeFn = func(fd uintptr) {
		v := l.vector()
		l.wn, l.werr = writeFrom(int(fd), v)
		clear(v) // it is the program's memory, and the next call may be long in coming
	}
	l.pollFn = func(fd uintptr) {
		l.in.polled, l.in.more = true, false
		l.serve(int(fd), pollReads)
		l.sip(int(fd), false)
	}
	l.hushFn = func(fd uintptr) { _ = lowWater(int(fd), hushBytes) }
	l.unhushFn = func(fd uintptr) { l.wakeForGulp(int(fd)) }
	_ = raw.Control(func(fd uintptr) { _ = repace(int(fd), d.control) }) // where the system forbids it the link is slower
	return l, nil
}

// newStale returns the link for what is posted to endpoints that are no more.
func newStale(d *domain) *link {
	return &link{d: d, state: stateDown, ring: make([]slot, d.cfg.MaxPost)}
}

// how a link ends.
type ending uint8

const (
	endSaid  ending = iota // this side ends it, and says so to the peer
	endTold                // the peer has ended it and has said what it did
	endCut                 // it broke, or is replaced by another
	endGone                // the peer is gone
	endClose               // this domain is closing
)

// end ends the link, if it has not ended yet.
func (l *link) end(how ending) {
	l.mu.Lock()
	l.endLocked(how)
	l.mu.Unlock()
	l.announce()
}

func (l *link) endLocked(how ending) {
	if l.state == stateUp {
		l.state = stateDying
		l.alive.Store(false)
		l.meet()
		l.gone = how == endGone && !l.hidden
		l.exact = l.exact || how == endTold
		if how == endSaid {
			l.byeDue = true
		}
	}
	if how != endSaid {
		l.hard = true
		l.hangUp()
	}
	l.settleLocked()
}

// hangUp ends the waits of reader and sender; the reader closes the socket then. Closing waits for all calls on
// the socket, of which this may be one.
func (l *link) hangUp() {
	_ = l.conn.SetDeadline(time.Unix(1, 0)) // its error says that the socket is closed already
}

// settleLocked reports what is outstanding when nobody touches its memory any more: the last one to leave does
// it.
func (l *link) settleLocked() {
	sent := l.byeSent && l.cur.empty() && l.pend.empty() && len(l.long) == 0
	if l.state != stateDying || l.reading.Load() || l.writing || !l.hard && !l.failed && !sent {
		return
	}
	l.cur.drop()
	l.pend.drop()
	l.dropLongLocked()
	l.setLeftLocked(false)
	if l.in.hasRecv {
		l.d.recvs.giveBack(l.in.recv)
		l.in.hasRecv = false
		l.d.later.Store(true)
	}
	if l.waits {
		l.d.recvs.leave(l)
	}
	l.flushAllLocked()
	l.state = stateDown
	if l.called {
		l.called = false
		l.d.later.Store(true)
	}
	if l.failed || l.deaf {
		l.hangUp()
	} else if !l.hard {
		_ = l.conn.CloseWrite() // the reader goes on until the peer has read all
	}
}

// flushAllLocked reports everything outstanding as not done, or in doubt, and the end of the peer.
func (l *link) flushAllLocked() {
	first := l.gone
	for ; l.done < l.tail; l.done++ {
		s := &l.ring[l.done%uint64(len(l.ring))]
		status := transport.StatusFlushed
		switch {
		case isAtomic(s.op.Kind):
			if l.done < l.next && !l.exact {
				status = transport.StatusInDoubt
			}
		case first:
			status = transport.StatusPeerGone
		}
		first = false
		l.reportLocked(&s.op, status, 0)
		l.leaveRingLocked(s)
	}
	l.givePlacesLocked()
	if l.gone {
		l.d.report(entry{c: transport.Completion{EP: l.ep, Kind: transport.OpPeerDown, Status: transport.StatusPeerGone}})
	}
	l.news.Store(true)
}

// reportLocked puts the completion of one operation, and the places of silent ones before it, into the queue.
func (l *link) reportLocked(op *transport.Op, s transport.Status, bytes int) {
	c := completion(op, s)
	c.Bytes = uint32(bytes)
	l.d.report(entry{c: c, l: l, places: l.quiet + 1})
	l.quiet = 0
	l.news.Store(true)
}

func (l *link) givePlacesLocked() {
	if l.quiet > 0 {
		l.d.report(entry{l: l, places: l.quiet})
		l.quiet = 0
	}
}

// completeLocked takes all requests below upTo as done. It reports whether the peer may say so.
func (l *link) completeLocked(upTo uint64) bool {
	if upTo <= l.done {
		return true
	}
	if upTo > l.next {
		return false
	}
	for ; l.done < upTo; l.done++ {
		s := &l.ring[l.done%uint64(len(l.ring))]
		if isFetch(s.op.Kind) && !s.answered {
			return false
		}
		l.quiet++
		if s.op.Flags&transport.FlagSignaled != 0 {
			l.quiet--
			l.reportLocked(&s.op, transport.StatusOK, softnic.Total(s.op.SGE[:s.op.NSGE]))
		}
		l.leaveRingLocked(s)
	}
	l.givePlacesLocked()
	return true
}

// failLocked reports the oldest request as failed, and ends the link.
func (l *link) failLocked(s transport.Status, how ending) {
	if l.done < l.tail {
		o := &l.ring[l.done%uint64(len(l.ring))]
		l.reportLocked(&o.op, s, 0)
		l.leaveRingLocked(o)
		l.done++
		l.next = max(l.next, l.done)
	}
	l.endLocked(how)
}

// announce wakes who waits for completions, if there are some.
func (l *link) announce() {
	if l.news.Load() && l.news.Swap(false) {
		l.d.ring()
	}
	if l.d.later.Load() && l.d.later.Swap(false) {
		l.d.callWaiting()
	}
}

// headerLocked begins a frame in pend.
func (l *link) headerLocked(h wire.Header) { l.frameLocked(h, l.long) }

// frameLocked is headerLocked where owed is what is not in pend yet.
func (l *link) frameLocked(h wire.Header, owed []longAnswer) {
	h.Ack = l.ackLocked(owed)
	l.acked = h.Ack
	l.pend.header(&h)
}
