package predict

import (
	"slices"
	"sort"
)

// schedule is the RQ: sites by deadline.
type schedule []*site

// insert puts s where its deadline belongs, behind equal ones, and moves deadlines earlier until each item has the
// cost of its own pair (gap) after its predecessor (P3): s before its successor, then, from s down, each predecessor.
func (q *schedule) insert(s *site, gap func(*site) Nanos) {
	i := sort.Search(len(*q), func(i int) bool { return (*q)[i].deadline > s.deadline })
	*q = slices.Insert(*q, i, s)
	items := *q
	for j := min(i, len(items)-2); j >= 0; j-- {
		latest := items[j+1].deadline - gap(items[j+1])
		if items[j].deadline > latest {
			items[j].deadline = latest
		} else if j < i {
			break // what lies before was in order already
		}
	}
}

// remove takes s out.
func (q *schedule) remove(s *site) {
	if i := slices.Index(*q, s); i >= 0 {
		*q = slices.Delete(*q, i, i+1)
	}
}

// vigil holds the awaited sites by expiry.
type vigil []*site

func (v *vigil) insert(s *site) {
	i := sort.Search(len(*v), func(i int) bool { return (*v)[i].expiry > s.expiry })
	*v = slices.Insert(*v, i, s)
}

func (v *vigil) remove(s *site) {
	if i := slices.Index(*v, s); i >= 0 {
		*v = slices.Delete(*v, i, i+1)
	}
}
