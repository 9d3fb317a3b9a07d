package nic

import "sync/atomic"

// What a peer does not wait for at present, as that this rank has come to a collective in which that one goes ahead, is said in time: with what this rank
// posts next. A post of its own may take as long as one that is waited for. It is not left behind:
//
//   - who waits for the NIC's ends, or for room, hurries it, and so does a second one;
//   - who looks for something else, as for a peer's flag, posts it at the last of some looks;
//   - who attends posts it when it has been held for one of his naps, and before he sleeps; he does not doze while there is some;
//   - where somebody waits, or who attends sleeps, it is posted at once.
//
// Who holds it back does so first and then looks for those; they say what they do and then look for what is held. So one of them sees the other.

// inTime is what is held back of which all is in no hurry.
type inTime struct {
	some     atomic.Bool   // there is some, whatever is held besides; written under later.mu
	count    atomic.Uint64 // how much there ever was; likewise
	patience atomic.Int32  // how many looks more leave all that is held to the next post
}

const patience = 32 // of tcp's looks, some 20 us

// SendInTime is SendLazy for an operation that nobody waits for soon: it goes with the next post, or within a few milliseconds.
func (n *NIC) SendInTime(name string, op *Laid) error {
	if n.hastener == nil || n.HeldBack() > 0 || n.postsAlone() {
		return n.SendLazy(name, op)
	}
	rank := int(op[0].EP.Index) // from its post on the operation may be somebody else's
	if !n.later.addInTime(op) {
		return n.SendLazy(name, op)
	}
	n.rouse()
	if n.postsAlone() && !n.push() {
		return n.WaitUntil(name, rank, n.push)
	}
	return nil
}

// postsAlone reports whether nobody looks soon for what is held back: who waits may sleep, or who attends does.
func (n *NIC) postsAlone() bool { return n.pollers.Load() > 0 || n.asleep.Load() }

// addInTime is add of what is in no hurry.
func (l *later) addInTime(op *Laid) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.addLocked(&op[0]) {
		return false
	}
	t := &l.inTime
	t.patience.Store(patience)
	t.count.Add(1)
	t.some.Store(true)
	return true
}

// hurry has what is held go with the next look.
func (t *inTime) hurry() {
	if t.patience.Load() > 0 {
		t.patience.Store(0)
	}
}

// ripe reports whether the present look is to post what is held.
func (t *inTime) ripe() bool { return t.patience.Load() <= 0 || t.patience.Add(-1) <= 0 }

// more reports whether anything was held in time since there had been so much, and notes how much there was.
func (t *inTime) more(since *uint64) bool {
	before := *since
	*since = t.count.Load()
	return *since != before
}

// postInTime posts what is held if some of it is in time, and reports whether there is none any more.
func (n *NIC) postInTime() bool { return !n.later.inTime.some.Load() || n.closed.Load() || n.push() }
