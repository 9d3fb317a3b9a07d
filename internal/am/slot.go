package am

// slot is one unanswered request of this rank.
type slot struct {
	seq    uint32
	to     int
	cookie uint64
	bytes  int // of the message
	tries  int // how often it was sent again

	open    bool // the caller has yet to be told of its end
	posting bool // Request is still at it
	sending bool // the NIC has the message, or it is held to be sent again: its buffer is in use
}

// take opens a slot for a request to a rank and takes a credit; i is -1 where one of them is missing.
func (a *AM) take(to int, cookie uint64, bytes int) (i int, seq uint32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.credits[to] == 0 || len(a.free) == 0 {
		return -1, 0
	}
	i = a.free[len(a.free)-1]
	a.free = a.free[:len(a.free)-1]
	a.credits[to]--
	s := &a.slots[i]
	s.seq++
	s.to, s.cookie, s.bytes, s.tries = to, cookie, bytes, 0
	s.open, s.posting, s.sending = true, true, true
	return i, s.seq
}

// posted ends the posting of slot i's request and reports whether the caller will be told of its end: by its reply or its
// failure, or by Lost.
func (a *AM) posted(i int, taken bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &a.slots[i]
	s.posting = false
	refused := s.open && !taken
	if refused {
		s.open = false
		a.credits[s.to]++
	}
	if !taken {
		s.sending = false
	}
	a.freeLocked(i)
	return !refused
}

// closeLocked ends an open slot.
func (a *AM) closeLocked(i int) {
	a.slots[i].open = false
	a.freeLocked(i)
}

// freeLocked gives a slot back when the last of its flags has been cleared: by then nobody uses its buffer.
func (a *AM) freeLocked(i int) {
	if s := &a.slots[i]; !s.open && !s.posting && !s.sending {
		a.free = append(a.free, i)
	}
}

// Lost ends the requests to a rank that is gone, and returns the callers' cookies: no reply will come.
func (a *AM) Lost(rank int) []uint64 { return a.Drop(rank, 0) }

// Drop is Lost for the requests whose cookies have all bits of mask. What is on its way may arrive still, but is not
// sent again.
func (a *AM) Drop(rank int, mask uint64) []uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	var cookies []uint64
	for i := range a.slots {
		if s := &a.slots[i]; s.open && s.to == rank && s.cookie&mask == mask {
			a.credits[rank]++ // it may come back
			a.closeLocked(i)
			cookies = append(cookies, s.cookie)
		}
	}
	return cookies
}

// finish closes a slot and returns its cookie.
func (a *AM) finish(i int, seq uint32) (cookie uint64, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &a.slots[i]
	if !s.open || s.seq != seq {
		return 0, false
	}
	a.closeLocked(i)
	a.credits[s.to]++
	return s.cookie, true
}
