package figures

import (
	"bytes"
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"gopgas/pgas"
	"gopgas/window"
)

// SeatWork is what a rank of the figure seats does: calls of put and flush from three buffers by turns, and computing after each.
type SeatWork struct {
	Bytes, Iterations int
	Compute           time.Duration // by the clock, so that periods do not depend on how many share a core
}

// SeatReport is what such a rank has seen.
type SeatReport struct {
	Rank         int
	Calls        []float64 // microseconds of each, after the learning
	Peak         int64     // bytes registered
	Average      float64
	Hits, Misses uint64
	Predicted    uint64
	Seated       int      // of the calls after the learning, those at whose end the rank had a helper
	Posted       []uint64 // registered bytes that the ranks of this node have told each other, at the end
}

// Run does it as one rank of a world; each puts to the next, the last to the first. It is collective. Ranks of one node are to share memory, in
// which they post; a rank alone is not, or it would copy by itself.
func (s SeatWork) Run(ctx context.Context, w *pgas.World) (*SeatReport, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection would drop what is idle, under any policy
	r := &SeatReport{Rank: w.Rank()}
	var bufs [buffers][]byte
	for i := range bufs {
		bufs[i] = s.pattern(r.Rank, i)
	}
	win, err := window.Create(ctx, w.Team(), make([]byte, s.Bytes)) // which no other process can map, so that the NIC moves the bytes
	if err != nil {
		return nil, err
	}
	clear(win.Local()) // touches every page
	if err := win.Fence(ctx); err != nil {
		return nil, err
	}
	next, before := (r.Rank+1)%w.Size(), (r.Rank+w.Size()-1)%w.Size()
	for i := range s.Iterations * buffers {
		began := time.Now()
		if err := win.Put(next, 0, bufs[i%buffers]); err != nil {
			return nil, err
		}
		if err := win.Flush(next); err != nil {
			return nil, err
		}
		took := time.Since(began)
		if i >= min(learning*buffers, s.Iterations*buffers-1) {
			r.Calls = append(r.Calls, took.Seconds()*1e6)
			if now, _ := w.Registered(); now.Prediction.Helper {
				r.Seated++
			}
		}
		busy(s.Compute)
	}
	now, _ := w.Registered()
	r.Peak, r.Average, r.Hits, r.Predicted = now.PeakBytes, now.AverageBytes, now.Hits, now.Prediction.Made
	r.Misses = now.MissCold + now.MissPartial + now.MissRights
	for _, p := range w.Team().Engine().Posts() {
		r.Posted = append(r.Posted, p.Bytes)
	}
	if err := win.Fence(ctx); err != nil {
		return nil, err
	}
	if !bytes.Equal(win.Local(), s.pattern(before, buffers-1)) { // F1
		return nil, fmt.Errorf("wrong result at the target: it does not hold what rank %d put last", before)
	}
	return r, win.Free(ctx)
}

// pattern is a rank's buffer of that number.
func (s SeatWork) pattern(rank, number int) []byte {
	b := make([]byte, s.Bytes)
	for i := range b {
		b[i] = byte(i>>8) ^ byte(i)*3 ^ byte(rank*buffers+number+1)
	}
	return b
}

// busy computes for so long.
func busy(d time.Duration) (x uint64) {
	for began := time.Now(); time.Since(began) < d; {
		for range 1000 {
			x = x*6364136223846793005 + 1442695040888963407
		}
	}
	return x
}
