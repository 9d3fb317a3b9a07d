package tcp

import "gopgas/transport"

// A target acknowledges what a peer waits for: a system call of its own, where everything else that it says carries the same word along. For a flag in its memory
// that word is no hurry: mostly the target's program waits for the flag, and says something as soon as it has it. So the target is not asked to answer a lazy
// request, and says how far it is with the next frame, whatever that is for, with the answer to a later request, or when it is asked after all (Hasten).

// Hasten has the peer of an endpoint say what it has done, if there is anything that it was not asked to answer. It does not wait.
func (d *domain) Hasten(ep transport.EP) {
	l := d.linkOf(ep)
	if l.lazy.Load() == 0 {
		return
	}
	l.mu.Lock()
	for k := l.done; k < l.tail; k++ {
		if s := &l.ring[k%uint64(len(l.ring))]; s.op.Flags&transport.FlagLazy != 0 {
			s.op.Flags &^= transport.FlagLazy // what is not sent yet asks for its answer itself
			l.lazy.Add(-1)
		}
	}
	if l.state == stateUp && l.done < l.unasked && l.wanted < l.unasked {
		l.wanted, l.askDue = l.unasked, true
		l.flushLocked()
	}
	l.mu.Unlock()
	l.announce()
}

// leaveRingLocked frees the place of a request that is over.
func (l *link) leaveRingLocked(s *slot) {
	if s.op.Flags&transport.FlagLazy != 0 {
		l.lazy.Add(-1)
	}
	*s = slot{}
}
