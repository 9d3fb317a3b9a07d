package tcp

import "context"

// Rejoin is for package nic, which looks for whose domains can do that (nic/seek.go). It makes the connection with a rank again that has ended without the end of the peer: by a
// request that was refused, say. The side that was called knows no address of the caller's, so it comes along; nil: it is not known. Its error wraps
// transport.ErrPeerGone where nobody is there any more.
func (d *domain) Rejoin(ctx context.Context, peer int, addr []byte) error {
	l := d.links[peer].Load()
	if l == nil || addr == nil || !l.forsaken() {
		return nil
	}
	if a, err := parseAddress(addr); err != nil || a.instance != l.instance {
		return err // of another domain of the peer's this link says nothing
	}
	_, err := d.Connect(ctx, peer, addr)
	return err
}

// forsaken reports whether the link has ended, has said what there was to say, and nobody was told that the peer is gone.
func (l *link) forsaken() bool {
	if l.alive.Load() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == stateDown && !l.gone
}
