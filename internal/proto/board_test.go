package proto

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/cost"
	"gopgas/internal/mem"
	"gopgas/internal/peers"
	"gopgas/internal/sched"
	"gopgas/internal/seats"
	"gopgas/regmgr"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// TestTurnsOfANode: how threads take turns is what was measured, or told, and assumed only where neither is so.
func TestTurnsOfANode(t *testing.T) {
	n := IdleCores{Cores: 3}.node(&cost.Model{Slice: 2_800_000, Swap: 1900})
	require.Equal(t, seats.Node{Cores: 3, Slice: 2_800_000, Swap: 1900}, n)
	n = IdleCores{Cores: 3}.node(&cost.Model{Swap: 1900}) // a kernel that tells no slice
	require.Equal(t, seats.Node{Cores: 3, Slice: assumedSlice, Swap: 1900}, n)
}

// TestHelpersOfANode: the ranks of a node agree by what they post in their rank blocks who has the idle core, and those of
// another node have no say. The one that registers the most has it; where nobody can post, all the same only one has.
func TestHelpersOfANode(t *testing.T) {
	const ranks, other = 4, 3 // three on one node, one on another
	nodes := []int{0, 0, 0, 1}
	f := transporttest.NewFabric(ranks, transporttest.FabricConfig{})
	var blocks []mem.Range
	for range ranks {
		blocks = append(blocks, mem.Of(make([]uint64, peers.BlockBytes(ranks)/8)))
	}
	var engines []*Engine
	for r := range ranks {
		s := sched.Goroutine(ranks)
		d, err := f.Provider(r).Open(t.Context(), transport.Config{Rank: r, Size: ranks, Job: t.Name(), Sched: s})
		require.NoError(t, err)
		idle := IdleCores{Policy: seats.Conservative, Cores: 4}
		if r == other {
			idle.Cores = 1
		}
		e := New(Config{
			Rank: r, Size: ranks, Sched: s, Peers: peers.New(ranks), NICName: "loopback", Nodes: nodes,
			OpenNIC:      func(context.Context) (transport.Domain, error) { return d, nil },
			Registration: Registration{Policy: regmgr.Predictive, Idle: idle},
		})
		require.NoError(t, e.openNIC(t.Context()))
		t.Cleanup(func() { require.NoError(t, e.Close()) })
		engines = append(engines, e)
	}
	helpers := func() (who []int) {
		for r, e := range engines {
			if s, _, _ := e.Registered(); s.Prediction.Helper {
				who = append(who, r)
			}
		}
		return who
	}
	one := func() bool { w := helpers(); return len(w) == 1 && w[0] != other }
	require.Eventually(t, one, 20*time.Second, time.Millisecond, "nobody can post yet")
	for r, e := range engines {
		of := make([]Remote, ranks)
		for k := range of {
			of[k] = Remote{Rank: k}
			if nodes[k] == nodes[r] {
				of[k].Mapped = blocks[k]
			}
		}
		e.Join(blocks[r], of)
	}
	for _, largest := range []int{1, 2, 0} {
		holds := make([]regmgr.Hold, ranks)
		for r, e := range engines {
			bytes := 100_000
			if r == largest {
				bytes = 1_000_000
			}
			require.NoError(t, e.nic().direct.reg.Acquire(&holds[r], regmgr.Request{Mem: mem.Of(make([]byte, bytes))}))
		}
		require.Eventually(t, func() bool { w := helpers(); return len(w) == 1 && w[0] == largest }, 20*time.Second, time.Millisecond,
			"rank %d registers the most", largest)
		for r, e := range engines {
			e.nic().direct.reg.Release(&holds[r])
		}
		require.Eventually(t, func() bool {
			for _, e := range engines {
				e.nic().direct.reg.Trim(1 << 40)
				if s, _, _ := e.Registered(); s.Bytes != 0 {
					return false
				}
			}
			return true
		}, 20*time.Second, time.Millisecond)
	}
	for _, e := range engines {
		e.board.Close()
	}
	clear(blocks[0].Data()) // nobody looks any more
	require.Eventually(t, one, 20*time.Second, time.Millisecond)
}
