package pgsync

import "gopgas/internal/proto"

// RoomBytes is what a part of a long call has at most, Payload one that goes through the outboxes of few members, and MostPartial what a member combines for another, and
// each of two of a reduction.
const (
	RoomBytes = roomBytes
	Payload   = outboxBytes - outboxHeader

	MostPartial = mostPartial
)

// Barriers is how many barriers this member has begun on the team, those of turns among them.
func (t *Team) Barriers() (n uint64) {
	for i := range t.core.lanes {
		n += t.core.lanes[i].gen
	}
	return n
}

// Slips says whether so few bytes of each member go along with the flags of this team.
func (t *Team) Slips(bytes int) bool { return (&turns{t: t}).slim(bytes, false) }

// Busy says whether a goroutine of this rank is in a collective of the team.
func (t *Team) Busy() bool { return t.busy.Load() != 0 }

// Mislay has h stand for what this member has sent out ahead to another one.
func (t *Team) Mislay(to int, h proto.Handle) { t.freight.ahead, t.freight.under[to] = true, h }
