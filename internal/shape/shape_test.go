package shape

import (
	"fmt"
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
		{[]int{0}, 0, true, "[[0]] 0 [{0 [0] 0 true}]"},
		{[]int{0, 0, 0}, 2, true, "[[0 1 2]] 0 [{0 [0 1 2] 2 true}]"},
		{[]int{5, 6, 7}, 1, true, "[[0 1 2]] 0 [{0 [0 1 2] 1 false}]"},
		{[]int{0, 0, 1, 1}, 3, false, "[[0 1 2 3]] 0 [{0 [0 1 2 3] 3 false}]"},
		{[]int{0, 0, 1, 1}, 0, true, "[[0 1] [2 3]] 0 [{0 [0 1] 0 true} {1 [0 2] 0 false} {2 [0 1] 0 true}]"},
		{[]int{0, 0, 1, 1}, 3, true, "[[0 1] [2 3]] 1 [{0 [2 3] 1 true} {2 [2 3] 1 true}]"},
		{[]int{9, 4, 9, 4, 9}, 1, true, "[[0 2 4] [1 3]] 1 [{0 [1 3] 0 true} {1 [0 1] 1 false} {2 [1 3] 0 true}]"},
		{[]int{9, 4, 9, 4, 9}, 4, true, "[[0 2 4] [1 3]] 0 [{0 [0 2 4] 2 true} {2 [0 2 4] 2 true}]"},
		{[]int{1, 2, 2}, 0, true, "[[0] [1 2]] 0 [{0 [0] 0 true} {1 [0 1] 0 false} {2 [0] 0 true}]"},
	} {
		s := Of(c.node, c.me, c.shared)
		require.Equal(t, c.want, fmt.Sprint(s.Nodes, s.Mine, s.Phases), "%v for %d", c.node, c.me)
	}
}

func TestInOrder(t *testing.T) {
	for _, c := range []struct {
		node []int
		want bool
	}{
		{[]int{0}, true},
		{[]int{3, 3, 3}, true},
		{[]int{2, 1, 0}, true},
		{[]int{7, 7, 1, 1, 1, 2}, true},
		{[]int{7, 1, 7}, false},
		{[]int{0, 1, 1, 0}, false},
	} {
		for me := range c.node {
			s := Of(c.node, me, true)
			require.Equal(t, c.want, s.InOrder(), "%v for %d", c.node, me)
			s = Of(c.node, me, false)
			require.True(t, s.InOrder()) // all alike
		}
	}
}

// knowledge plays a gather to root, or with -1 to all: what each member's outbox holds, by rounds in which all write and then all read.
func knowledge(t *testing.T, node []int, root int) {
	n := len(node)
	shapes := make([]Shape, n)
	boxes := make([][]int, n)
	for m := range n {
		shapes[m] = Of(node, m, true)
		boxes[m] = []int{m}
	}
	for area := range Release {
		for dist := 1; dist < n; dist *= 2 {
			before := make([][]int, n)
			for m := range boxes {
				before[m] = slices.Clone(boxes[m])
			}
			for m := range n {
				for i := range shapes[m].Phases {
					p := &shapes[m].Phases[i]
					if p.Area != area || dist >= len(p.Members) {
						continue
					}
					most := shapes[m].Toward(p, root, dist)
					if most == 0 {
						continue
					}
					at, more := shapes[m].Gathered(p, dist, most)
					require.Len(t, boxes[m], at, "%v: member %d in phase %d at %d", node, m, area, dist)
					from := p.Members[Behind(p.Me, dist, len(p.Members))]
					require.GreaterOrEqual(t, len(before[from]), more, "%v: member %d in phase %d at %d", node, m, area, dist)
					boxes[m] = append(boxes[m], before[from][:more]...)
				}
			}
		}
	}
	for m := range n {
		if root >= 0 && m != root {
			continue
		}
		have := boxes[m]
		if shapes[m].Levels() {
			have = boxes[shapes[m].Leader()]
		}
		require.Equal(t, shapes[m].Order(m), have, "%v: member %d", node, m)
		sorted := slices.Sorted(slices.Values(have))
		for i, v := range sorted {
			require.Equal(t, i, v)
		}
		require.Len(t, sorted, n)
	}
}

// TestGathersReachEverybody: whatever the nodes, each member, or root, ends up with all slots, and Order says whose they are (S1, S3).
func TestGathersReachEverybody(t *testing.T) {
	for n := 1; n <= 33; n++ {
		for nodes := 1; nodes <= n; nodes++ {
			blocks, cyclic, uneven := make([]int, n), make([]int, n), make([]int, n)
			for m := range n {
				blocks[m], cyclic[m], uneven[m] = m*nodes/n, m%nodes, min(m, nodes-1)
			}
			for _, root := range []int{-1, 0, n / 2, n - 1} {
				knowledge(t, blocks, root)
				knowledge(t, cyclic, root)
				knowledge(t, uneven, root)
			}
		}
	}
}
