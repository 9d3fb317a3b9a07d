package proto

import (
	"context"

	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/internal/trace"
)

// GetRunsNB begins what GetRuns does, and appends to hs the handles of what is under way: one for each stretch of short runs from
// one rank, one for each long run. dst belongs to the engine until they are done. It may wait for room. On an error nothing is
// under way any more, except what hs held before.
func (e *Engine) GetRunsNB(op string, count int, run func(int) Run, dst mem.Range, hs []Handle) ([]Handle, error) {
	if e.record == nil {
		return e.getRunsNB(op, count, run, dst, hs)
	}
	before := len(hs)
	event, v := e.record.runs(trace.Get, op)
	hs, err := e.getRunsNB(op, count, run, dst, hs)
	e.record.overRuns(&event, &v, count, run, dst, len(hs) > before)
	return hs, err
}

func (e *Engine) getRunsNB(op string, count int, run func(int) Run, dst mem.Range, hs []Handle) ([]Handle, error) {
	before := len(hs)
	var err error
	for first, next := 0, 0; first < count && err == nil; first = next {
		var how pace
		how, next = e.stretch(count, first, run)
		part := func(i int) Run { return run(first + i) }
		switch how {
		case atOnce:
			err = e.getRuns(op, next-first, part, dst)
		case short:
			hs, err = e.nic().getShort(op, next-first, part, dst, hs)
		case long:
			r, _ := whole(next-first, 0, part)
			var h Handle
			if h, err = e.getNB(r.To, r.Far, dst.Slice(r.Near, r.Bytes)); nic.OfNIC(h) {
				hs = append(hs, h)
			}
		}
	}
	return begun(hs, before, err)
}

// pace is how a run of a non-blocking transfer goes.
type pace uint8

const (
	atOnce pace = iota // it is a copy, or has to wait for buckets
	short              // with others, in slots
	long               // by itself
)

func (e *Engine) pace(r Run) pace {
	switch {
	case r.Bytes == 0 || r.To.Mapped.Bytes != 0 || r.To.hosed != nil:
		return atOnce
	case r.Bytes > e.nic().Slot:
		return long
	}
	return short
}

// stretch returns the pace of the run that begins at number first, and the number of the first that does not go with it.
func (e *Engine) stretch(count, first int, run func(int) Run) (how pace, next int) {
	r, next := whole(count, first, run)
	how = e.pace(r)
	for how != long && next < count {
		r, behind := whole(count, next, run)
		if e.pace(r) != how {
			break
		}
		next = behind
	}
	return how, next
}

// getShort begins a stretch of short runs, with a transfer for each rank in turn.
func (n *device) getShort(op string, count int, run func(int) Run, dst mem.Range, hs []Handle) ([]Handle, error) {
	var open Handle // the last of hs, kept open by a part that does not end by itself
	rank := nobody  // whose it is
	err := n.destinations(op, count, run, dst)
	for i := 0; i < count && err == nil; {
		var r Run
		r, i = whole(count, i, run)
		if !nic.OfNIC(open) || rank != r.To.Rank {
			if nic.OfNIC(open) {
				n.PartDone(open, nil)
			}
			if open, err = n.Begin(op, r.To.Rank); err != nil {
				return hs, err
			}
			hs, rank = append(hs, open), r.To.Rank
		}
		if err = n.reach(op, r.To, r.Far, r.Bytes); err == nil {
			n.e.counts.add(PathBounce, r.To.Rank, r.Bytes)
			err = n.getPart(op, open, r.To, r.Far, dst.Slice(r.Near, r.Bytes))
		}
	}
	if nic.OfNIC(open) {
		n.PartDone(open, nil)
	}
	return hs, err
}

// begun returns the handles of a call, or waits for those that it has begun where it ends in an error.
func begun(hs []Handle, before int, err error) ([]Handle, error) {
	if err == nil {
		return hs, nil
	}
	for _, h := range hs[before:] {
		_ = h.Wait(context.Background())
	}
	return hs[:before], err
}

// PutRunsNB begins what PutRuns does: short runs are copied and done with src at once, and hs gets a handle for each long one, which
// may go from src itself. Otherwise as GetRunsNB.
func (e *Engine) PutRunsNB(op string, count int, run func(int) Run, src mem.Range, hs []Handle) ([]Handle, error) {
	before := len(hs)
	var err error
	for first, next := 0, 0; first < count && err == nil; first = next {
		var how pace
		how, next = e.stretch(count, first, run)
		part := func(i int) Run { return run(first + i) }
		if how != long {
			err = e.PutRuns(op, next-first, part, src)
			continue
		}
		r, _ := whole(next-first, 0, part)
		var h Handle
		if h, err = e.PutNB(r.To, r.Far, src.Slice(r.Near, r.Bytes)); nic.OfNIC(h) {
			hs = append(hs, h)
		}
	}
	return begun(hs, before, err)
}
