package tcp

import "time"

// A long payload comes in segments of 64 KiB, and the system wakes the reader for each: on a machine with a core for each rank that is a thread of the target
// that gets up, reads what the origin sends meanwhile on the other core, and lies down again, up to sixteen times for 1 MiB. So before the reader sleeps in the midst of
// a long payload it has itself wakened for a gulp of it, by the limit that hush.go sets, too. Who polls while a peer puts leaves some time between two looks: a look takes
// the socket's lock, for which the system's half of the sender waits.
const (
	gulpLeast = 64 << 10              // bytes; what is shorter may be there at once, and comes in one segment
	gulpMost  = 256 << 10             // of which the last is read when nothing more comes, beside nobody
	sipRest   = 128 << 10             // from so many bytes still to come on
	sipTime   = 15 * time.Microsecond // passes between two looks of who polls
)

// gulpOf is for how many bytes the reader is wakened where so many are to come.
func gulpOf(left int) int32 {
	if left <= gulpLeast {
		return 1
	}
	return int32(min(left, gulpMost))
}

// sip is called by who has read and holds rmu: a gulp is never more than what is to come. Only the reader that goes to sleep makes it larger.
//
// What is wanted is known before hushed is looked at. Who ends a hush does it the other way round, so the one or the other sets the limit; both do it under a lock,
// with what is wanted then.
func (l *link) sip(fd int, sleeps bool) {
	want := int32(1)
	if l.in.mode != toNowhere {
		want = gulpOf(l.in.left)
	}
	have := l.gulp.Load()
	if want == have || want > have && !sleeps {
		return
	}
	l.wakeFor(fd, want)
}

// wakeFor has the system wake the reader for so many bytes, once the link is not hushed.
func (l *link) wakeFor(fd int, bytes int32) {
	l.gulp.Store(bytes)
	if l.d.hushed.Load() != l {
		l.wakeForGulp(fd)
	}
}

// wakeForGulp has the system wake the reader for a gulp.
func (l *link) wakeForGulp(fd int) {
	l.gulping.Lock()
	_ = lowWater(fd, int(l.gulp.Load())) // an error: the link has ended, of which its reader is told in any case
	l.gulping.Unlock()
}

// rests reports whether who polls may leave the link alone for now, since he has looked just now and much of what a peer puts is still to come. What he has asked
// for himself he reads as it comes. The caller holds rmu.
func (l *link) rests() bool {
	in := &l.in
	if in.left < sipRest || in.mode == toReader {
		return false
	}
	now := l.d.sched.Now()
	if now < in.looked+sipTime {
		return true
	}
	in.looked = now
	return false
}
