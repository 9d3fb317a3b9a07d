package rpc

import (
	"sync/atomic"
	"time"

	"gopgas/internal/sched"
)

// A function that is not called in turn has a goroutine of its own, since it may wait. But to start one takes more than most functions do: the runtime wakes a thread for it, which over a NIC
// takes the processor from those that bring the messages. So who serves calls one that was over soon so far by himself, where no other message waits, and a relief takes his
// place where it is not over soon this time: when it finds the same call twice.
const (
	hereMost    = 10 * time.Microsecond // who takes longer has a goroutine for some calls
	hereSkips   = 256                   // so many, and twice as many where the next try takes as long
	hereSkipMax = 1 << 20
	reliefLook  = time.Millisecond
)

// span is what is known of how long a function's calls take.
type span struct{ skip, skips atomic.Int64 }

// soon reports whether a call is likely to be over soon. Of who serves.
func (p *span) soon() bool { return p.skip.Load() <= 0 || p.skip.Add(-1) < 0 }

// begin has the calls that come before the end of one which who serves makes be made by others.
func (p *span) begin() { p.skip.Store(p.more()) }

// over says how long a call took that who serves has made.
func (p *span) over(took time.Duration) {
	next := int64(0)
	if took > hereMost {
		next = p.more()
	}
	p.skips.Store(next)
	p.skip.Store(next)
}

// more is how many calls have goroutines behind one that lasts.
func (p *span) more() int64 { return min(max(hereSkips, 2*p.skips.Load()), hereSkipMax) }

// job is a call that who serves makes himself, when he has left the looking to others.
type job struct {
	of   *span
	call func(of *span) // of a goroutine of its own: nil
}

func (j job) beside() { j.call(nil) }

// assign has a call be made: by who serves, if it is he that looks and it is likely to be over soon, unless another one comes; else by a goroutine of its own.
func (s *Service) assign(of *span, call func(of *span)) {
	if before := s.takeJob(); before != nil { // there is more to do than one call
		s.goes(before.beside)
	}
	s.running.Add(1)
	if s.server == nil || !of.soon() {
		s.goes(job{call: call}.beside)
		return
	}
	s.job = &job{of, call}
}

// takeJob takes out what was left to who serves.
func (s *Service) takeJob() *job {
	j := s.job
	s.job = nil
	return j
}

// relief is what it takes to take the place of who serves.
type relief struct {
	made  atomic.Uint64 // jobs begun
	at    atomic.Uint64 // the job that goes on, by its number; 0: none
	awake atomic.Bool   // it looks, or will
	bell  sched.Seat    // wakes it
}

// server is who serves.
type server struct {
	s              *Service
	relieved, over bool
}

// end says that nobody serves any more, or has somebody else do it where a function has ended the goroutine.
func (v *server) end() {
	switch s := v.s; {
	case v.relieved:
	case !v.over:
		s.goServe()
	default:
		s.gone.Store(true)
		s.team.Engine().Sched.Ring()
	}
}

// do makes a call; a relief may take this server's place meanwhile.
func (v *server) do(j *job) {
	s := v.s
	w := &s.relief
	n := w.made.Add(1)
	w.at.Store(n)
	if s.ctx.Err() != nil && w.at.CompareAndSwap(n, 0) { // the relief may have gone
		s.goes(j.beside)
		return
	}
	if !w.awake.Load() && w.awake.CompareAndSwap(false, true) {
		w.bell.Rouse()
	}
	j.of.begin()
	defer func() { // the function may end the goroutine
		v.relieved = !w.at.CompareAndSwap(n, 0)
		s.ran()
	}()
	j.call(j.of)
}

// relieve looks for calls that last until the service ends, and has somebody else serve then. While there are some it looks often.
func (s *Service) relieve() {
	w, naps := &s.relief, sched.NewNaps()
	for s.ctx.Err() == nil {
		w.bell.Doze(s.ctx)
		for at, made := uint64(0), uint64(0); s.ctx.Err() == nil && w.awake.Load(); {
			naps.Sleep(s.ctx, reliefLook)
			switch last, before := at, made; {
			case w.look(&at, &made) && at == last && w.at.CompareAndSwap(at, 0):
				s.goServe()
			case at == 0 && made == before:
				w.awake.Store(false)
				if w.made.Load() != made { // it may have been found awake
					w.awake.Store(true)
				}
			}
		}
	}
	if at := w.at.Load(); at != 0 && w.at.CompareAndSwap(at, 0) { // nobody is to wait for the end of that
		s.gone.Store(true)
		s.team.Engine().Sched.Ring()
	}
}

// look takes in which call goes on, and how many were begun. It reports whether one goes on.
func (w *relief) look(at, made *uint64) bool {
	*at, *made = w.at.Load(), w.made.Load()
	return *at != 0
}
