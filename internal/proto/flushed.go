package proto

import (
	"context"
	"errors"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// Flushed reports whether a flush that has returned err has left nothing in flight, though something may have failed: then collectives that flush go on to meet the others, who
// wait for them. They do not where ctx has ended, or where no wait would end well: a member or the world is gone.
func Flushed(ctx context.Context, err error) bool {
	if err == nil {
		return true
	}
	ended := sched.Ended(ctx)
	return !errors.Is(err, transport.ErrPeerGone) && !errors.Is(err, transport.ErrClosed) && (ended == nil || !errors.Is(err, ended))
}

// FlushNB begins a Flush: the handle is done when what Flush would wait for is over.
func (e *Engine) FlushNB(r *Remote) Handle {
	n := e.nic()
	if r.Mapped.Bytes != 0 || n == nil {
		mem.FullFence()
		if n == nil || !r.nicAtomics && !n.Pending(r.Rank) {
			return Handle{}
		}
	}
	return n.FlushNB(r.Rank)
}

// Quiet returns when all is over that this rank has begun to anybody before, with the first failure not yet reported.
func (e *Engine) Quiet() error {
	if e.nic() == nil {
		mem.FullFence()
		return nil
	}
	for r := range e.Size {
		if err := e.nic().flush(context.Background(), r); err != nil {
			return err
		}
	}
	return nil
}

// Land is Quiet that leaves failures for the next one, and ends with ctx. Its own error is of op.
func (e *Engine) Land(ctx context.Context, op string) error {
	n := e.nic()
	if n == nil {
		mem.FullFence()
		return nil
	}
	for r := range e.Size {
		if err := n.Land(ctx, op, r); err != nil {
			return err
		}
	}
	return nil
}

// Told returns the error of an earlier operation to rank that has failed and of which nobody was told; as by a flush, each is told once. Who is about to say
// that all before has arrived asks first.
func (e *Engine) Told(rank int) error {
	if n := e.nic(); n != nil {
		return n.Told(rank)
	}
	return nil
}
