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
)

func (m method) String() string { return [...]string{"direct", "gathered", "relayed", "segmented"}[m] }

// few is how many members read from each other directly faster than in log2 n dependent steps.
const few = 8

// leastSegmented is the length from which a second barrier is cheaper than reading everything from everybody.
const leastSegmented = 8 << 10

// choose picks the method of a collective over n members, of bytes of each; slot is what a gather can carry for each,
// levels says that barriers have levels.
func choose(op string, n, bytes, slot int, levels bool) method {
	switch op {
	case "broadcast":
		if n > few || levels {
			return relayed
		}
	case "allgather", "exchange":
		if n > few && bytes <= slot {
			return gathered
		}
	case "reduce", "allreduce":
		switch {
		case op == "allreduce" && n > few && bytes <= slot:
			return gathered
		case n > 2 && bytes >= leastSegmented || n > few && bytes > slot:
			return segmented
		}
	}
	return direct
}
