package am

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// bufferSize is the size of a message's buffer, in bytes: there are as many as ranks, so they shrink as those grow.
func bufferSize(ranks int) int {
	switch {
	case ranks <= 64:
		return 4096
	case ranks <= 512:
		return 1024
	default:
		return 512
	}
}

// Limits of a rank's buffers.
const (
	ownRequests = 64   // unanswered requests of this rank
	mostBuffers = 2048 // for the requests of others and the replies to them, unless there are more than half as many ranks
	mostCredits = 8    // unanswered requests to one rank
)

// Request is what a handler is given. Payload lies in a receive buffer and is valid during the handler only.
type Request struct {
	From    int
	Handler uint8
	Args    [4]uint64
	Payload []byte
}

// Handler performs a request: it writes its reply's payload to out, and returns how much, and a status that means
// something to the caller; 0 is success.
type Handler func(r Request, out []byte) (n int, status uint8)

// Reply is the answer to a request. Payload is valid until Release.
type Reply struct {
	Cookie  uint64 // the caller's
	Status  uint8
	Payload []byte
	buffer  int
}

// AM is a rank's active messages over one NIC.
type AM struct {
	d       transport.Domain
	base    uint64 // cookies of this package are base and up
	handler Handler
	rank    int

	memory  mem.Range // receive buffers, then send buffers of requests, then of replies
	key     transport.Region
	size    int // of a buffer
	nRecv   int
	nReply  int
	recv    []transport.Recv // one entry, to post without allocating
	replies []transport.Op   // waiting for room, oldest first
	waiting []request        // waiting for a reply buffer, oldest first
	op      []transport.Op   // by slot, likewise

	freeRep []int        // reply buffers; the poller's, like the three above
	held    []heldOp     // flushed, waiting for a connection (again.go); the poller's too
	sent    []sentReply  // by reply buffer: what was posted last; the poller's
	seen    [][]uint64   // by rank, by slot: the newest request performed; the poller's
	anyHeld atomic.Int32 // len(held), for others

	mu      sync.Mutex
	credits []int    // by rank
	newest  []uint32 // by rank: the incarnation of the connection over which requests go
	slots   []slot
	free    []int
}

// request is a request in its receive buffer.
type request struct {
	header
	buffer int
	ep     transport.EP
}

// Kinds of messages.
const (
	kindRequest = 1
	kindReply   = 2
)

// LeastMessage is the smallest MaxMessage of a NIC, in bytes, over which active messages can go.
const LeastMessage = headerBytes + 64

// ErrLost: a request that could not be sent. Match with errors.Is.
var ErrLost = errors.New("the request could not be sent")

// errGone is ErrLost where the NIC has found that the rank has ended.
var errGone = fmt.Errorf("%w: %w", transport.ErrPeerGone, ErrLost)

// New makes the active messages of rank in a world of size ranks. base marks the cookies that belong to it; the caller
// passes their completions to Arrived. more is how many receive buffers there are beside those of messages, for writes with
// immediate: see Spent.
func New(d transport.Domain, rank, size, more int, base uint64, h Handler) (*AM, error) {
	if !d.Caps().Sends {
		return nil, fmt.Errorf("%w: active messages need a NIC with sends", transport.ErrUnsupported)
	}
	if c := d.Caps(); c.MaxMessage < LeastMessage {
		return nil, fmt.Errorf("%w: active messages need messages of %d bytes, this NIC's are at most %d", transport.ErrUnsupported, LeastMessage, c.MaxMessage)
	}
	credits, bytes := shares(d.Caps(), size)
	a := &AM{
		d: d, base: base, handler: h, rank: rank, size: bytes,
		nReply: size * credits, nRecv: size*credits + ownRequests + more,
		recv: make([]transport.Recv, 1), op: make([]transport.Op, ownRequests),
		credits: make([]int, size), newest: make([]uint32, size), slots: make([]slot, ownRequests),
		sent: make([]sentReply, size*credits), seen: make([][]uint64, size),
	}
	for r := range a.credits {
		a.credits[r] = credits
	}
	for i := ownRequests - 1; i >= 0; i-- {
		a.free = append(a.free, i)
	}
	for i := a.nReply - 1; i >= 0; i-- {
		a.freeRep = append(a.freeRep, i)
	}
	a.memory = mem.Make((a.nRecv + ownRequests + a.nReply) * a.size)
	var err error
	if a.key, err = d.Register(a.memory, transport.LocalWrite); err != nil {
		return nil, fmt.Errorf("register %d bytes of message buffers: %w", a.memory.Bytes, err)
	}
	for i := range a.nRecv {
		if err := a.post(i); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// shares returns how many requests each rank may have under way to this one, and the size of a buffer.
func shares(c transport.Caps, size int) (credits, bytes int) {
	return max(1, min(mostCredits, mostBuffers/(2*max(1, size)))), min(bufferSize(size), c.MaxMessage/8*8)
}

// Bytes returns the registered memory that New takes for one rank of a world of size ranks over such a NIC, with more receive buffers.
func Bytes(c transport.Caps, size, more int) int {
	credits, bytes := shares(c, size)
	return (2*size*credits + 2*ownRequests + more) * bytes
}

// MaxPayload returns the largest payload of a request or a reply, in bytes.
func (a *AM) MaxPayload() int { return a.size - headerBytes }

// Footprint returns the bytes of registered memory that the messages of one rank take.
func (a *AM) Footprint() int { return a.memory.Bytes }

func (a *AM) buffer(i int) mem.Range { return a.memory.Slice(i*a.size, a.size) }

// post gives receive buffer i to the NIC.
func (a *AM) post(i int) error {
	a.recv[0] = transport.Recv{Buf: transport.SGE{Mem: a.buffer(i), LKey: a.key.LKey}, Cookie: a.base + uint64(i)}
	switch n, err := a.d.PostRecv(a.recv); {
	case err != nil:
		return fmt.Errorf("post message buffer %d of %d: %w", i, a.nRecv, err)
	case n != 1:
		return &transport.LimitError{
			What: fmt.Sprintf("the message buffers of a rank of %d", len(a.credits)), Found: fmt.Sprintf("a NIC with room for %d", i),
			Needed: strconv.Itoa(a.nRecv), Setting: "fewer ranks, fewer leases (PGAS_LEASES), or a NIC with longer receive queues (MaxRecv in the configuration of tcp and soft)",
		}
	}
	return nil
}

// Request sends a request over ep to rank to, unless there is no credit, no slot or no room in the NIC, or one that went over an older connection is still to be sent again: then ok is
// false and the caller tries again after some progress. payload is copied.
func (a *AM) Request(ep transport.EP, to int, handler uint8, args [4]uint64, payload []byte, cookie uint64) (ok bool, err error) {
	i, seq := a.take(ep, to, cookie, false)
	if i < 0 {
		return false, nil
	}
	buf := a.head(i, handler, seq, args, len(payload))
	copy(buf.Data()[headerBytes:], payload)
	a.op[i] = a.send(ep, buf, headerBytes+len(payload), uint64(a.nRecv+i))
	return a.begin(i)
}

// Gather is Request with a payload that the NIC takes from where it lies, behind the header from a buffer of this package: the NIC's Caps
// must have at least two pieces in a list. The memory is lent until the caller is told of the request's end, by Arrived, Again or Lost, or
// until ok is false (A5).
func (a *AM) Gather(ep transport.EP, to int, handler uint8, args [4]uint64, payload transport.SGE, cookie uint64) (ok bool, err error) {
	i, seq := a.take(ep, to, cookie, true)
	if i < 0 {
		return false, nil
	}
	buf := a.head(i, handler, seq, args, payload.Mem.Bytes)
	op := &a.op[i]
	*op = a.send(ep, buf, headerBytes, uint64(a.nRecv+i))
	op.NSGE, op.SGE[1] = 2, payload
	return a.begin(i)
}

// head writes the header of slot i's request with n bytes of payload, and returns the slot's buffer.
func (a *AM) head(i int, handler uint8, seq uint64, args [4]uint64, n int) mem.Range {
	buf := a.buffer(a.nRecv + i)
	h := header{kind: kindRequest, handler: handler, from: uint32(a.rank), slot: uint16(i), seq: seq, args: args, n: uint16(n)}
	h.encode(buf.Data())
	return buf
}

// begin posts slot i's request.
func (a *AM) begin(i int) (ok bool, err error) {
	// Outside the lock: a NIC may let time pass in Post, and others of this rank go on meanwhile.
	n, err := a.d.Post(a.op[i : i+1])
	if a.posted(i, n == 1 && err == nil) {
		return true, nil
	}
	return false, err
}

// send describes a message; its completion matters for its buffer only where it is a reply.
func (a *AM) send(ep transport.EP, buf mem.Range, n int, cookie uint64) transport.Op {
	op := transport.Op{Kind: transport.OpSend, Flags: transport.FlagSignaled, EP: ep, NSGE: 1, Cookie: a.base + cookie}
	op.SGE[0] = transport.SGE{Mem: buf.Slice(0, n), LKey: a.key.LKey}
	return op
}

// Owns reports whether a completion is this package's.
func (a *AM) Owns(c *transport.Completion) bool { return c.Cookie >= a.base }

// Arrived handles a completion that Owns. A reply to a request of this rank is returned; the caller uses it and then
// calls Release. An error is a failed request: its reply never comes. It wraps ErrLost, and transport.ErrPeerGone where the rank has ended.
func (a *AM) Arrived(c *transport.Completion) (r Reply, ok bool, err error) {
	i := int(c.Cookie - a.base)
	switch {
	case i < a.nRecv:
		return a.received(i, c)
	case i < a.nRecv+ownRequests:
		return a.requestSent(i-a.nRecv, c)
	default:
		return Reply{}, false, a.replySent(i-a.nRecv-ownRequests, c)
	}
}

// received handles a message.
func (a *AM) received(i int, c *transport.Completion) (Reply, bool, error) {
	if c.Status != transport.StatusOK {
		return Reply{}, false, nil // the domain is closing
	}
	buf := a.buffer(i).Data()
	h, err := decode(buf[:min(int(c.Bytes), a.size)])
	if err != nil {
		return Reply{}, false, errors.Join(err, a.post(i))
	}
	if h.kind == kindReply {
		r := Reply{Status: h.handler, Payload: buf[headerBytes : headerBytes+int(h.n)], buffer: i}
		switch a.finish(int(h.slot), h.seq, &r) {
		case answerEarly:
			return Reply{}, false, nil
		case answerStray:
			return Reply{}, false, a.post(i)
		}
		return r, true, nil
	}
	if !a.first(&h) {
		return Reply{}, false, a.post(i)
	}
	a.waiting = append(a.waiting, request{h, i, c.EP})
	return Reply{}, false, a.serve()
}

// serve answers requests as long as there are reply buffers. One comes free only when the NIC has reported that its
// reply is sent, and the next request of the same rank can be here before that.
func (a *AM) serve() error {
	var first error
	for len(a.waiting) > 0 && len(a.freeRep) > 0 {
		r := a.waiting[0]
		a.waiting = a.waiting[:copy(a.waiting, a.waiting[1:])]
		k := a.freeRep[len(a.freeRep)-1]
		a.freeRep = a.freeRep[:len(a.freeRep)-1]
		out, in := a.buffer(a.nRecv+ownRequests+k), a.buffer(r.buffer).Data()[headerBytes:]
		n, status := a.handler(Request{int(r.from), r.handler, r.args, in[:r.n]}, out.Data()[headerBytes:])
		h := header{kind: kindReply, handler: status, from: uint32(a.rank), slot: r.slot, seq: r.seq, n: uint16(n)}
		h.encode(out.Data())
		a.sent[k] = sentReply{rank: int(r.from), bytes: headerBytes + n}
		a.replies = append(a.replies, a.send(r.ep, out, headerBytes+n, uint64(a.nRecv+ownRequests+k)))
		if err := a.post(r.buffer); first == nil {
			first = err
		}
	}
	if err := a.Flush(); first == nil {
		first = err
	}
	return first
}

// Quiet reports whether no message of this rank is under way, none waits to be sent, and no request waits to be served: what comes next is a
// peer's. The poller asks.
func (a *AM) Quiet() bool {
	if len(a.freeRep) < a.nReply || len(a.held) > 0 { // who waits to be served, or to be sent, has no reply buffer, or has one
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.free) == len(a.slots)
}

// Spent gives the NIC the receive buffer again that a write with immediate of somebody else's has used up.
func (a *AM) Spent(c *transport.Completion) error { return a.post(int(c.Cookie - a.base)) }

// Flush posts replies that found no room before.
func (a *AM) Flush() error {
	if len(a.replies) == 0 {
		return nil
	}
	return a.flush()
}

func (a *AM) flush() error {
	for len(a.replies) > 0 {
		n, err := a.d.Post(a.replies)
		if err != nil {
			// The peer is gone, and so is its wish for an answer.
			a.freeRep = append(a.freeRep, int(a.replies[n].Cookie-a.base)-a.nRecv-ownRequests)
			n++
		} else if n == 0 {
			return nil
		}
		a.replies = a.replies[:copy(a.replies, a.replies[n:])]
	}
	return nil
}

// Release gives a reply's buffer back.
func (a *AM) Release(r Reply) error {
	if r.buffer < 0 {
		return nil
	}
	return a.post(r.buffer)
}
