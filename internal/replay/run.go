package replay

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"gopgas/firehose"
	"gopgas/internal/predict"
	"gopgas/internal/seats"
	"gopgas/internal/trace"
)

// Config is what a trace is replayed with.
type Config struct {
	Policy    Policy
	Costs     Costs
	Predictor predict.Config // its Costs are overwritten by those above
	Queue     int            // entries of the DQ; 0: its default

	Nodes        int // 0: as many as RanksPerNode makes; both 0: as recorded
	RanksPerNode int
	Cores        int          // of a node; 0: two for each rank, so that every helper has its own
	Idle         seats.Policy // for nodes with fewer idle cores than ranks
	Shuffle      bool         // ranks are grouped at random, by Seed, not in blocks
	Limit        int64        // bytes that a rank may have registered, for whomever; 0: no limit
	Hose         *Hose        // nil: memory of other nodes is registered as a whole, beforehand, and costs nothing
	Threshold    int          // bytes; 0: 16 KiB, the paper's
	Seed         uint64
	Series       int // parts of time for which each node's peak is returned
}

const (
	defaultThreshold   = 16 << 10
	defaultPeriodicity = 64
)

// LimitError is how a run under a policy that neither gives back nor copies ends.
type LimitError struct{ Registered, Needed, Limit int64 }

// Error says what was there, what was needed, and the cure.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%d bytes are registered and %d more would exceed the limit of %d; leavepinned-noevict neither gives "+
		"memory back nor copies: raise the limit or take another policy", e.Registered, e.Needed, e.Limit)
}

// Run replays the files of a trace, one for each rank.
func Run(files []*trace.File, c Config) (*Result, error) {
	if c.Threshold == 0 {
		c.Threshold = defaultThreshold
	}
	if err := check(files); err != nil {
		return nil, err
	}
	w, err := c.world(files)
	if err != nil {
		return nil, err
	}
	var budget firehose.Budget
	if c.Hose != nil {
		if budget, err = w.connect(&c, files); err != nil {
			return nil, err
		}
	}
	if err := w.run(); err != nil {
		return nil, fmt.Errorf("replay with %s: %w", c.Policy, err)
	}
	slices.SortFunc(w.nodes, func(a, b *node) int { return a.number - b.number })
	res := &Result{Policy: c.Policy.String()}
	res.gather(w.nodes, c.Series)
	if c.Hose == nil {
		return res, nil
	}
	res.Hose = hoseResult(budget, w.ranks)
	return res, res.Hose.compare(files, c, w.ranks[0].cache.account)
}

// What a transfer may be: no program's is longer, and times add up.
const (
	mostBytes = 1 << 40
	mostTime  = 1 << 61
)

// check refuses transfers that no program makes, as a file has them that is not what was written: whoever cuts up what is that long, or counts its
// pages, would not come to an end.
func check(files []*trace.File) error {
	for _, f := range files {
		for i := range f.Events {
			switch e := &f.Events[i]; {
			case e.Bytes > mostBytes:
				return fmt.Errorf("replay: rank %d, call %d: a transfer of %d bytes: want at most %d", f.Rank, i, e.Bytes, int64(mostBytes))
			case e.At < -mostTime || e.At > mostTime || e.Took < 0 || e.Took > mostTime:
				return fmt.Errorf("replay: rank %d, call %d: %d ns long from %d ns on: want times of at most %d", f.Rank, i, e.Took, e.At, int64(mostTime))
			}
		}
	}
	return nil
}

// world makes the nodes.
func (c *Config) world(files []*trace.File) (*world, error) {
	nodes, err := group(files, c)
	if err != nil {
		return nil, err
	}
	where := map[int]int{}
	for n, ranks := range nodes {
		for _, f := range ranks {
			where[f.Rank] = n
		}
	}
	all := &world{where: make([]*node, len(files)), ranks: make([]*rank, len(files))}
	for n, ranks := range nodes {
		x := newNode(c, ranks, func(peer int) bool { w, ok := where[peer]; return ok && w == n })
		x.number = n
		all.nodes = append(all.nodes, x)
		for _, r := range x.ranks {
			all.where[r.id], all.ranks[r.id] = x, r
		}
	}
	return all, nil
}

// connect gives the ranks firehoses to each other.
func (w *world) connect(c *Config, files []*trace.File) (firehose.Budget, error) {
	b, limit, err := c.budgetOf(len(files))
	if err != nil {
		return b, err
	}
	a, err := mapRanges(files)
	if err != nil {
		return b, fmt.Errorf("replay: %w", err)
	}
	for _, r := range w.ranks {
		r.cache.account.limit = limit
		if err := r.join(b, a, w.post); err != nil {
			return b, err
		}
	}
	return b, nil
}

// group says which ranks share a node.
func group(files []*trace.File, c *Config) ([][]*trace.File, error) {
	if len(files) == 0 {
		return nil, fmt.Errorf("replay: the trace has no ranks")
	}
	per := c.RanksPerNode
	switch {
	case per == 0 && c.Nodes > 0:
		per = (len(files) + c.Nodes - 1) / c.Nodes
	case per == 0:
		return recorded(files), nil
	case c.Nodes > 0 && per*c.Nodes < len(files):
		return nil, fmt.Errorf("replay: %d nodes of %d ranks are too few for the trace's %d ranks", c.Nodes, per, len(files))
	}
	order := append([]*trace.File(nil), files...)
	if c.Shuffle {
		rng := rand.New(rand.NewPCG(c.Seed, 0x67726f7570))
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	var nodes [][]*trace.File
	for len(order) > 0 {
		n := min(per, len(order))
		nodes, order = append(nodes, order[:n]), order[n:]
	}
	return nodes, nil
}

// recorded groups ranks as they ran.
func recorded(files []*trace.File) [][]*trace.File {
	var nodes [][]*trace.File
	at := map[int]int{}
	for _, f := range files {
		i, ok := at[f.Node]
		if !ok {
			i = len(nodes)
			at[f.Node] = i
			nodes = append(nodes, nil)
		}
		nodes[i] = append(nodes[i], f)
	}
	return nodes
}

// node is what ranks share: the meter, the idle cores, the board.
type node struct {
	cfg    *Config
	number int
	place  int // in the world's heap
	next   next
	ranks  []*rank
	meter  meter
	lent   meter // of that, for other nodes
	posts  []seats.Post
	cores  []core
	seats  uint64 // how often seats were given
}

// core is an idle core, on which helpers take turns.
type core struct {
	free predict.Nanos
	last int // who ran there last
}

func newNode(c *Config, files []*trace.File, here func(int) bool) *node {
	n := &node{cfg: c, posts: make([]seats.Post, len(files))}
	for _, f := range files {
		n.ranks = append(n.ranks, newRank(c, f, here, &n.meter, &n.lent))
	}
	n.cores = make([]core, max(1, n.allCores()-len(files)))
	n.seat()
	return n
}

func (n *node) allCores() int {
	if n.cfg.Cores > 0 {
		return n.cfg.Cores
	}
	return 2 * len(n.ranks)
}

// seat gives seats to helpers by what has been posted. A rank without one leaves its memory registered.
func (n *node) seat() {
	if !n.cfg.Policy.helped() {
		return
	}
	n.seats++
	costs := n.cfg.Costs.forHelper()
	idle := n.cfg.Idle
	if n.cfg.Cores == 0 {
		idle = seats.Conservative // a core each
	}
	about := seats.Node{
		Cores: n.allCores(), Slice: n.cfg.Costs.Slice, Swap: n.cfg.Costs.Swap, Work: costs.GiveBack(256, 0), Seed: n.cfg.Seed,
	}
	for i, s := range seats.Assign(idle, about, n.posts) {
		r := n.ranks[i]
		r.helped, r.core = s.Has, s.Core
		r.mind.Costs().Sharing = seats.Sharing(s.Helpers, n.cfg.Costs.Slice, n.cfg.Costs.Swap)
	}
}

// step handles what happens next on the node.
func (n *node) step() error {
	index, at := n.next.index, n.next.at
	who := n.ranks[index]
	switch n.next.what {
	case completes:
		who.complete()
	case arrives:
		return who.arrive(at)
	case turns:
		n.turn(who, index, at)
	case calls:
		if err := who.call(at); err != nil {
			return err
		}
		if who.counts.Calls%seats.PostEvery == 0 && who.counts.Calls > 0 {
			a := &who.cache.account
			a.pass(at) // what the call has begun counts
			n.posts[index] = seats.Post{Bytes: uint64(a.level - a.lentLevel), Gap: who.mind.Gap()}
			n.seat()
		}
	}
	return nil
}

// turn lets a helper have its core for a step.
func (n *node) turn(r *rank, index int, at predict.Nanos) {
	c := &n.cores[r.core]
	if took := r.turn(at); took > 0 {
		if c.last != index {
			took += n.cfg.Costs.Swap
		}
		c.free, c.last = at+took, index
	}
}
