package pgsync

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShapes is a golden table of how barriers are laid out.
func TestShapes(t *testing.T) {
	for _, c := range []struct {
		node   []int
		me     int
		shared bool
		want   string
	}{
		{[]int{0}, 0, true, "[[0]] 0 [{0 [0] 0}]"},
		{[]int{0, 0, 0}, 2, true, "[[0 1 2]] 0 [{0 [0 1 2] 2}]"},
		{[]int{5, 6, 7}, 1, true, "[[0 1 2]] 0 [{0 [0 1 2] 1}]"},
		{[]int{0, 0, 1, 1}, 3, false, "[[0 1 2 3]] 0 [{0 [0 1 2 3] 3}]"},
		{[]int{0, 0, 1, 1}, 0, true, "[[0 1] [2 3]] 0 [{0 [0 1] 0} {1 [0 2] 0} {2 [0 1] 0}]"},
		{[]int{0, 0, 1, 1}, 3, true, "[[0 1] [2 3]] 1 [{0 [2 3] 1} {2 [2 3] 1}]"},
		{[]int{9, 4, 9, 4, 9}, 1, true, "[[0 2 4] [1 3]] 1 [{0 [1 3] 0} {1 [0 1] 1} {2 [1 3] 0}]"},
		{[]int{9, 4, 9, 4, 9}, 4, true, "[[0 2 4] [1 3]] 0 [{0 [0 2 4] 2} {2 [0 2 4] 2}]"},
		{[]int{1, 2, 2}, 0, true, "[[0] [1 2]] 0 [{0 [0] 0} {1 [0 1] 0} {2 [0] 0}]"},
	} {
		s := shapeOf(c.node, c.me, c.shared)
		require.Equal(t, c.want, fmt.Sprint(s.nodes, s.mine, s.phases), "%v for %d", c.node, c.me)
	}
}

// knowledge plays a gather: what each member's outbox holds, by rounds in which all write and then all read.
func knowledge(t *testing.T, node []int) {
	n := len(node)
	shapes := make([]shape, n)
	boxes := make([][]int, n)
	for m := range n {
		shapes[m] = shapeOf(node, m, true)
		boxes[m] = []int{m}
	}
	for area := range phaseRelease {
		for dist := 1; dist < n; dist *= 2 {
			before := make([][]int, n)
			for m := range boxes {
				before[m] = slices.Clone(boxes[m])
			}
			for m := range n {
				for i := range shapes[m].phases {
					p := &shapes[m].phases[i]
					if p.area != area || dist >= len(p.members) {
						continue
					}
					at, more := shapes[m].gathered(p, dist)
					require.Len(t, boxes[m], at, "%v: member %d in phase %d at %d", node, m, area, dist)
					from := p.members[behind(p.me, dist, len(p.members))]
					require.GreaterOrEqual(t, len(before[from]), more, "%v: member %d in phase %d at %d", node, m, area, dist)
					boxes[m] = append(boxes[m], before[from][:more]...)
				}
			}
		}
	}
	for m := range n {
		have := boxes[m]
		if shapes[m].levels() {
			have = boxes[shapes[m].leader()]
		}
		require.Equal(t, shapes[m].order(m), have, "%v: member %d", node, m)
		sorted := slices.Sorted(slices.Values(have))
		for i, v := range sorted {
			require.Equal(t, i, v)
		}
		require.Len(t, sorted, n)
	}
}

func TestGathersReachEverybody(t *testing.T) {
	for n := 1; n <= 33; n++ {
		for nodes := 1; nodes <= n; nodes++ {
			blocks, cyclic, uneven := make([]int, n), make([]int, n), make([]int, n)
			for m := range n {
				blocks[m], cyclic[m], uneven[m] = m*nodes/n, m%nodes, min(m, nodes-1)
			}
			knowledge(t, blocks)
			knowledge(t, cyclic)
			knowledge(t, uneven)
		}
	}
}

// TestChoices is a golden table of methods.
func TestChoices(t *testing.T) {
	for _, c := range []struct {
		op       string
		n, bytes int
		levels   bool
		want     method
	}{
		{"broadcast", 1, 8, false, direct},
		{"broadcast", 8, 1 << 20, false, direct},
		{"broadcast", 9, 8, false, relayed},
		{"broadcast", 4, 8, true, relayed},
		{"allgather", 8, 8, false, direct},
		{"allgather", 9, 8, false, gathered},
		{"allgather", 9, 512, true, gathered},
		{"allgather", 9, 513, false, direct},
		{"allreduce", 2, 1 << 20, false, direct},
		{"allreduce", 3, 8<<10 - 1, false, direct},
		{"allreduce", 3, 8 << 10, false, segmented},
		{"allreduce", 9, 8, false, gathered},
		{"allreduce", 9, 513, false, segmented},
		{"allreduce", 1000, 24, true, gathered},
		{"allreduce", 1000, 40, true, segmented},
		{"reduce", 1000, 8, false, direct},
		{"reduce", 1000, 40, false, segmented},
		{"reduce", 9, 8 << 10, false, segmented},
		{"reduce", 8, 100, true, direct},
		{"barrier", 100, 0, false, direct},
	} {
		require.Equal(t, c.want, choose(c.op, c.n, c.bytes, slotBytes(c.n), c.levels), "%+v", c)
	}
}

// TestControlBlock: what lies in it does not overlap, and outboxes have room for a gather.
func TestControlBlock(t *testing.T) {
	for _, n := range []int{1, 2, 3, 63, 64, 65, 511, 512, 1000, 1 << 16} {
		require.LessOrEqual(t, bits.Len(uint(n-1)), maxRounds)
		require.GreaterOrEqual(t, slotBytes(n), leastSlot)
		require.LessOrEqual(t, slotBytes(n)*n, boxPayload(n))
		require.Zero(t, boxBytes(n)%64)
		require.Equal(t, newsOff(n), boxOff(n, laneCount-1, 1)+boxBytes(n))
		require.Equal(t, controlBytes(n), newsOff(n)+8*n+setBytes(n))
	}
	require.LessOrEqual(t, agreeDecided+8, headBytes)
}
