package proto

import (
	"context"
	"fmt"
	"os"

	"gopgas/firehose"
	"gopgas/internal/am"
	"gopgas/internal/cost"
	"gopgas/internal/errand"
	"gopgas/internal/hose"
	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/regmgr"
	"gopgas/transport"
)

// Room hose keeps account of the buckets; what is here lends it the NIC, and what is in hosehit.go, hoseops.go, hosedirect.go
// and hoseruns.go moves bytes from and to buckets.

// prepareMemory divides what the NIC may register beside its buffers: one budget for this rank's own transfers and for
// what others hold firehoses on.
func (n *device) prepareMemory(r Registration) error {
	r.Bytes = n.budget(r)
	if err := n.prepareDirect(r); err != nil || n.Payload == 0 {
		return err
	}
	if n.Caps.MaxPinned <= 0 || n.Caps.FlushByRead || n.Payload < firehose.LeastPayload {
		return nil // without a limit nobody needs buckets; by read, a write's end does not mean that its target may be let go
	}
	var err error
	n.hoses, err = hose.New(hose.Config{
		Size: n.e.Size, Bytes: r.Bytes, Regions: n.Caps.MaxRegions, Payload: n.Payload, Pieces: nic.Pieces,
		Sched: n.e.Sched, Registered: n.direct.reg, Lock: n.NIC, NIC: hoseLane{n}, Unanswered: errUnanswered,
	})
	return err
}

var errUnanswered = fmt.Errorf("the owner could not deliver its answer: %w: %w", nic.ErrConnectionLost, am.ErrLost)

// pinnable is what the NIC may register beside its buffers, bytes; 0: it has no limit.
func (n *device) pinnable() int64 {
	if n.Caps.MaxPinned <= 0 {
		return 0
	}
	fixed := int64(n.Footprint() + n.flights.Footprint() + 8*os.Getpagesize())
	return max(1, n.Caps.MaxPinned-fixed)
}

// nameKey draws a key by which messages name memory that has none of the NIC, and no other memory ever. NICs do not draw keys so large.
func (n *device) nameKey() uint64 { return 1<<63 | n.names.Add(1) }

// exposeHosed lets peers ask for buckets of r, and send messages about it, by the key.
func (n *device) exposeHosed(r mem.Range) (id uint32, key uint64, err error) {
	if id, err = n.hoses.Expose(r); err == nil {
		key = n.nameKey()
		n.exposed.Know(key, r)
	}
	return id, key, err
}

// withdrawHosed ends what exposeHosed began. If ctx ends before the others have let go of it, it stays registered.
func (n *device) withdrawHosed(ctx context.Context, id uint32, key uint64) error {
	n.exposed.Forget(key)
	return n.hoses.Withdraw(ctx, id)
}

// leaveHosed ends this rank's use of those of the members' parts that are in buckets, whatever its own part is: their owners wait for it.
func (n *device) leaveHosed(ctx context.Context, others []Remote) error {
	var fars []*hose.Far
	for i := range others {
		if far := others[i].hosed; far != nil && !far.Bare() {
			fars = append(fars, far)
		}
	}
	if len(fars) == 0 {
		return nil
	}
	return n.hoses.Leave(ctx, fars)
}

// FixBuckets has this rank ask for buckets of so many bytes, a power of two, in all memory that it reaches through buckets for the
// first time from now on, instead of what suits its accesses; 0 ends that. It is for measurements. The error says that there
// are no buckets, or none so small or large.
func (e *Engine) FixBuckets(bytes int64) error {
	n := e.nic()
	if n == nil || n.hoses == nil {
		return fmt.Errorf("fix the size of buckets: %w: no NIC here registers memory in buckets; bound what it may register (PGAS_MAX_PINNED)",
			transport.ErrUnsupported)
	}
	return n.hoses.Fix(bytes)
}

// hoseLane is the NIC as firehoses see it.
type hoseLane struct{ n *device }

// Gone implements hose.NIC, as all that follows.
func (l hoseLane) Gone(rank int) error { return l.n.e.Peers.Check(rank) }

func (l hoseLane) Parted() bool { return l.n.Parted() }

func (l hoseLane) WaitUntil(ctx context.Context, op string, rank int, cond func() bool) error {
	return l.n.WaitWithin(ctx, op, rank, cond)
}

func (l hoseLane) Send(rank int, k hose.Kind, body []byte, cookie uint64) (sent bool, err error) {
	n := l.n
	if n.e.Peers.Check(rank) != nil || n.Closed() {
		return true, nil // who waits for it learns of that
	}
	return n.TryAsk(rank, askHose+uint8(k), [4]uint64{}, body, cookie)
}

func (l hoseLane) Drop(rank int) []uint64 { return l.n.Unask(rank, hose.Cookie) }

func (l hoseLane) Wake() { l.n.Domain.Wake() }

func (l hoseLane) Store(dst, src mem.Range) { errand.Store(dst, src) }

// Model asks who has told, or measures; not in virtual time, where things cost what a model says.
func (l hoseLane) Model() (cost.Model, error) {
	n := l.n
	switch {
	case n.direct.costs.PageBytes != 0:
		return n.direct.costs, nil
	case n.e.Sched.Virtual():
		return cost.Named("helper-threads")
	}
	return regmgr.Calibrate(context.Background(), n.Domain, n.e.Sched, nil)
}
