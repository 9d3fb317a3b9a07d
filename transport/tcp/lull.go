package tcp

import (
	"sync/atomic"
	"time"
)

// Who waits again and again, a few microseconds apart, as in a row of barriers, would have the reader wakened for whatever comes between two waits, and set the
// limit of the socket twice for each. So behind a wait that was short, and began soon after the one before, the link stays hushed: a lull. A guard has
// the reader wakened again when it finds that nobody has polled for lullTick. Each time that it looks some threads get up, so in a lull that lasts it looks more seldom. Peers'
// requests may wait for lullTick and lullLongest behind the last of such waits.
const (
	lullBrief   = 500 * time.Microsecond // so short are the waits, and so soon do they follow each other: those of a collective's parts of 256 KiB, too
	lullTick    = 200 * time.Microsecond // how soon the guard looks
	lullLongest = 400 * time.Microsecond // how seldom, at most
)

// lull is what is known of the waits of a rank. Any goroutine may use it.
type lull struct {
	begun, ended atomic.Int64  // when somebody began to poll while nobody did, and nobody did any more, the last time
	waits        atomic.Uint64 // how often the former
	soon         atomic.Bool   // that was soon after the latter
	guarded      atomic.Bool   // the guard is awake, and looks before it sleeps
	bell         chan struct{} // wakes it
}

// begin says that somebody polls, where nobody did.
func (l *lull) begin(now time.Duration) {
	l.waits.Add(1)
	l.begun.Store(int64(now))
	l.soon.Store(now-time.Duration(l.ended.Load()) < lullBrief)
}

// ends says that nobody polls any more, and reports whether somebody is likely to be back soon.
func (l *lull) ends(now time.Duration) (back bool) {
	l.ended.Store(int64(now))
	return l.soon.Load() && now-time.Duration(l.begun.Load()) < lullBrief
}

// over reports whether nobody has begun to poll since there were seen waits, or nobody does, and has not for lullTick.
func (l *lull) over(seen uint64, polls bool, now time.Duration) bool {
	return seen == l.waits.Load() || !polls && now-time.Duration(l.ended.Load()) >= lullTick
}

// watch has the guard awake.
func (l *lull) watch() {
	if !l.guarded.Load() && l.guarded.CompareAndSwap(false, true) {
		l.bell <- struct{}{}
	}
}

// guard ends lulls until the domain is closed.
//
// It says that it sleeps before it looks whether somebody polls; who leaves a link hushed says that he polls no more before he looks whether the guard is awake. So
// either it finds him gone, or he wakes it.
func (d *domain) guard() {
	l := &d.lull
	for {
		select {
		case <-d.ctx.Done():
			return
		case <-l.bell:
		}
		for tick, over := lullTick, false; !over; tick = min(2*tick, lullLongest) {
			seen := l.waits.Load()
			if d.sched.Sleep(d.ctx, tick) != nil {
				return
			}
			over = l.over(seen, d.hushers.Load() > 0, d.sched.Now())
		}
		l.guarded.Store(false)
		if d.hushers.Load() == 0 {
			d.unhush()
			d.handOn()
		}
	}
}
