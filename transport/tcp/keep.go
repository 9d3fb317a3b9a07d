package tcp

import (
	"net"
	"time"
)

// ticks is how many ticks a peer may be silent, and a link may take to die.
const ticks = 5

// keep looks after the links: peers that say nothing, sockets that take nothing, links that do not die.
func (d *domain) keep() {
	var links []*link
	for d.sched.Sleep(d.ctx, d.cfg.FailureTimeout/ticks) == nil {
		links = links[:0]
		d.mu.Lock()
		for l := range d.all {
			links = append(links, l)
		}
		d.mu.Unlock()
		for _, l := range links {
			l.tick()
		}
		clear(links)
	}
}

// tick is one fifth of the failure timeout.
func (l *link) tick() {
	if !l.heard.Load() && l.gulp.Load() > 1 {
		_ = l.raw.Control(func(fd uintptr) { l.wakeFor(int(fd), 1) }) // over a slow network it may take longer until there is a gulp
	}
	l.mu.Lock()
	switch {
	case l.state != stateUp:
		if l.age++; l.age >= ticks {
			l.endLocked(endCut)
		}
	case l.silentTooLong() || l.stuckTooLong():
		l.endLocked(endGone)
	case !l.wrote:
		l.aliveDue = true
		l.flushLocked()
	}
	l.wrote = false
	l.mu.Unlock()
	l.announce()
}

func (l *link) silentTooLong() bool {
	if l.heard.Swap(false) {
		l.silent = 0
		return false
	}
	l.silent++
	return l.silent >= ticks
}

func (l *link) stuckTooLong() bool {
	if l.cur.empty() || l.wrote {
		l.stuck = 0
		return false
	}
	l.stuck++
	return l.stuck >= ticks
}

// setDeadline bounds a handshake.
func setDeadline(c net.Conn, d time.Duration) error { return c.SetDeadline(time.Now().Add(d)) }

// setListenDeadline bounds the next Accept; 0: no more.
func setListenDeadline(l *net.TCPListener, d time.Duration) error {
	if d == 0 {
		return l.SetDeadline(time.Time{})
	}
	return l.SetDeadline(time.Now().Add(d))
}

func clearDeadline(c net.Conn) error { return c.SetDeadline(time.Time{}) }
