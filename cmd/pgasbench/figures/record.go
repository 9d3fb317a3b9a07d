package figures

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"gopgas/internal/trace"
	"gopgas/pgas"
	"gopgas/window"
)

// recorded is accuracy on traces that are recorded now, in real time, with phases of 100 ms and more by the clock: what is in
// them of jitter is this machine's own, and what Options.Spikes puts in.
func recorded(ctx context.Context, o *Options) (*Result, error) {
	phase := or(o.Compute, 100*time.Millisecond)
	own := *o
	own.Traces = nil
	for _, p := range []struct {
		name string
		run  func(*play, int)
	}{{"microbenchmark", (*play).threeBuffers}, {"nested loops", (*play).nestedLoops}} {
		o.say("recording the %s, phases of %v", p.name, phase)
		files, err := record(ctx, o, phase, p.run)
		if err != nil {
			return nil, fmt.Errorf("record the %s: %w", p.name, err)
		}
		own.Traces = append(own.Traces, Trace{p.name, files})
	}
	res, err := accuracy(ctx, &own)
	if err != nil {
		return nil, err
	}
	res.Kind = "traces recorded in real time on the " + o.Transport + " NIC of this machine, replayed with registrations free"
	res.Notes = append(res.Notes, fmt.Sprintf("phases of %v by sleeping, of which %g were made 5 to 20 %% longer; what else varies is this machine's doing",
		phase, o.Spikes))
	return res, nil
}

// record runs a program in a world that records and reads the trace.
func record(ctx context.Context, o *Options, phase time.Duration, run func(*play, int)) (files []*trace.File, err error) {
	dir, err := os.MkdirTemp("", "pgasbench-trace-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	w, err := pgas.Init(ctx, &pgas.Config{
		Transport: o.Transport, NoLocal: true, Trace: dir, MaxPinned: headroom, Environ: []string{},
	})
	if err != nil {
		return nil, err
	}
	end := context.WithoutCancel(ctx) // the files lie in dir until the world is closed
	p := &play{ctx: ctx, phase: phase, spikes: o.Spikes, rng: rand.New(rand.NewPCG(or(o.Seed, 1), 0x7265616c))}
	if p.win, err = window.Allocate[byte](ctx, w.Team(), or(o.Bytes, 1<<20)); err == nil {
		for i := range p.bufs {
			p.bufs[i] = make([]byte, p.win.Len(0))
			for j := range p.bufs[i] {
				p.bufs[i][j] = byte(j) ^ byte(i+1)
			}
		}
		run(p, or(o.Iterations, 40))
		err = errors.Join(p.err, p.win.Free(end))
	}
	if err = errors.Join(err, w.Close(end)); err != nil {
		return nil, err
	}
	if files, err = trace.ReadDir(dir); err != nil {
		return nil, err
	}
	for _, f := range files {
		for i := range f.Events {
			f.Events[i].Peer = -1 // the rank itself stands for one on another node
		}
	}
	return files, nil
}

// play is a program under way.
type play struct {
	ctx    context.Context // when it ends the program does
	win    *window.Window[byte]
	bufs   [buffers][]byte
	phase  time.Duration
	spikes float64
	rng    *rand.Rand
	err    error
}

func (p *play) put(b []byte) {
	if p.err == nil {
		p.err = p.win.Put(0, 0, b)
	}
	if p.err == nil {
		p.err = p.win.Flush(0)
	}
}

func (p *play) compute(d time.Duration) {
	if p.rng.Float64() < p.spikes {
		d += time.Duration(float64(d) * (0.05 + 0.15*p.rng.Float64()))
	}
	if p.err != nil {
		return
	}
	select {
	case <-time.After(d):
	case <-p.ctx.Done():
		p.err = p.ctx.Err()
	}
}

func (p *play) threeBuffers(iterations int) {
	for range iterations {
		for _, b := range p.bufs {
			p.put(b)
			p.compute(p.phase)
		}
	}
}

// nestedLoops is figure 4 of the paper: the first call of each loop has another period than the second.
func (p *play) nestedLoops(iterations int) {
	for range iterations {
		for range 2 {
			p.put(p.bufs[0])
			p.compute(p.phase)
		}
		for range 2 {
			p.put(p.bufs[1])
			p.compute(p.phase * 3 / 2)
		}
	}
}
