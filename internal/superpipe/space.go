package superpipe

import (
	"errors"
	"fmt"

	"gopgas/internal/bounce"
	"gopgas/internal/mem"
	"gopgas/transport"
)

// space is the registered memory of a target. It is there while leases are out, and may be given up in between: the memory
// that another rank needs registered now is worth more than slots that nobody uses.
type space struct {
	state   spaceState
	pool    *bounce.Pool
	slots   mem.Range
	key     transport.Region // of the slots
	scratch mem.Range        // the acknowledgement of each lease
	ackFrom transport.Region
}

type spaceState uint8

const (
	spaceNone  spaceState = iota
	spaceMoves            // it is being registered, or deregistered
	spaceReady
)

// Footprint is the registered memory of a target that is prepared, in bytes.
func (t *Target) Footprint() int { return t.c.Leases*t.c.Fold*t.c.SlotBytes + t.space.scratch.Bytes }

// Prepare registers the workspace if it is not. Where somebody else is at it, it does not wait for that: leases are refused
// until then. The memory is new each time, generations go on, so no flag of earlier days is taken for one.
func (t *Target) Prepare() error {
	if !t.turn(spaceNone) {
		return nil
	}
	// No lock is held: to make room for it may mean to give up the workspace of whoever has one.
	slots, key, err := t.c.workspace("from other ranks", t.c.Leases*t.c.Fold, transport.LocalWrite|transport.RemoteWrite)
	if err != nil {
		t.settle(spaceNone)
		return err
	}
	ackFrom, err := t.c.NIC.Register(t.space.scratch, 0)
	if err != nil {
		t.settle(spaceNone)
		return errors.Join(fmt.Errorf("register %d bytes of acknowledgements: %w", t.space.scratch.Bytes, err), t.c.NIC.Deregister(key))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &t.space
	s.slots, s.key, s.ackFrom, s.pool, s.state = slots, key, ackFrom, bounce.New(slots, t.c.Fold*t.c.SlotBytes), spaceReady
	return nil
}

// Reclaim deregisters the workspace if no lease is out, and returns how many bytes that frees. Nobody's write can land in
// it: a lease is out until its origin has nothing in flight into it.
func (t *Target) Reclaim() (bytes int, err error) {
	if !t.turn(spaceReady) {
		return 0, nil
	}
	err = errors.Join(t.c.NIC.Deregister(t.space.key), t.c.NIC.Deregister(t.space.ackFrom))
	bytes = t.Footprint()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.space.pool, t.space.slots, t.space.state = nil, mem.Range{}, spaceNone
	return bytes, err
}

// Idle reports whether the workspace is registered and no lease is out.
func (t *Target) Idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.space.state == spaceReady && len(t.held) == 0
}

// turn begins to register the workspace, or to deregister it, if it is as said and nobody is at it or uses it.
func (t *Target) turn(from spaceState) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.space.state != from || len(t.held) > 0 {
		return false
	}
	t.space.state = spaceMoves
	return true
}

func (t *Target) settle(s spaceState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.space.state = s
}
