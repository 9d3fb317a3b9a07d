package replay

import (
	"gopgas/firehose"
	"gopgas/internal/predict"
	"gopgas/internal/trace"
)

// flow is a call whose transfer needs buckets: a piece of it after the other asks for its own, and travels when they are there and
// the piece before has left.
type flow struct {
	e      trace.Event
	blocks bool   // the program goes on when the transfer is complete
	t      ending // of all of it
	view   *firehose.View
	ready  predict.Nanos // when this rank's side is prepared
	last   predict.Nanos // when the pieces so far are complete
	done   uint64        // bytes of them

	q    *firehose.Request // what the piece under way asks for; nil: nothing yet
	n    uint64            // its bytes
	uses []predict.Use     // of its buckets, those that the helper is told of
}

// begin starts a transfer whose own side is prepared at a time that may be yet to come: buckets are asked for meanwhile.
func (h *hoseEnd) begin(e *trace.Event, blocks bool, v *firehose.View, ready predict.Nanos, t ending) {
	h.flow = &flow{e: *e, blocks: blocks, t: t, view: v, ready: ready, last: ready}
}

// waits reports whether a call waits for buckets.
func (h *hoseEnd) waits() bool { return h != nil && h.flow != nil }

// goOn moves the call that waits as far as it goes, and ends it when its last piece travels.
func (r *rank) goOn(now predict.Nanos) {
	h := r.hose
	f := h.flow
	for f.done < f.e.Bytes {
		if f.q == nil {
			h.ask(f)
			r.told(now, f)
			h.send(now)
		}
		if f.q.State() == firehose.Waiting {
			return
		}
		r.piece(now, f)
	}
	h.flow, r.free = nil, now
	late := now - f.ready
	if f.blocks {
		late = f.last - f.ready - f.e.Took
	}
	if late > 0 {
		r.pay(late)
		h.counts.Waited += late
	}
	f.t.at = f.last
	r.ends = insertEnding(r.ends, f.t)
	r.end = max(r.end, f.last)
}

// ask asks for the next piece's buckets.
func (h *hoseEnd) ask(f *flow) {
	left := f.e.Bytes - f.done
	off := f.e.Off + f.done
	f.n = h.holder.Piece(f.view, off, min(left, h.half))
	f.q = new(firehose.Request)
	if n := len(h.free); n > 0 {
		f.q, h.free = h.free[n-1], h.free[:n-1]
	}
	f.q.Put = nil
	if f.e.Kind == trace.Put && f.n == left && f.n <= mostCarried && off+f.n <= f.view.End(off) {
		f.q.Put = h.zeros[:f.n]
	}
	h.holder.Acquire(f.view, f.q, off, f.n)
}

// piece begins the transfer of the piece whose request waits no longer.
func (r *rank) piece(now predict.Nanos, f *flow) {
	h := r.hose
	share := part(f.e.Took, f.done+f.n, f.e.Bytes) - part(f.e.Took, f.done, f.e.Bytes)
	f.last = max(f.last, now)
	switch q := f.q; {
	case q.Carried(): // it is there already
		h.counts.Carried++
		r.over(now, f.uses)
		if h.drop(q) {
			h.send(now)
		}
	case q.State() == firehose.Ready:
		f.last += share
		r.ends = insertEnding(r.ends, ending{at: f.last, q: q, hosed: f.uses})
	default: // by message: the owner's processor copies
		h.counts.ByMessage++
		r.over(now, f.uses)
		f.last += share + r.cfg.Costs.copyTime(f.n)
		h.drop(q)
	}
	f.done += f.n
	f.q = nil
}

// part is what of a time goes by with so many bytes of all.
func part(t predict.Nanos, bytes, all uint64) predict.Nanos {
	return predict.Nanos(float64(t) * (float64(bytes) / float64(all)))
}

// drop lets go of a request that is not used, or not any more, and has moves sent that others waited for.
func (h *hoseEnd) drop(q *firehose.Request) (more bool) {
	more = h.holder.Release(q)
	h.free = append(h.free, q)
	return more
}
