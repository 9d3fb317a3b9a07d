package sched

import (
	"sync/atomic"
	"time"

	"gopgas/internal/invariants"
)

// A NIC of software wakes a thread of this rank for what a peer asks, and that thread wakes who waits asleep, since it may be what he waits for. Both
// have to get up, on the core where the next request would be performed. So a wait that yields or sleeps goes over to looking for requests itself,
// without a pause, as long as one comes soon after another: it lingers. What that takes is the wait's own time, and at most lingerFor of it
// behind the last request: as much as a few threads take to get up.
//
// Nobody lingers where ranks share cores, and of the waits of a rank only one does: more would keep each other from the processors.

// Server is implemented by the domains of NICs whose requests are performed by threads of this rank, waits among them.
type Server interface {
	Hushable
	// Performed changes whenever something was performed that a peer has asked for, and with each part of something long that comes from one.
	Performed() uint64
}

const (
	lingerFor  = 50 * time.Microsecond
	lingerSoon = 4 * lingerFor // how soon after another a request has to come: of requests that come no more often lingering would take a core's quarter
)

// lingering is what the waits of a rank know of the requests of its peers.
type lingering struct {
	taken atomic.Bool // some wait looks at what is below, or lingers
	until time.Duration
	seen  uint64        // what the NIC had performed when somebody last looked
	came  time.Duration // when that had become more
}

// look takes in what was performed until now, and returns until when to linger: no longer than until now where nothing has come soon after another.
func (l *lingering) look(performed uint64, now time.Duration) time.Duration {
	if performed != l.seen {
		if now-l.came < lingerSoon {
			l.until = now + lingerFor
		}
		l.seen, l.came = performed, now
	}
	return l.until
}

// warm reports whether requests come one soon after another, before anything was waited for: who then waits for what a peer writes looks for that himself
// at once.
func (sp *Spin) warm() bool {
	help := sp.s.help.Load()
	if help == nil || help.server == nil || !sp.s.lingering.taken.CompareAndSwap(false, true) {
		return false
	}
	now := sp.s.Now()
	warm := now < sp.s.lingering.look(help.server.Performed(), now)
	sp.s.lingering.taken.Store(false)
	return warm
}

// lingers is asked in each slow step and reports whether the wait is to go on without a pause.
func (sp *Spin) lingers(server Server, now time.Duration) bool {
	l := &sp.s.lingering
	if server == nil || sp.s.crowded() || !sp.lingering && !l.taken.CompareAndSwap(false, true) {
		return false
	}
	sp.lingering = true
	if now >= l.look(server.Performed(), now) || invariants.Sometimes(1) {
		sp.leave(Seldom)
		return false
	}
	if sp.armed { // nobody needs to ring
		sp.s.bell.Load().Disarm()
		sp.armed, sp.park = false, parkFirst
	}
	if now-sp.moved >= sp.s.yields {
		sp.list()
	}
	if now-sp.turned >= TurnLasts {
		sp.unhush(Seldom) // others have the turn
		sp.turned = now
		sp.s.giveTurn(now)
	}
	sp.hush(server)
	return true
}

// leave ends what lingers has begun.
func (sp *Spin) leave(how Polling) {
	if sp.lingering {
		sp.lingering = false
		sp.unhush(how)
		sp.s.lingering.taken.Store(false)
	}
}
