package window

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
)

// TestAttachedBesideTheEnd: what was attached while another goroutine freed the window, or closed the world, is not kept: there is nothing any more to keep it in.
func TestAttachedBesideTheEnd(t *testing.T) {
	d := &Dynamic[int]{mine: map[uint64]*attached{}}
	id, err := d.keep("attach", new(attached))
	require.NoError(t, err)
	require.Len(t, d.shut(), 1)
	require.Nil(t, d.mine[id])
	_, err = d.keep("attach", new(attached))
	require.ErrorIs(t, err, transport.ErrClosed)
}
