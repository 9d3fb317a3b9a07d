package rpc

import (
	"bytes"
	"sync"
	"sync/atomic"

	"gopgas/internal/mem"
)

// inlet is what comes from one member. But for head it is of whoever serves.
type inlet struct {
	head    atomic.Uint64 // words taken
	told    uint64        // of these, what the member knows
	parts   []byte        // of a message whose last piece has not come
	group   *group        // the messages without an answer that came since the last flush
	flushes flushes       // also of who answers them
}

// take performs what has come from a member until now.
func (s *Service) take(member int) {
	in := &s.inlets[member]
	head, tail := in.head.Load(), s.tails[member].Load()
	from := s.from(member)
	s.due(member, head) // a function may have ended its goroutine before that
	for head != tail && !s.closed.Load() {
		at := int(head & uint64(s.ring-1))
		words := s.local[from+at : from+s.ring]
		h := headerOf(words[0], 0)
		if h.kind == skip {
			head += uint64(len(words))
			in.head.Store(head)
			continue
		}
		h = headerOf(words[0], words[1])
		body := mem.Of(words[headerWords:size(h.bytes)]).Data()[:h.bytes]
		head += uint64(size(h.bytes))
		in.head.Store(head) // first: a function that ends its goroutine is not called again. The member may write there when it is told
		if h.first {
			in.parts = nil // its sender has given up what has come of another one
		}
		switch {
		case !h.last:
			if in.parts == nil {
				in.parts = make([]byte, 0, h.id)
			}
			in.parts = append(in.parts, body...)
		case in.parts != nil:
			whole := append(in.parts, body...)
			in.parts = nil
			s.perform(member, h, whole, true)
		default:
			s.perform(member, h, body, false)
		}
		s.due(member, head)
	}
}

// due tells a member how far its messages were taken when that is a quarter of the ring more than it knows.
func (s *Service) due(member int, head uint64) {
	if head-s.inlets[member].told >= uint64(s.ring/pieceShare) && !s.closed.Load() { // a function may have taken longer than leave waits
		s.tell(member, head)
	}
}

// tell lets a member know how far its messages were taken.
func (s *Service) tell(member int, head uint64) {
	s.inlets[member].told = head
	// Who is gone need not know.
	_ = s.marks.Signal(s.team.Size()+s.team.Rank()).Set(member, head)
	s.wake(member)
}

// perform does what a message asks for. owned says that nobody else uses body.
func (s *Service) perform(member int, h header, body []byte, owned bool) {
	switch h.kind {
	case answer, failure:
		s.answered(h.id, body, owned, h.kind == failure)
	case flush:
		s.flushed(member, h.id)
	case call, send:
		r := request{s: s, from: member, id: h.id, answers: h.kind == call}
		if !r.answers {
			r.group = s.inlets[member].open()
		}
		f := s.funcs[h.fn]
		if f.inTurn() {
			f.serve(s.inTurn, r, body, nil)
			return
		}
		if !owned {
			body = bytes.Clone(body)
		}
		r.visit = &visit{Context: s.ctx, s: s, sent: member == s.team.Rank() && !r.answers}
		s.assign(f.span(), func(of *span) { f.serve(r.visit, r, body, of) })
	}
}

// request is one call that came from another rank.
type request struct {
	s       *Service
	from    int
	id      uint64
	answers bool
	group   *group // without an answer: of which it is
	visit   *visit // not in turn
}

// end sends the result, or the error in its place, or keeps the error until somebody asks.
func (r request) end(result []byte, err error) {
	if r.visit != nil {
		r.visit.over.Store(true)
	}
	if !r.answers {
		r.group.end(err)
		r.s.team.Engine().Sched.Ring()
		return
	}
	m := message{kind: answer, id: r.id, payload: result}
	if err != nil {
		m.kind, m.payload = failure, []byte(err.Error())
	}
	// Who is gone waits for nothing. To who lives it is brought sooner or later.
	_ = r.s.lanes[r.from].post(m)
}

// group is the messages without an answer that came from a member between two flushes. A nil one has none.
type group struct {
	left atomic.Int64
	err  atomic.Pointer[error] // the first, until somebody was told
}

func (in *inlet) open() *group {
	if in.group == nil {
		in.group = new(group)
	}
	in.group.left.Add(1)
	return in.group
}

func (g *group) end(err error) {
	if err != nil {
		g.fail(err)
	}
	g.left.Add(-1)
}

func (g *group) fail(err error) { g.err.CompareAndSwap(nil, &err) }

// over reports whether all of the group have ended.
func (g *group) over() bool { return g == nil || g.left.Load() == 0 }

// close returns the first error of a group that is over.
func (g *group) close() error {
	if g == nil {
		return nil
	}
	if err := g.err.Load(); err != nil {
		return *err
	}
	return nil
}

// asked is a member's flush, and the messages between it and the one before.
type asked struct {
	request
	of *group
}

func (a asked) answer() { a.end(nil, a.of.close()) }

// flushes are those of a member that have not been answered, in order: who has answered one knows that all before it is done. A member may make any number, since their contexts end.
type flushes struct {
	mu    sync.Mutex
	queue []asked
}

// add puts one at the end, and reports whether it is alone.
func (f *flushes) add(a asked) (alone bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue = append(f.queue, a)
	return len(f.queue) == 1
}

// first returns the oldest one.
func (f *flushes) first() asked {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.queue[0]
}

// drop takes the oldest one out, and reports whether others are behind it.
func (f *flushes) drop() (more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue[0] = asked{}
	if f.queue = f.queue[1:]; len(f.queue) == 0 {
		f.queue = nil
	}
	return f.queue != nil
}

// none reports whether all have been answered.
func (f *flushes) none() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.queue) == 0
}

// flushed answers a member when all that it sent before has been done.
func (s *Service) flushed(member int, id uint64) {
	in := &s.inlets[member]
	a := asked{request{s: s, from: member, id: id, answers: true}, in.group}
	in.group = nil
	if a.of.over() && in.flushes.none() {
		a.answer()
		return
	}
	if in.flushes.add(a) {
		s.beside(func() { s.answerFlushes(&in.flushes) })
	}
}

// answerFlushes answers a member's flushes, one after the other, until there are no more.
func (s *Service) answerFlushes(f *flushes) {
	for more := true; more; more = f.drop() {
		a := f.first()
		if s.await(s.ctx, "flush", s.team.Rank(), a.of.over) != nil {
			return // the service has ended
		}
		a.answer()
	}
}
