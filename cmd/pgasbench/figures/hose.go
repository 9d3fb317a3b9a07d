package figures

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"gopgas/internal/plot"
	"gopgas/pgas"
	"gopgas/window"
)

// The working-set sweep: a window much larger than what may be pinned, and puts that go round in a part of it.
const (
	hoseWindow = 128 << 20
	hosePinned = 24 << 20 // of it all, buffers of the library included
	hoseStride = 64 << 10
	hosePut    = 4 << 10
	hosePasses = 4 // over the working set; the first is not timed
)

// firehose is the time of a put by working set, with memory registered as it is needed and with all of it registered.
func firehose(ctx context.Context, o *Options) (*Result, error) {
	res := &Result{
		Kind:    "measured on the " + o.Transport + " NIC of this machine, one rank that puts to itself",
		Columns: []string{"window", "working_set_bytes", "put_us", "put_us_min", "put_us_quarter", "put_us_max"},
		Notes: []string{
			fmt.Sprintf("puts of %d bytes with flush, %d bytes apart, round and round in the working set; %d timed passes, %d repeats; put_us_quarter: a quarter of the puts took less",
				hosePut, hoseStride, hosePasses-1, o.Reps),
			fmt.Sprintf("window of %d bytes; budgeted: %d bytes may be registered in all; static: as many as there are", hoseWindow, hosePinned),
		},
	}
	chart := plot.Chart{
		Title: "a put by working set: a quarter took less",
		X:     plot.Axis{Label: "bytes of the working set", Log: 2, Bytes: true}, Y: plot.Axis{Label: "us", Log: 10},
	}
	sets := Sizes(1<<20, hoseWindow, o.Fine)
	for _, k := range []struct {
		name   string
		pinned int64
	}{{"budgeted", hosePinned}, {"static", hoseWindow + headroom}} {
		o.say("%s", k.name)
		all, err := sweepSets(ctx, o, k.pinned, sets)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.name, err)
		}
		s := plot.Series{Name: k.name}
		for i, set := range sets {
			v := spreadOf(all[i])
			quarter := spreadOf(below(all[i], v.median)).median
			res.Rows = append(res.Rows, []any{k.name, set, v.median, v.least, quarter, v.most})
			s.Points = append(s.Points, plot.Point{X: float64(set), Y: quarter})
		}
		chart.Series = append(chart.Series, s)
	}
	res.Charts = []Chart{{"", chart}}
	return res, nil
}

// below are the values that do not exceed most.
func below(values []float64, most float64) (out []float64) {
	for _, v := range values {
		if v <= most {
			out = append(out, v)
		}
	}
	return out
}

// sweepSets returns the times of the puts of each working set, in microseconds.
func sweepSets(ctx context.Context, o *Options, pinned int64, sets []int) (all [][]float64, err error) {
	w, err := pgas.Init(ctx, &pgas.Config{Transport: o.Transport, NoLocal: true, MaxPinned: pinned, Environ: []string{}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Close(ctx)) }()
	win, err := window.Allocate[byte](ctx, w.Team(), hoseWindow)
	if err != nil {
		return nil, err
	}
	clear(win.Local()) // touches every page
	src := make([]byte, hosePut)
	all = make([][]float64, len(sets))
	for range o.Reps {
		for i, set := range sets {
			for pass := range hosePasses {
				src[0], src[hosePut-1] = byte(pass+1), byte(i+1)
				for off := 0; off < set; off += hoseStride {
					began := time.Now()
					if err := errors.Join(win.Put(0, off, src), win.Flush(0)); err != nil {
						return nil, err
					}
					if pass > 0 {
						all[i] = append(all[i], us(time.Since(began)))
					}
				}
			}
			for off := 0; off < set; off += hoseStride { // F1
				if !bytes.Equal(win.Local()[off:off+hosePut], src) {
					return nil, fmt.Errorf("wrong result at the target: %d bytes at %d are not what was put last", hosePut, off)
				}
			}
		}
	}
	return all, win.Free(ctx)
}
