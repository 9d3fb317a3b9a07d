package verbs

import (
	"context"
	"errors"

	"gopgas/transport/verbs/internal/side"
)

// A process that is killed loses its registrations before its queue pairs and its listener: for some milliseconds its NIC
// refuses what it would have done just before. The refusal looks like that of a wrong key, so the program is asked: a
// live one proves itself, and the refusal stands; a dead one has its listener closed by the kernel, and is gone.

// deserted reports whether nobody is there any more behind the NIC that refused an operation of p. Where no answer comes
// in time the peer's process is stopped, or the network is cut: neither is a death, and the refusal stands. A process that is known to
// live, and does not answer, may be about to end: it is asked again while patience lasts.
func (p *pair) deserted() bool {
	d, rank := p.d, p.peer.rank
	for began := d.sched.Now(); ; {
		err := d.knock(d.ctx, p.to)
		again := err != nil && (d.job.Spares(rank, err) || errors.Is(err, errCut)) && d.sched.Now()-began < d.patience
		if !again || d.sched.Sleep(d.ctx, retryPause) != nil {
			return d.ended(rank, err) && !d.mayPass(rank, err)
		}
	}
}

// knock has whoever listens at a prove that it knows the job's secret, and says nothing more: no connection comes of it,
// and none is touched at either end. It waits for dialLimit and handshakeLimit at most.
func (d *domain) knock(ctx context.Context, a side.Address) error {
	conn, err := d.dials.dial(ctx, d.zone(a.At))
	if err != nil {
		return err
	}
	defer d.dials.forget(conn)
	defer conn.Close()
	if _, err = d.auth.Greet(conn, &side.Hello{From: d.self, ToRank: a.Rank, ToInstance: a.Instance}); err != nil {
		return goneIfCut(err)
	}
	return nil
}
