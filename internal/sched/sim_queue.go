package sched

import "time"

// event is an action and its time.
type event struct {
	at  time.Duration
	seq uint64 // equal times: in this order
	arg uint64
	a   Action

	limit bool // the time limit of a wait; see coroutine.limit
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// stale reports whether the event is a time limit that nobody waits for any more. It happens to nobody, so time need not come to it.
func (e *event) stale() bool {
	switch a := e.a.(type) {
	case *coroutine:
		return a.turn != e.arg
	case *timer:
		return a.over
	}
	return false
}

// queue holds what is to happen, as a heap with four children to a node: half as deep as one with two, and the four
// lie side by side.
type queue []event

func (q *queue) push(e event) {
	h := append(*q, e)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !e.before(&h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = e
	*q = h
}

func (q *queue) pop() (event, bool) {
	h := *q
	if len(h) == 0 {
		return event{}, false
	}
	first := h[0]
	n := len(h) - 1
	last := h[n]
	h[n] = event{}
	h = h[:n]
	*q = h
	if n == 0 {
		return first, true
	}
	i := 0
	for {
		c := 4*i + 1
		if c >= n {
			break
		}
		least := c
		for k := c + 1; k < min(c+4, n); k++ {
			if h[k].before(&h[least]) {
				least = k
			}
		}
		if !h[least].before(&last) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = last
	return first, true
}

// sweep takes out what is stale.
func (q *queue) sweep() {
	all := *q
	kept := all[:0]
	for _, e := range all {
		if !e.stale() {
			kept.push(e) // behind where it was read
		}
	}
	clear(all[len(kept):])
	*q = kept
}
