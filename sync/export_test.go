package pgsync

// RoomBytes is what a part of a long call has at most where members map each other's memory.
const RoomBytes = roomBytes

// Barriers is how many barriers this member has begun on the team, those of turns among them.
func (t *Team) Barriers() (n uint64) {
	for i := range t.core.lanes {
		n += t.core.lanes[i].gen
	}
	return n
}

// Slips says whether so few bytes of each member go along with the flags of this team.
func (t *Team) Slips(bytes int) bool { return (&turns{t: t}).slim(bytes) }
