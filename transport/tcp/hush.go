package tcp

import "gopgas/internal/sched"

// While somebody polls without a pause for the end of his own operation he reads the answer himself. The reader of the link would be wakened for it all
// the same, and on a machine with a core for each rank that is the core on which the peer's reader is to take the next request. So for as long the
// poller has the system wake nobody for less than hushBytes on that link: SO_RCVLOWAT (socket(7)), which does not keep what is there from being read.
// What comes from the peer besides, such as requests, the poller reads as well. Who lingers does so for requests alone, and there it is two wake-ups that are spared:
// the reader's, and that of the wait for which the request may have been.

// hushBytes are more than members of a collective push to each other in a turn, and than a put of 1 MiB, flags included, and so little that the reader still helps with
// what is longer. The system may take less: half of what a socket may hold (tcp(7), tcp_rmem).
const hushBytes = 2 << 20

// Hush says how somebody polls; they are counted. When nobody does without a pause any more the reader is wakened for what the last look has not
// read: Linux looks for that when the limit changes (since 4.18; before, the peer's next frame wakes it, a fifth of the failure timeout later at most).
func (d *domain) Hush(how sched.Polling) {
	switch {
	case how == sched.Steadily:
		if d.hushers.Add(1) == 1 {
			d.lull.begin(d.sched.Now())
		}
	case d.hushers.Add(-1) > 0:
	case d.lull.ends(d.sched.Now()) && how == sched.NoMore && d.hushed.Load() != nil:
		d.lull.watch()
	default:
		d.unhush()
		d.handOn()
	}
}

// hush has the reader of l sleep, which the poller, who does not pause, is about to look at. One that has ended has nobody to keep asleep, and that for older
// endpoints not even a socket.
//
// The limit is set before l is known as hushed, and hushers are looked at after that: who ends Hush last meanwhile either finds l, or is seen.
func (d *domain) hush(l *link) {
	if d.hushed.Load() == l || !l.alive.Load() {
		return
	}
	_ = l.raw.Control(l.hushFn) // an error: the link has ended, of which its reader is told in any case
	if before := d.hushed.Swap(l); before != nil && before != l {
		_ = before.raw.Control(before.unhushFn)
	}
	if d.hushers.Load() == 0 {
		d.unhush()
	}
}

func (d *domain) unhush() {
	if l := d.hushed.Swap(nil); l != nil {
		_ = l.raw.Control(l.unhushFn)
	}
}
