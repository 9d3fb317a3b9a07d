package shape

import "slices"

// Phase is a part of a barrier: a dissemination among some members of the team.
type Phase struct {
	Area    Area
	Members []int // who takes part, by their numbers in the team
	Me      int   // this member's place among them
	Near    bool  // they all map each other's memory
}

// Area is which part of a barrier a phase is: each has flags of its own.
type Area int

// Areas of a barrier. Where ranks share nodes it takes three: all of a node, the first of each node among themselves, and
// all of a node again, whose first member has heard from the other nodes by then. Elsewhere the first one has all members.
const (
	All Area = iota // or: of the node
	Leaders
	Release
	Areas // how many there are
)

// Shape is how the members of a team lie on nodes, as this member sees it.
type Shape struct {
	Nodes  [][]int // the members by node, in the order of their first members; one entry where the team is flat
	Mine   int     // this member's node among Nodes
	Phases []Phase
}

// Of lays out the phases for member me. node holds the node of each member; where shared is false, ranks of a node
// are no nearer to each other than to the rest.
//
// A flat dissemination takes ceil(log2 n) rounds in each of which every member sends a message; in levels only one member
// of a node sends any to other nodes, in ceil(log2 nodes) rounds, and the rest are stores into mapped memory. (Two levels
// on clusters of multiprocessors: Sistare, vandeVaart, Loh 1999; Karonis et al. 2000.)
func Of(node []int, me int, shared bool) Shape {
	index := map[int]int{}
	var s Shape
	for m, where := range node {
		if !shared {
			where = 0
		}
		i, ok := index[where]
		if !ok {
			i = len(s.Nodes)
			index[where] = i
			s.Nodes = append(s.Nodes, nil)
		}
		s.Nodes[i] = append(s.Nodes[i], m)
		if m == me {
			s.Mine = i
		}
	}
	if k := len(s.Nodes); k == 1 || k == len(node) {
		all := make([]int, len(node))
		for m := range all {
			all[m] = m
		}
		s.Nodes, s.Mine = [][]int{all}, 0
		s.Phases = []Phase{{All, all, me, shared && k == 1}}
		return s
	}
	local := s.Nodes[s.Mine]
	place := 0
	for local[place] != me {
		place++
	}
	s.Phases = append(s.Phases, Phase{All, local, place, true})
	if place == 0 {
		leaders := make([]int, len(s.Nodes))
		for i, members := range s.Nodes {
			leaders[i] = members[0]
		}
		s.Phases = append(s.Phases, Phase{Leaders, leaders, s.Mine, false})
	}
	s.Phases = append(s.Phases, Phase{Release, local, place, true})
	return s
}

// Levels reports whether barriers take three phases.
func (s *Shape) Levels() bool { return len(s.Nodes) > 1 }

// InOrder reports whether the members of each node come after those of the node before, as prefixes over nodes need it.
func (s *Shape) InOrder() bool {
	next := 0
	for _, members := range s.Nodes {
		for _, m := range members {
			if m != next {
				return false
			}
			next++
		}
	}
	return true
}

// Leader is the first member of this member's node; in a flat team nobody in particular.
func (s *Shape) Leader() int { return s.Nodes[s.Mine][0] }

// NodeOf returns the place of member's node among Nodes, or -1.
func (s *Shape) NodeOf(member int) int {
	for i, members := range s.Nodes {
		if slices.Contains(members, member) {
			return i
		}
	}
	return -1
}

// Behind returns how far place me of n lies behind place root, in a circle.
func Behind(me, root, n int) int {
	d := me - root
	if d < 0 {
		d += n
	}
	return d
}

// Toward returns how many places, this one's and those before it in the circle, a gather reads in phase p at dist or has read by then, at most:
// 0 where there is nothing to read. Of a gather to root alone (all members: root < 0) that is what gets there by way of this place, along a
// binomial tree: the place d before root's reads from the one dist before it where dist is below the lowest bit of d.
func (s *Shape) Toward(p *Phase, root, dist int) (most int) {
	n, to := len(p.Members), 0 // in a node the first member
	switch {
	case p.Area == Release:
		return 0
	case root < 0:
		return n
	case p.Area == Leaders:
		to = s.NodeOf(root)
	case !s.Levels():
		to = root
	}
	d := Behind(to, p.Me, n)
	if d&(2*dist-1) != 0 || d+dist >= n {
		return 0
	}
	return n - d
}

// Gathered returns how many slots of a gather a member has of p before it hears from the one dist places before it, and how many
// of that one's it reads then, up to those of most places.
func (s *Shape) Gathered(p *Phase, dist, most int) (have, more int) {
	n := len(p.Members)
	if p.Area != Leaders {
		return dist, min(dist, most-dist)
	}
	for i := range dist {
		have += len(s.Nodes[Behind(p.Me, i, n)])
	}
	for i := dist; i < min(2*dist, most); i++ {
		more += len(s.Nodes[Behind(p.Me, i, n)])
	}
	return have, more
}

// Order lists the members in the order in which a gather leaves their slots.
func (s *Shape) Order(me int) []int {
	var out []int
	if !s.Levels() {
		all := s.Nodes[0]
		for i := range all {
			out = append(out, Behind(me, i, len(all)))
		}
		return out
	}
	for i := range s.Nodes {
		local := s.Nodes[Behind(s.Mine, i, len(s.Nodes))]
		for j := range local {
			out = append(out, local[Behind(0, j, len(local))]) // as its first member has them
		}
	}
	return out
}
