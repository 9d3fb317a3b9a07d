package soft

import (
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/shm"
)

// scarce is a mapper whose process has no file descriptor left at times.
type scarce struct {
	transport.Mapper
	none *atomic.Bool
}

func (s scarce) Map(tok transport.Token) (mem.Range, error) {
	if s.none.Load() {
		return mem.Range{}, transport.Shortage("mapping a peer's memory", syscall.EMFILE)
	}
	return s.Mapper.Map(tok)
}

// TestPeerShortOfDescriptors: who cannot be let in since a limit of the peer's process stands in the way is told so, and is let in
// when there is room.
func TestPeerShortOfDescriptors(t *testing.T) {
	var none atomic.Bool
	group := shm.NewGroup(2, shm.Config{})
	var ds [2]transport.Domain
	for r := range ds {
		p := New(Config{Mapper: func(transport.Config) (transport.Mapper, error) {
			if r == 0 {
				return group[0], nil
			}
			return scarce{group[1], &none}, nil
		}})
		var err error
		ds[r], err = p.Open(t.Context(), transport.Config{Rank: r, Size: 2, Job: "job", Secret: []byte("s"), Sched: sched.Goroutine(2)})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, ds[r].Close()) })
	}
	none.Store(true)
	for range 3 {
		_, err := ds[0].Connect(t.Context(), 1, ds[1].Address())
		require.ErrorIs(t, err, transport.ErrLimit)
		require.NotErrorIs(t, err, transport.ErrUnsupported)
		require.ErrorContains(t, err, "a connection with rank 1: found no room in its process")
		require.ErrorContains(t, err, "ulimit -n")
	}
	none.Store(false)
	_, err := ds[0].Connect(t.Context(), 1, ds[1].Address())
	require.NoError(t, err)
}
