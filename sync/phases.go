package pgsync

import "slices"

// phase is a part of a barrier: a dissemination among some members of the team.
type phase struct {
	area    int   // of flags
	members []int // who takes part, by their numbers in the team
	me      int   // this member's place among them
}

// Phases of a barrier. Where ranks share nodes it takes three: all of a node, the first of each node among themselves, and
// all of a node again, whose first member has heard from the other nodes by then. Elsewhere the first one has all members.
const (
	phaseAll = iota // or: of the node
	phaseLeaders
	phaseRelease
)

// shape is how the members of a team lie on nodes, as this member sees it.
type shape struct {
	nodes  [][]int // the members by node, in the order of their first members; one entry where the team is flat
	mine   int     // this member's node among nodes
	phases []phase
}

// shapeOf lays out the phases for member me. node holds the node of each member; where shared is false, ranks of a node
// are no nearer to each other than to the rest.
//
// A flat dissemination takes ceil(log2 n) rounds in each of which every member sends a message; in levels only one member
// of a node sends any to other nodes, in ceil(log2 nodes) rounds, and the rest are stores into mapped memory. (Two levels
// on clusters of multiprocessors: Sistare, vandeVaart, Loh 1999; Karonis et al. 2000.)
func shapeOf(node []int, me int, shared bool) shape {
	index := map[int]int{}
	var s shape
	for m, where := range node {
		if !shared {
			where = 0
		}
		i, ok := index[where]
		if !ok {
			i = len(s.nodes)
			index[where] = i
			s.nodes = append(s.nodes, nil)
		}
		s.nodes[i] = append(s.nodes[i], m)
		if m == me {
			s.mine = i
		}
	}
	if k := len(s.nodes); k == 1 || k == len(node) {
		all := make([]int, len(node))
		for m := range all {
			all[m] = m
		}
		s.nodes, s.mine = [][]int{all}, 0
		s.phases = []phase{{phaseAll, all, me}}
		return s
	}
	local := s.nodes[s.mine]
	place := 0
	for local[place] != me {
		place++
	}
	s.phases = append(s.phases, phase{phaseAll, local, place})
	if place == 0 {
		leaders := make([]int, len(s.nodes))
		for i, members := range s.nodes {
			leaders[i] = members[0]
		}
		s.phases = append(s.phases, phase{phaseLeaders, leaders, s.mine})
	}
	s.phases = append(s.phases, phase{phaseRelease, local, place})
	return s
}

// levels reports whether barriers take three phases.
func (s *shape) levels() bool { return len(s.nodes) > 1 }

// leader is the first member of this member's node; in a flat team nobody in particular.
func (s *shape) leader() int { return s.nodes[s.mine][0] }

// nodeOf returns the place of member's node among nodes.
func (s *shape) nodeOf(member int) int {
	for i, members := range s.nodes {
		if slices.Contains(members, member) {
			return i
		}
	}
	return -1
}

// behind returns how far place me of n lies behind place root, in a circle.
func behind(me, root, n int) int {
	d := me - root
	if d < 0 {
		d += n
	}
	return d
}
