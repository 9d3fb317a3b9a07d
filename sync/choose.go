package pgsync

// method is how a collective is carried out; choose decides. The costs below are for n members and B bytes of each; a
// barrier stands for its rounds and messages.
type method int

const (
	// direct: every member reads what it needs from its owner. One barrier and n-1 reads at once (n for a result), each
	// of B bytes; the least latency among few.
	direct method = iota
	// gathered: everybody gets everything in ceil(log2 n) reads between the rounds of one barrier, n·B bytes in all
	// (Bruck, Ho, Kipnis, Upfal, Weathersby 1997).
	gathered
	// relayed: the root's bytes go on along a binomial tree, in ceil(log2 n) reads between the rounds of one barrier; nobody
	// is read by more than log2 n others (the tree of Johnsson and Ho 1989, for spanning a hypercube).
	relayed
	// segmented: two barriers; each member reads a part of B/n from all, combines, and all read the results. 2·B bytes
	// for each member instead of n·B (the reduce-scatter and all-gather of Rabenseifner 2004, here by direct reads, which
	// keeps the order of ranks).
	segmented
	// doubled: partial results go on in the rounds of one barrier, each of which doubles whose they are; for integers only, which give
	// the same bits in any order. ceil(log2 n) reads of B bytes, or 2·B where n is no power of 2 (Bruck and Ho 1993). Where ranks
	// share nodes n counts these: a node is combined by its first member and reads the result from it.
	doubled
	// nodal: of n members on N nodes, k on each. In all-gathers a member reads a share of what its node needs, and the others
	// read that from it: n·B bytes for each node instead of k·n·B. Reductions take three or four barriers: for integers a node combines what it has, each member a k-th; then
	// nodes combine that, each member reading its k-th from N-1 others, or where there are more than few an n-th, and then the rest of a
	// k-th; then a node's members read from each other. Others are combined as if segmented, in the order of ranks, and the results come
	// to a node once. A node reads (N-1)·B bytes from others, or 2·B (others: (k+1)·B), instead of 2·k·B (levels in reductions: Karonis
	// et al. 2000; all members of a node with other nodes, side by side: Bayatpour et al. 2017).
	nodal
	// handed: each member pushes what it has to all that want it, and its flag behind that: one turn, without a barrier's rounds or a read, where few members
	// reach each other through a NIC (file push.go). B bytes to each of the others.
	handed
)

func (m method) String() string {
	return [...]string{"direct", "gathered", "relayed", "segmented", "doubled", "nodal", "handed"}[m]
}

// few is how many members read from each other directly faster than in log2 n dependent steps.
const few = 8

// leastSegmented is the length from which a second barrier is cheaper than reading everything from everybody.
const leastSegmented = 8 << 10

// fewNodes is how many nodes combine results by reading from each other directly: an outbox-full of each takes as long as one more barrier.
const fewNodes = 8

// leastNodal is how many members a node must have, on average, so that further barriers are cheaper than reading from other nodes for
// each of them; of what is combined in the nodes first, fewer. (In virtual time, a network of 100 Gbit/s: 16 ranks on 4 nodes take 12 µs
// instead of 18 for 8 KiB of integers, 64 on 8 take 24 instead of 72, and for floats 48.)
const leastNodal, leastNodalExact = 4, 2

// leastOffered is the length from which members offer what they have, where that spares turns. A turn of pushing costs less than one of offering, since the next
// part sets out meanwhile.
const leastOffered = 256 << 10

// leastShared is that where members map each other's memory, and what they have lies in such.
const leastShared = 16 << 10

// worthOffering says whether so many bytes of a member, of which outboxes take part in a turn, travel by offers (file offer.go).
func worthOffering(bytes, part int, pushes bool) bool {
	if pushes {
		part *= 2
	}
	return bytes >= leastOffered && bytes > part
}

// query is what choose decides by.
type query struct {
	op       string
	n, nodes int  // members, and on how many nodes: 1 where they are all alike
	bytes    int  // of each member
	exact    bool // a reduction that gives the same bits in any order
	smallest int  // members of the smallest node, in all-gathers
	pushes   bool // members push what they have for each other
}

// circle is how many take part in the rounds between those who are alike.
func (q query) circle() int {
	if q.nodes > 1 {
		return q.nodes
	}
	return q.n
}

// choose picks the method of a collective.
func choose(q query) method {
	levels, slot := q.nodes > 1, slotBytes(q.n)
	switch q.op {
	case "broadcast":
		if q.n > few || levels {
			return relayed
		}
	case "allgather", "exchange":
		switch {
		case q.n > few && q.bytes <= slot:
			return gathered
		case q.op == "allgather" && sharesPay(q.n, q.nodes, q.smallest, q.bytes, boxPayload(q.n)):
			return nodal
		}
	case "reduce", "allreduce":
		all, least := q.op == "allreduce", leastNodal
		if q.exact {
			least = leastNodalExact
		}
		switch {
		case q.exact && (q.n > few && (all || levels) || all && q.nodes == 2) && q.bytes <= combineBytes(boxPayload(q.n), q.circle()):
			return doubled
		case all && q.n > few && q.bytes <= slot:
			return gathered
		case all && levels && q.n >= least*q.nodes && (q.n > few || q.bytes >= leastSegmented):
			return nodal
		case q.n > 2 && q.bytes >= leastSegmented || q.n > few && q.bytes > slot:
			return segmented
		}
	}
	if q.pushes && q.bytes > 0 {
		return handed
	}
	return direct
}
