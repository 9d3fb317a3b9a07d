package figures

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"gopgas/internal/plot"
	"gopgas/pgas"
	"gopgas/regmgr"
	"gopgas/window"
)

// micro is a run of the microbenchmark under one policy.
type micro struct {
	transport, policy string
	bytes, iterations int
	compute           time.Duration
	fresh             bool  // buffers are not reused
	limit             int64 // of registered bytes; 0: none that matters
}

// buffers is how many there are in an iteration.
const buffers = 3

// learning is how many iterations pass before calls are timed for the median: the predictor needs two misses of a signature,
// and the first two calls of all have signatures of their own.
const learning = 4

// microRun is what a run has shown.
type microRun struct {
	calls   []float64 // seconds of each call
	seconds float64   // from the first call to the end of the last phase
	stats   regmgr.Stats
	refused error
	series  []plot.Point // registered bytes by seconds, where they change
}

// later are the calls after the learning.
func (r *microRun) later() []float64 { return r.calls[min(len(r.calls)-1, learning*buffers):] }

// policies returns the names of all policies.
func policies() []string { return strings.Split(regmgr.Policies(), ", ") }

// headroom is what a world's own buffers need beside the transfers' memory.
const headroom = 256 << 20

// run runs the microbenchmark in a world of its own.
func (m micro) run(ctx context.Context) (r *microRun, err error) {
	bufs := m.memory()
	w, err := pgas.Init(ctx, &pgas.Config{
		Transport: m.transport, NoLocal: true, Bulk: "register", Reg: m.policy, RegThreshold: regmgr.LeastRegistered, RegLimit: m.limit,
		MaxPinned: int64(m.bytes)*int64(len(bufs)+2) + headroom, Environ: []string{},
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Close(ctx)) }()
	win, err := window.Allocate[byte](ctx, w.Team(), m.bytes)
	if err != nil {
		return nil, err
	}
	clear(win.Local()) // touches every page
	r = &microRun{}
	if err := m.calls(w, win, bufs, r); err != nil {
		return nil, err
	}
	r.stats, r.refused = w.Registered()
	return r, win.Free(ctx)
}

// memory returns the buffers of all calls, touched, each with a content of its own.
func (m micro) memory() [][]byte {
	n := buffers
	if m.fresh {
		n *= m.iterations
	}
	out := make([][]byte, n)
	for i := range out {
		out[i] = make([]byte, m.bytes)
		for j := range out[i] {
			out[i][j] = byte(j>>8) ^ byte(j)*3 ^ byte(i*29+1)
		}
	}
	return out
}

func (m micro) calls(w *pgas.World, win *window.Window[byte], bufs [][]byte, r *microRun) error {
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection would drop what is idle, under any policy
	began := time.Now()
	watch := watchRegistered(w, began)
	defer func() { r.series = watch.end() }()
	var last []byte
	for i := range m.iterations * buffers {
		last = bufs[i%len(bufs)]
		call := time.Now()
		if err := win.Put(0, 0, last); err != nil {
			return err
		}
		if err := win.Flush(0); err != nil {
			return err
		}
		r.calls = append(r.calls, time.Since(call).Seconds())
		time.Sleep(m.compute)
	}
	r.seconds = time.Since(began).Seconds()
	if !bytes.Equal(win.Local(), last) { // F1
		return fmt.Errorf("wrong result at the target under %s: it does not hold the %d bytes put last", m.policy, m.bytes)
	}
	return nil
}

// watcher notes the registered bytes every millisecond.
type watcher struct {
	w      *pgas.World
	began  time.Time
	quit   chan struct{}
	done   sync.WaitGroup
	points []plot.Point
}

func watchRegistered(w *pgas.World, began time.Time) *watcher {
	v := &watcher{w: w, began: began, quit: make(chan struct{})}
	v.note()
	v.done.Go(func() {
		t := time.NewTicker(time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-v.quit:
				return
			case <-t.C:
				v.note()
			}
		}
	})
	return v
}

func (v *watcher) note() {
	s, _ := v.w.Registered()
	p := plot.Point{X: time.Since(v.began).Seconds(), Y: float64(s.Bytes)}
	if n := len(v.points); n == 0 || v.points[n-1].Y != p.Y {
		v.points = append(v.points, p)
	}
}

func (v *watcher) end() []plot.Point {
	close(v.quit)
	v.done.Wait()
	if n := len(v.points); n > 0 { // the line goes on to the end
		v.points = append(v.points, plot.Point{X: time.Since(v.began).Seconds(), Y: v.points[n-1].Y})
	}
	return v.points
}
