package seats

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Nanos is a duration in nanoseconds.
type Nanos = int64

// Policy is a policy for the cores of a node on which no rank computes (section 5).
type Policy uint8

// Policies. Where no core is idle no rank has a helper; where there are enough, each helper has a core of its own.
const (
	None         Policy = iota // none
	Conservative               // one helper per idle core, for the ranks that register the most
	Aggressive                 // a helper for every rank, spread evenly over the idle cores
	Auto                       // whichever of the two saves more, by what the ranks have posted
)

// policyNames are the policies' names on a command line.
var policyNames = [...]string{None: "none", Conservative: "conservative", Aggressive: "aggressive", Auto: "auto"}

// String returns the name that Parse takes.
func (p Policy) String() string { return policyNames[p] }

// Parse returns the policy of that name.
func Parse(name string) (Policy, error) {
	if i := slices.Index(policyNames[:], name); i >= 0 {
		return Policy(i), nil
	}
	return 0, fmt.Errorf("idle-core policy %q: want one of: %s", name, strings.Join(policyNames[:], ", "))
}

// Post is what a rank tells the others of its node.
type Post struct {
	Bytes uint64 // registered now
	// Gap is the median period of the sites whose next use is predicted; 0: unknown. Equation 2 is asked for each region by itself: a
	// helper that acts later than the shortest period still gives back all others, one later than the median at most half.
	Gap Nanos
}

// Node is what seats depend on beside the posts.
type Node struct {
	Cores       int   // of the node
	Spare       []int // numbers of the first idle cores, where ranks are bound to others: a helper there has to be bound too
	Slice, Swap Nanos // t_slice and t_cs, of the kernel's scheduler
	Work        Nanos // t_p of a typical region
	Seed        uint64
}

// Seat is where a rank's helper runs. The zero Seat is none: the rank leaves its memory registered.
type Seat struct {
	Has     bool
	Core    int // of the idle cores, from 0
	Helpers int // on that core
}

// CoreOf returns the number of a seat's core; ok is false where the kernel is to choose among those that ranks leave free.
func (n Node) CoreOf(s Seat) (core int, ok bool) {
	if !s.Has || s.Core >= len(n.Spare) {
		return 0, false
	}
	return n.Spare[s.Core], true
}

// Assign returns the seat of each rank's helper. All helpers of a node that see the same posts come to the same result.
func Assign(policy Policy, n Node, posts []Post) []Seat {
	free := n.Cores - len(posts)
	seats := make([]Seat, len(posts))
	if policy == None || free <= 0 {
		return seats
	}
	most := byBytes(posts, n.Seed)
	if len(posts) <= free {
		policy = Conservative // one each
	}
	if policy == Auto {
		policy = n.choose(posts, most[:free], free)
	}
	if policy == Conservative {
		for i, rank := range most[:min(free, len(most))] {
			seats[rank] = Seat{Has: true, Core: i, Helpers: 1}
		}
		return seats
	}
	for rank := range posts {
		core := rank % free
		seats[rank] = Seat{Has: true, Core: core, Helpers: (len(posts) - core + free - 1) / free}
	}
	return seats
}

// choose compares the bytes of ranks whose helper can act between two uses of most of their regions: of all if they share cores, which makes
// each act later by equation 2, or of the few that get a core. On a tie the authors favour the latter.
func (n Node) choose(posts []Post, few []int, free int) Policy {
	shared := Sharing((len(posts)+free-1)/free, n.Slice, n.Swap)
	var all, some uint64
	for _, p := range posts {
		if p.Gap > n.Work+shared {
			all += p.Bytes
		}
	}
	for _, rank := range few {
		if posts[rank].Gap > n.Work {
			some += posts[rank].Bytes
		}
	}
	if all > some {
		return Aggressive
	}
	return Conservative
}

// byBytes returns the ranks, those with the most bytes first; ties fall as the seed has it.
func byBytes(posts []Post, seed uint64) []int {
	ranks := make([]int, len(posts))
	for i := range ranks {
		ranks[i] = i
	}
	slices.SortFunc(ranks, func(a, b int) int {
		return cmp.Or(cmp.Compare(posts[b].Bytes, posts[a].Bytes),
			cmp.Compare(lot(seed, a), lot(seed, b)), cmp.Compare(a, b))
	})
	return ranks
}

// lot is the rank's number in the draw of that seed (the finalizer of splitmix64).
func lot(seed uint64, rank int) uint64 {
	z := seed + uint64(rank+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Sharing returns the term of equation 2 for n helpers on one core, n(t_slice + t_cs): by how much later than it would
// like a helper must expect to act. It is 0 for a helper with a core of its own.
func Sharing(n int, slice, swap Nanos) Nanos {
	if n <= 1 {
		return 0
	}
	return Nanos(n) * (slice + swap)
}
