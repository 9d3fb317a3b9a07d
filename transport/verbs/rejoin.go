package verbs

import "context"

// Rejoin is for package nic, which looks for whose domains can do that (nic/seek.go). It makes the connection with a rank again that has ended with a word of the
// peer's, or of this side's, which says that the peer was there then. Of all others somebody finds out, or has found out. Its error wraps
// transport.ErrPeerGone where nobody is there any more. The address that was published it does not need: that of the pair's other end is newer.
func (d *domain) Rejoin(ctx context.Context, rank int, _ []byte) error {
	q := d.peers[rank].cur.Load()
	if q == nil || q.state.Load() != pairEnded || q.verdict.Load() != verdictAlive {
		return nil
	}
	_, err := d.Connect(ctx, rank, q.to.Append(nil))
	return err
}
