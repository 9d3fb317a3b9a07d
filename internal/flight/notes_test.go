package flight

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/am"
	"gopgas/internal/nic"
	"gopgas/internal/peers"
	"gopgas/transport"
)

// TestNotesOfTheDead: what becomes known of a note that was dropped with its rank is no news of the next one: that would be sent twice, or never.
func TestNotesOfTheDead(t *testing.T) {
	s := Flights{peers: peers.New(3), n: new(nic.NIC)}
	s.tell(note{kind: noteReturn, rank: 1, generation: 5, place: -1})
	dropped := s.notes[0].id
	s.mark(dropped, true)
	s.notes = dropNotes(s.notes, 1)
	s.tell(note{kind: noteReturn, rank: 2, generation: 6, place: -1})
	s.mark(s.notes[0].id, true)
	s.Answered(am.Reply{Cookie: Cookie | uint64(dropped)}, transport.ErrPeerGone)
	require.True(t, s.notes[0].sent, "it is on its way")
	s.mark(dropped, false)
	require.True(t, s.notes[0].sent)
	s.Answered(am.Reply{Cookie: Cookie | uint64(dropped), Payload: []byte{1}}, nil)
	require.Len(t, s.notes, 1)
}
