package verbs

import "context"

// Rejoin is for package nic, which looks for whose domains can do that (nic/seek.go). It makes the connection with a rank again that has ended with a word of the
// peer's, or of this side's, which says that the peer was there then. Of all others somebody finds out, or has found out. Its error wraps
// transport.ErrPeerGone where nobody is there any more.
func (d *domain) Rejoin(ctx context.Context, rank int) error {
	p := &d.peers[rank]
	if q := p.cur.Load(); q == nil || q.state.Load() != pairEnded || q.verdict.Load() != verdictAlive {
		return nil
	}
	p.mu.Lock()
	addr := p.addr
	p.mu.Unlock()
	_, err := d.Connect(ctx, rank, addr.Append(nil))
	return err
}
