package proto

import (
	"cmp"
	"runtime"

	"gopgas/internal/cost"
	"gopgas/internal/mem"
	"gopgas/internal/peers"
	"gopgas/internal/seats"
)

// IdleCores says who of a node has a registration helper, and where.
type IdleCores struct {
	Always bool         // every rank has one, whatever the cores
	Policy seats.Policy // else
	Cores  int          // of this node: those on which ranks compute, one each, and the idle ones; 0: all of the machine
	Spare  []int        // of the idle ones, those to which no rank is bound, by number
	Seed   uint64       // by which ties fall: of the job
}

// What the kernel's scheduler is taken to do with several threads on a core, its time slice and a switch, where the costs do not say.
const (
	assumedSlice = 3_000_000
	assumedSwap  = 5_000
)

// cores is how many of this node there are for ranks and helpers.
func (c IdleCores) cores() int { return cmp.Or(c.Cores, runtime.NumCPU()) }

// node returns what seats depend on, of a machine with such costs.
func (c IdleCores) node(costs *cost.Model) seats.Node {
	return seats.Node{
		Cores: c.cores(), Spare: c.Spare, Seed: c.Seed,
		Slice: cmp.Or(seats.Nanos(costs.Slice), assumedSlice), Swap: cmp.Or(seats.Nanos(costs.Swap), assumedSwap),
	}
}

// near reports whether a rank is of this one's node. Where nobody has said who is on which each has one of its own.
func (e *Engine) near(rank int) bool {
	return rank == e.Rank || len(e.Nodes) == e.Size && e.Nodes[rank] == e.Nodes[e.Rank]
}

// here is how many ranks this node has, and which of them this one is.
func (e *Engine) here() (ranks, index int) {
	for r := range e.Size {
		if r == e.Rank {
			index = ranks
		}
		if e.near(r) {
			ranks++
		}
	}
	return ranks, index
}

// first is the first rank of this node.
func (e *Engine) first() (rank int) {
	for !e.near(rank) {
		rank++
	}
	return rank
}

// newBoard returns the board of this rank's node.
func (e *Engine) newBoard() *seats.Board { return seats.NewBoard(e.here()) }

// openBoard lets the helpers of the node post in the rank blocks, if all of the node are mapped.
func (e *Engine) openBoard(local mem.Range, blocks []Remote) {
	if e.board == nil {
		return
	}
	var places []seats.Place
	for r := range blocks {
		block := blocks[r].Mapped
		switch {
		case r == e.Rank:
			block = local
		case !e.near(r) || block.Bytes == 0:
			continue
		}
		places = append(places, seats.Place{
			Bytes: block.Word64(peers.PostOff), Gap: block.Word64(peers.PostOff + 8), Turn: block.Word64(peers.TurnOff),
		})
	}
	e.board.Open(places)
}

// Posts returns what the ranks of this rank's node have posted for each other, by which their helpers are seated; nil where no NIC has been opened
// with helpers. Zero is what a rank that has not posted has, and all of them where the ranks share no memory.
func (e *Engine) Posts() []seats.Post {
	if e.board == nil {
		return nil
	}
	return e.board.Posts()
}

// takeTurn takes the turn to measure with this node's memory and cores to itself; it reports false while another rank of the node measures.
func (e *Engine) takeTurn() bool {
	return e.board.Take(func(index int) bool {
		for r := range e.Size {
			if !e.near(r) {
				continue
			}
			if index == 0 {
				return e.Peers.Check(r) != nil
			}
			index--
		}
		return true
	})
}

func (e *Engine) leaveTurn() { e.board.Leave() }
