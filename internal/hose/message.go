package hose

import (
	"fmt"

	"gopgas/firehose"
	"gopgas/internal/mem"
)

// Kind is what a message about firehoses says.
type Kind uint8

// The kinds. The engine numbers its handlers by them, so their order is part of the wire format.
const (
	Ask       Kind = iota // a firehose.Move. Reply: a firehose.Reply, or nothing: then it comes by itself
	Answer                // a firehose.Reply
	Forget                // what the receiver holds of the sender's memory it must give up: see end.go
	Forgotten             // the sender holds nothing of the receiver's memory any more
	Kinds                 // how many there are
)

// Cookie marks the cookies of messages of Sets; the low bits are the kind and the rank asked.
const Cookie = 1 << 62

func cookieOf(k Kind, rank int) uint64 { return Cookie | uint64(k)<<32 | uint64(uint32(rank)) }

// saidTo is cookieOf's inverse.
func saidTo(cookie uint64) (k Kind, rank int) { return Kind(cookie >> 32), int(uint32(cookie)) }

// outgoing is a move, an answer that could not be given at once, or the end of both, on its way into a message.
type outgoing struct {
	rank  int
	kind  Kind
	bytes []byte
}

// sender is a Set as its Holder sees it.
type sender Set

// Move implements firehose.Mover. The caller holds the engine's lock, so the message is only written here, and sent by send.
func (s *sender) Move(rank int, m *firehose.Move) (bool, error) {
	s.asked[rank] = true
	s.out = append(s.out, outgoing{rank, Ask, m.Append(nil)})
	return true, nil
}

// Progress goes on with what could not be done at once. It is called by the poller, which waits for nothing.
func (h *Set) Progress() {
	if h.server.Late() {
		h.answerLate()
	}
	if h.work.Load() {
		h.send()
	}
}

// answerLate answers what the server has kept for later and can do now.
func (h *Set) answerLate() {
	for {
		var r firehose.Reply
		rank, m, ok := h.server.Resume(&r)
		if !ok {
			return
		}
		b := h.finish(&m, &r, nil)
		h.tell(rank, Answer, b)
	}
}

// tell has a message sent by the poller.
func (h *Set) tell(rank int, k Kind, b []byte) {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.out = append(h.out, outgoing{rank, k, b})
	h.work.Store(true)
}

// send sends what waits to be sent, as long as there is room. No lock is held while the NIC is at it.
func (h *Set) send() {
	h.lock.Lock()
	h.work.Store(h.holder.Send((*sender)(h)))
	left := len(h.out)
	for ; left > 0; left-- {
		o := h.out[0]
		h.out = h.out[1:]
		h.lock.Unlock()
		sent, err := h.nic.Send(o.rank, o.kind, o.bytes, cookieOf(o.kind, o.rank))
		if err != nil {
			h.failed(o.kind, o.rank, err)
		}
		h.lock.Lock()
		if !sent && err == nil {
			h.out = append(h.out, o) // their order does not matter
			h.work.Store(true)
		}
		left = min(left, len(h.out)+1) // others send too
	}
	h.lock.Unlock()
}

// Handle performs a message of a peer, and writes its reply, of n bytes, to out. ok is false where nobody can have sent
// such a thing. It may register memory, so it is called without a lock, and waits for nothing.
func (h *Set) Handle(k Kind, from int, payload, out []byte) (n int, ok bool) {
	if from < 0 || from >= h.size {
		return 0, false
	}
	switch k {
	case Ask:
		return h.serve(from, payload, out)
	case Answer:
		return 0, h.reply(from, payload) == nil
	case Forgotten:
		h.server.Lost(from)
	default:
		h.End(from, h.nic.Drop(from), h.unanswered)
	}
	return 0, true
}

// serve performs a move.
func (h *Set) serve(from int, payload, out []byte) (int, bool) {
	var m firehose.Move
	var reply firehose.Reply
	if m.Parse(payload) != nil {
		return 0, false
	}
	if !h.server.Serve(from, &m, &reply) {
		return 0, true
	}
	return len(h.finish(&m, &reply, out[:0])), true
}

// finish stores a move's put and appends the wire form of its answer to b.
func (h *Set) finish(m *firehose.Move, r *firehose.Reply, b []byte) []byte {
	if r.Stored {
		h.store(&m.Put)
	}
	return r.Append(b)
}

// store stores a move's put, whose bounds the Server has checked. Until it is over the memory is not withdrawn; if it has been, since the sender is gone, there is nobody
// to whom the put matters.
func (h *Set) store(p *firehose.Put) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if part, ok := h.parts[p.Range]; ok {
		h.nic.Store(part.Slice(int(p.Off), len(p.Data)), mem.Of(p.Data))
	}
}

// Answered takes in how a message of this rank's has ended: with err, or with a status, which is not 0 where it was
// refused, and a reply. That to a move may be empty, and its answer comes by itself.
func (h *Set) Answered(cookie uint64, status uint8, payload []byte, err error) {
	k, rank := saidTo(cookie)
	if err == nil && status != 0 {
		err = fmt.Errorf("%w: status %d", firehose.ErrMove, status)
	}
	if err == nil && k == Ask && len(payload) > 0 {
		err = h.reply(rank, payload)
	}
	if err != nil {
		h.failed(k, rank, err)
	}
}

func (h *Set) reply(rank int, b []byte) error {
	var r firehose.Reply
	if err := r.Parse(b); err != nil {
		return err
	}
	h.lock.Lock()
	defer h.lock.Unlock()
	h.work.Store(true)
	return h.holder.Reply(rank, &r)
}
