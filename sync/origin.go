package pgsync

import (
	"context"
	"errors"
	"fmt"

	"gopgas/transport"
)

// origin is the call that has made a team from another one. Of the last exchange of such a call some members can have come to the end when another one's context ends in it, and that
// one has no team then: it tells the members of the one it is made from, in which the others look until all members are known to have the new one, since they have met in that.
type origin struct {
	of   *Team  // what it is made from
	lane int    // of that: on which the members got each other's cards
	gen  uint64 // and the number of the lane's barrier in which they did, 0 before: no two makings have both alike
}

// unmadeShift is where in an unmadeWord the number of the barrier begins, behind the member that tells.
const unmadeShift = 24

// unmake tells all members that this one has none of the teams that are being made. All who do so say the same of a lane: none of them gets to another making, and none had got to this one
// before all were through the one before.
func (o *origin) unmake() {
	o.of.spread(unmadeWord+8*o.lane, o.gen<<unmadeShift|uint64(o.of.me+1))
}

// unmade returns an error that names the member that has not got this team, or nil.
func (t *Team) unmade() error {
	if t.core.origin.Load() == nil {
		return nil
	}
	return t.core.unmade()
}

func (c *core) unmade() error {
	o := c.origin.Load()
	if o == nil {
		return nil // all have it by now
	}
	from := o.of.core
	from.mu.Lock() // the memory is there until then
	defer from.mu.Unlock()
	if from.freed.Load() { // to which all came, with their new teams
		return nil
	}
	word := o.of.local.Word64(unmadeWord + 8*o.lane).Load()
	if member := int(word&(1<<unmadeShift-1)) - 1; word>>unmadeShift == o.gen && member >= 0 && member < len(o.of.ranks) {
		return fmt.Errorf("%w: rank %d left the call that made this team before its end: not all members have it, and it is Survivors of the team that it was made from which helps",
			ErrAbandoned, o.of.ranks[member])
	}
	return nil
}

// subset is the exchange of a part of a team while the new team has none of its own. An allocation has two: of cards, and of what became of them.
type subset struct {
	members []int
	origin  origin
}

// Exchange implements proto.Exchanger.
func (s *subset) Exchange(ctx context.Context, card []byte) ([][]byte, error) {
	all, err := s.exchange(ctx, card)
	if err != nil {
		if s.origin.gen != 0 && !errors.Is(err, transport.ErrClosed) { // all others may have come to the end of this one
			s.origin.unmake()
		}
		return nil, err
	}
	out := make([][]byte, len(s.members))
	for i, m := range s.members {
		out[i] = all[m]
	}
	return out, nil
}

// Keeps implements proto.Keeper: the first call in the new team writes to all members.
func (s *subset) Keeps() {}

// exchange is Team.Exchange that notes where it took place, the first time.
func (s *subset) exchange(ctx context.Context, card []byte) ([][]byte, error) {
	c, err := s.origin.of.begin(ctx, "exchange")
	if err != nil {
		return nil, err
	}
	all, err := c.exchange(ctx, callOf("exchange", 0, 0, 0), card)
	if err == nil && s.origin.gen == 0 {
		s.origin.lane, s.origin.gen = c.l.number, c.l.gen
	}
	return all, c.End(err)
}
