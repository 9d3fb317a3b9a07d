package replay

import (
	"fmt"

	"gopgas/internal/predict"
)

// world is all nodes of a replay. What happens on them is handled in the order of time, at equal times in that of nodes.
type world struct {
	nodes []*node // a heap by when something happens next
	where []*node // by rank
	ranks []*rank // by rank
	seq   uint64  // messages sent
}

// before reports whether what happens next on one node comes before what happens on another.
func (n *node) before(o *node) bool {
	if n.next.at != o.next.at {
		return n.next.at < o.next.at
	}
	return n.number < o.number
}

func (w *world) swap(i, j int) {
	w.nodes[i], w.nodes[j] = w.nodes[j], w.nodes[i]
	w.nodes[i].place, w.nodes[j].place = i, j
}

// sift moves the node at a place up or down to where it belongs.
func (w *world) sift(i int) {
	for i > 0 && w.nodes[i].before(w.nodes[(i-1)/2]) {
		w.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
	w.down(i)
}

// down moves the node at a place down to where it belongs.
func (w *world) down(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(w.nodes); c++ {
			if w.nodes[c].before(w.nodes[least]) {
				least = c
			}
		}
		if least == i {
			return
		}
		w.swap(i, least)
		i = least
	}
}

// post has a message arrive at a rank.
func (w *world) post(to int, m message) {
	w.seq++
	m.seq = w.seq
	w.ranks[to].hose.put(m)
	n := w.where[to]
	n.look()
	w.sift(n.place)
}

// run handles all that happens.
func (w *world) run() error {
	for i, n := range w.nodes {
		n.place = i
		n.look()
	}
	for i := len(w.nodes) - 1; i >= 0; i-- { // below each place all is in order already, and only that is looked at
		w.down(i)
	}
	for w.nodes[0].next.what != nothing {
		n := w.nodes[0]
		if err := n.step(); err != nil {
			return err
		}
		n.look()
		w.sift(n.place)
	}
	for _, r := range w.ranks {
		if r.hose.waits() {
			return fmt.Errorf("rank %d waits for buckets of rank %d for ever", r.id, r.hose.flow.e.Peer)
		}
	}
	return nil
}

// next is what happens on a node.
type next struct {
	what  int
	at    predict.Nanos
	index int // of the rank on the node
}

// look finds out what happens next, to the first rank of those to whom it happens at that time.
func (n *node) look() {
	n.next = next{what: nothing, at: predict.Never}
	for i, r := range n.ranks {
		if w, t := r.upcoming(n.cores[r.core].free); w != nothing && t < n.next.at {
			n.next = next{w, t, i}
		}
	}
}
