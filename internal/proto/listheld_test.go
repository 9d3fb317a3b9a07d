package proto

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/transport/transporttest"
)

// TestListWaitsWithoutAChain: accumulates of which the NIC performs some and the target's CPU others keep no pieces for the former while they wait
// for one for the latter: others may do the same.
func TestListWaitsWithoutAChain(t *testing.T) {
	tm := newTeamOf(t, 2, tightBytes, transporttest.FabricConfig{MaxPinned: tightPins, NotCPU: true}, nil)
	const words = 2*mostListed + nic.Batch
	m := newMeeting(2)
	var few [2]*Exposure
	var wg sync.WaitGroup
	for r := range few {
		wg.Go(func() { few[r], _ = tm.e[r].Allocate(t.Context(), seat{m, r}, []int{0, 1}, 8*words) })
	}
	wg.Wait()
	require.NotNil(t, few[0])
	require.NotNil(t, few[1])
	e, n := tm.e[0], tm.e[0].nic()
	word := atom.ElemOf[uint64]()
	by := [...]*Remote{&few[0].Of[1], &tm.of[0][1]}
	require.Equal(t, native, n.wayTo(by[0], atom.Sum, word))
	require.Equal(t, byMessage, n.wayTo(by[1], atom.Sum, word))
	var others []int32 // all pieces but a chain's are somebody else's
	for len(others) < nic.Pieces-nic.Batch {
		id, ok := n.TryAcquire(1, false)
		require.True(t, ok)
		others = append(others, id)
	}
	for _, fetch := range []bool{false, true} {
		for _, asked := range []int{1, mostListed + 1} { // a list is sent at the end, or when it is full
			at := func(i int) (*Remote, int) {
				if i < nic.Batch {
					return by[0], 8 * i
				}
				return by[1], 8 * i
			}
			src, old := mem.Of(make([]uint64, nic.Batch+asked)), mem.Range{}
			for i := range nic.Batch + asked {
				src.Word64(8 * i).Store(1)
			}
			if fetch {
				old = mem.Of(make([]uint64, nic.Batch+asked))
			}
			over := make(chan error)
			go func() { over <- e.AccumulateAt("scatter", atom.Sum, word, nic.Batch+asked, at, src, old) }()
			select {
			case err := <-over:
				require.NoError(t, err)
			case <-time.After(20 * time.Second):
				t.Fatalf("it has all pieces that are left (%d by message, fetch: %v)", asked, fetch)
			}
		}
	}
	for _, id := range others {
		n.Abandon(id)
	}
	require.NoError(t, e.Flush(by[0]))
	require.EqualValues(t, 4, few[1].Local.Word64(0).Load())
	require.EqualValues(t, 4, tm.mem[1].Word64(8*nic.Batch).Load())
	require.EqualValues(t, 2, tm.mem[1].Word64(8*(nic.Batch+mostListed)).Load())
}
