package rpc

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// message is what a lane brings to its member.
type message struct {
	kind    kind
	fn      int
	id      uint64
	payload []byte
	laid    int // bytes of the payload that are in the ring
}

// messageBytes is what a message that waits takes beside its payload, about.
const messageBytes = 80

// kept is how many bytes a message takes that waits.
func (m *message) kept() int64 { return messageBytes + int64(len(m.payload)) }

// lane brings messages of this rank to one member's ring, in order. One goroutine at a time lays them there; what finds no room, or somebody else at it, is
// kept in a queue that is laid by whoever looks for messages next.
type lane struct {
	s        *Service
	member   int
	brought  atomic.Int64 // when something was put last, ns
	busy     atomic.Bool
	tail     atomic.Uint64 // words laid; of who is busy
	buf      []uint64      // a piece; likewise
	waits    atomic.Int64
	bytes    atomic.Int64 // of what waits
	mu       sync.Mutex
	queue    []*message
	again    atomic.Int64  // an answer in it could not be brought, and is tried again from here on, ns
	sent     atomic.Uint64 // messages that nobody answers, and how many of them a flush was behind
	flushed  atomic.Uint64
	failed   atomic.Pointer[error] // the first error of those, until somebody was told
	question *question             // Quiesce's flush
}

// fail keeps an error, one that a flush was told or why a message was not brought.
func (l *lane) fail(err error) { l.failed.CompareAndSwap(nil, &err) }

// failure returns the error that was kept, once.
func (l *lane) failure() error {
	if l.failed.Load() == nil {
		return nil
	}
	if err := l.failed.Swap(nil); err != nil {
		return *err
	}
	return nil
}

// post brings m, or keeps a copy of it to bring later. It does not wait.
func (l *lane) post(m message) error {
	if err := l.s.usable(l.member); err != nil {
		return err
	}
	if m.kind == send && l.gathers() {
		l.keep(m, false)
		return nil
	}
	laid := false
	if l.waits.Load() == 0 && l.busy.CompareAndSwap(false, true) {
		var err error
		if l.waits.Load() == 0 {
			laid, err = l.lay(&m)
		}
		if err != nil && l.later(&m) {
			laid, err = false, nil
		}
		if !laid && err == nil {
			l.keep(m, true) // before what others have kept meanwhile: some pieces may have gone
			laid = true
		}
		l.busy.Store(false)
		if err != nil {
			return err
		}
	}
	if !laid {
		l.keep(m, false)
	}
	l.drain() // what somebody has kept while this goroutine was busy, too
	return nil
}

// gatherFor is how long behind a put over a NIC, which takes far longer than a message needs to be kept, messages without an answer are kept for the next one: it is made by whoever looks
// for messages, or by the first message after that time.
const gatherFor = 50 * time.Microsecond

// mapped reports whether the member's memory is.
func (l *lane) mapped() bool { return l.s.door.others[l.member].attended != nil }

// gathers reports whether a message is kept for others to go with it.
func (l *lane) gathers() bool {
	sc := l.s.team.Engine().Sched
	return !l.mapped() && !sc.Virtual() && sc.Now()-time.Duration(l.brought.Load()) < gatherFor
}

func (l *lane) keep(m message, first bool) {
	m.payload = bytes.Clone(m.payload)
	l.mu.Lock()
	defer l.mu.Unlock()
	if first {
		l.queue = slices.Insert(l.queue, 0, &m)
	} else {
		l.queue = append(l.queue, &m)
	}
	l.bytes.Add(m.kept())
	l.waits.Add(1)
	l.s.backlog.Add(1)
}

// againPause is how long an answer rests that could not be brought.
const againPause = time.Millisecond

// later reports whether a message that could not be brought is tried again, from its beginning: who waits for an answer hears of nothing else, and for want of descriptors, say, it is not
// lost. Of who is busy.
func (l *lane) later(m *message) bool {
	if m.kind != answer && m.kind != failure || l.refused() != nil {
		return false
	}
	m.laid = 0
	l.again.Store(int64(l.s.team.Engine().Sched.Now() + againPause))
	return true
}

// rests reports whether it is too early to try again.
func (l *lane) rests() bool { return int64(l.s.team.Engine().Sched.Now()) < l.again.Load() }

// drain lays what waits as far as there is room, short messages many at once, and reports whether any was laid. Where that fails who waits for those messages is told.
func (l *lane) drain() (moved bool) {
	full, err := false, error(nil)
	for !full && err == nil && l.waits.Load() != 0 && !l.rests() && l.busy.CompareAndSwap(false, true) {
		for !full && err == nil && l.waits.Load() != 0 {
			var b block
			n := 0
			for m := l.nth(0); m != nil && l.room(&b, m); m = l.nth(n) {
				if l.add(&b, m) {
					n++
				}
			}
			if full = b.words == 0; full {
				err = l.refused()
			} else {
				err, moved = l.bring(b), true
			}
			if err == nil {
				l.drop(n)
			} else {
				l.undone(err)
			}
		}
		l.busy.Store(false)
	}
	return moved
}

// undone takes all that waits out, and tells who waits for it that it has not been brought: the member is gone, or the service has ended, or this rank lacks what a connection takes. Answers stay
// in the last case. Of who is busy.
func (l *lane) undone(err error) {
	for _, m := range l.takeOut() {
		switch m.kind {
		case call, flush:
			l.s.undone(m.id, err)
		case send:
			l.fail(&unsentError{err})
		}
	}
}

// takeOut takes out what waits and is not tried again. Of who is busy.
func (l *lane) takeOut() (out []*message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = slices.DeleteFunc(l.queue, func(m *message) bool {
		if l.later(m) {
			return false
		}
		out = append(out, m)
		l.bytes.Add(-m.kept())
		return true
	})
	l.waits.Add(-int64(len(out)))
	l.s.backlog.Add(-int64(len(out)))
	return out
}

// unsentError is why a message without an answer was not brought.
type unsentError struct{ error }

func (e *unsentError) Error() string { return "send: " + e.error.Error() }

func (e *unsentError) Unwrap() error { return e.error }

// nth returns the message with n others before it, nil: there are no more. Of who is busy.
func (l *lane) nth(n int) *message {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n >= len(l.queue) {
		return nil
	}
	return l.queue[n]
}

// drop takes the first n messages out.
func (l *lane) drop(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.queue[:n] {
		l.bytes.Add(-l.queue[i].kept())
		l.queue[i] = nil
	}
	if l.queue = l.queue[n:]; len(l.queue) == 0 {
		l.queue = nil
	}
	l.waits.Add(-int64(n))
	l.s.backlog.Add(-int64(n))
}

// roomy reports whether what waits could be laid on, for whom a longer piece than the next may stand in its place. Who is busy may have found no room, and not have said yet
// that he goes: who would sleep looks again. In virtual time nothing comes between the two.
func (l *lane) roomy() bool {
	if l.waits.Load() == 0 || l.rests() {
		return false
	}
	if l.busy.Load() {
		return !l.s.team.Engine().Sched.Virtual()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		return false
	}
	words := size(min(len(l.queue[0].payload), pieceBytes(l.s.ring)))
	_, _, ok := place(l.s.ring, l.tail.Load(), l.s.heads[l.member].Load(), words)
	return ok || l.s.usable(l.member) != nil || l.s.hasLeft(l.member)
}

// next is how many bytes of m the next piece has.
func (l *lane) next(m *message) int { return min(len(m.payload)-m.laid, pieceBytes(l.s.ring)) }

// lay puts pieces of m into the ring while there is room, and reports whether that was all. Of who is busy.
func (l *lane) lay(m *message) (all bool, err error) {
	for !all && err == nil {
		var b block
		if !l.room(&b, m) {
			return false, l.refused()
		}
		all = l.add(&b, m)
		err = l.bring(b)
	}
	return all, err
}

// block is pieces, one behind the other in a lane's buffer, that go to one place of the ring in one put.
type block struct {
	at, skipped int
	words, most int
}

// room reports whether m's next piece has room in a block, to which an empty one is given its place. Of who is busy.
func (l *lane) room(b *block, m *message) bool {
	words := size(l.next(m))
	if b.words > 0 {
		return b.words+words <= b.most
	}
	if l.s.closed.Load() || l.s.hasLeft(l.member) { // who ends the service waits for who is busy
		return false
	}
	tail, head := l.tail.Load(), l.s.heads[l.member].Load()
	at, skipped, ok := place(l.s.ring, tail, head, words)
	b.at, b.skipped = at, skipped
	if l.buf == nil {
		l.buf = make([]uint64, headerWords+pieceBytes(l.s.ring)/8)
	}
	b.most = min(l.s.ring-at, l.s.ring-int(tail-head)-skipped, len(l.buf))
	return ok
}

// refused returns why nothing is laid, where that is not for want of room. Of who is busy.
func (l *lane) refused() error {
	if err := l.s.usable(l.member); err != nil || !l.s.hasLeft(l.member) {
		return err
	}
	return transport.NewOpError("call", l.s.team.WorldRank(l.member), transport.ErrClosed)
}

// add writes m's next piece behind a block's last one, and reports whether it was m's last.
func (l *lane) add(b *block, m *message) (last bool) {
	n := l.next(m)
	h := header{kind: m.kind, first: m.laid == 0, last: m.laid+n == len(m.payload), fn: m.fn, bytes: n, id: m.id}
	if !h.last {
		h.id = uint64(len(m.payload))
	}
	piece := l.buf[b.words : b.words+size(n)]
	piece[0], piece[1] = h.words()
	copy(mem.Of(piece[headerWords:]).Data(), m.payload[m.laid:m.laid+n])
	m.laid += n
	b.words += len(piece)
	return h.last
}

// bring puts a block into the ring and lets the member know.
func (l *lane) bring(b block) error {
	s := l.s
	me := s.team.Rank()
	if b.skipped > 0 {
		first, _ := header{kind: skip}.words()
		if err := s.rings.Put(l.member, s.from(me)+s.ring-b.skipped, []uint64{first}); err != nil {
			return err
		}
	}
	tail := l.tail.Load() + uint64(b.skipped+b.words)
	if err := s.rings.PutSignal(l.member, s.from(me)+b.at, l.buf[:b.words], s.tails[me], tail); err != nil {
		return err
	}
	l.tail.Store(tail)
	s.wake(l.member)
	if !l.mapped() {
		l.brought.Store(int64(s.team.Engine().Sched.Now()))
	}
	return nil
}
