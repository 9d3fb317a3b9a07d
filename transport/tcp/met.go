package tcp

// Where a peer's call has been accepted there is a connection at this side. That there is one at the peer's is known by its first word, which it says at once: the call may
// have been given up, and the peer may have ended, and the two look alike. So until then nobody is given the endpoint, of whose end nobody would be told. Who
// connects waits, and calls himself where the connection ends unsaid.

// meet says that the peer has spoken, or that the link has ended.
func (l *link) meet() {
	if !l.met.Swap(true) {
		close(l.known)
	}
}

// used reports whether the peer has spoken over the link, and that has not ended.
func (l *link) used() bool { return l.met.Load() && l.alive.Load() } // in this order: a link's end is the other way round

// await waits until it is known whether a link is used, and reports that; false where the domain is closed before.
func (d *domain) await(l *link) bool {
	select {
	case <-l.known:
	case <-d.ctx.Done():
	}
	return l.used()
}
