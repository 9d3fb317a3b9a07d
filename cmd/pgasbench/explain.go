package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"gopgas/internal/selector"
	"gopgas/window"
)

// The sizes that are explained, and how long one candidate at one size may take.
const (
	explainLeast = 64
	explainMost  = 16 << 20
	explainStep  = 4
	explainMax   = 400 // operations
	explainFresh = 24  // buffers that take turns
	explainBytes = 128 << 20
	explainBound = 64 << 20              // of them where they are registered
	explainTimes = 4                     // of what one repeat takes elsewhere
	explainLarge = 1 << 20               // bytes that are reason to measure transfers with the other rank
	explainPause = 20 * time.Millisecond // between transfers while those with the other rank are being measured
	explainRoom  = 64 << 20              // bytes to register beside twice what is bound
)

// close25 is how near an estimate is to be to the median that is measured.
const close25 = 0.25

// explained is one candidate for transfers of one size.
type explained struct {
	get       bool
	bytes     int
	protocol  selector.Protocol
	estimated float64 // seconds
	measured  float64
	again     float64 // measured once more, when all others have been
	n         int
	chosen    bool
}

// explain measures every protocol that can carry a put with its flush, and a get, beside what the selector thinks it costs.
// Some buffers take turns, as those of a program do; direct's are registered. When all are measured they are once more: what the machine
// itself has become faster or slower by meanwhile no estimate can know.
func (b *bench) explain(ctx context.Context, most int) ([]explained, error) {
	win, err := window.Allocate[byte](ctx, b.w.Team(), max(most, explainLarge))
	if err != nil {
		return nil, err
	}
	if b.w.Transport(b.peer) == "shm" {
		return nil, errors.New("the ranks map each other's memory, so that nothing is chosen; set PGAS_LOCAL=off")
	}
	var all []explained
	if b.w.Rank() == 0 {
		all, err = b.explainAll(win, most)
	}
	if err := b.agree(ctx, err); err != nil {
		return nil, err
	}
	return all, win.Free(ctx)
}

func (b *bench) explainAll(win *window.Window[byte], most int) (all []explained, err error) {
	e := b.w.Team().Engine()
	defer e.Force(selector.None)
	if err := b.wholly(win, most); err != nil {
		return nil, err
	}
	// When the costs are measured between this rank and itself they are with the first peer to whom a large transfer is made then.
	if _, err := e.Estimates(selector.Query{Bytes: explainLeast, Waited: true, Uses: 1}); err != nil {
		return nil, err
	}
	if err := b.awaitMeasured(win); err != nil {
		return nil, err
	}
	for _, get := range []bool{false, true} {
		for n := explainLeast; n <= most; n *= explainStep {
			list, err := e.Estimates(selector.Query{Bytes: n, Get: get, Waited: true, Uses: 1, Seen: true})
			if err != nil {
				return nil, err
			}
			inline := false
			for _, c := range list {
				inline = inline || c.Protocol == selector.Inline
				if inline && c.Protocol == selector.Bounce {
					continue // what fits goes inline, through slots or not
				}
				all = append(all, explained{get: get, bytes: n, protocol: c.Protocol, estimated: c.Seconds, chosen: c.Chosen})
			}
		}
	}
	for _, again := range []bool{false, true} {
		for i := range all {
			x := &all[i]
			took, n, err := b.explainOne(win, x)
			if err != nil {
				return nil, fmt.Errorf("%v of %d bytes: %w", x.protocol, x.bytes, err)
			}
			if again {
				x.again = took
			} else {
				x.measured, x.n = took, n
			}
		}
	}
	return all, nil
}

// awaitMeasured waits, where the window is another rank's, until transfers with that rank have been measured, or cannot be. Nothing else is under way meanwhile, and
// nothing is flushed, which would have them be tried but once.
func (b *bench) awaitMeasured(win *window.Window[byte]) error {
	e := b.w.Team().Engine()
	if b.peer == b.w.Rank() {
		return nil
	}
	defer e.HastenMeasuring()()
	buf := make([]byte, explainLarge)
	for began := time.Now(); !e.Measured(); time.Sleep(explainPause) {
		if time.Since(began) > settleMost {
			return fmt.Errorf("transfers with rank %d are still being measured after %v, as on a machine that does much else: try again when it does less", b.peer, settleMost)
		}
		if err := win.Get(b.peer, 0, buf); err != nil {
			return err
		}
	}
	return nil
}

// wholly returns an error where the window is not registered as a whole at the peer: then a transfer takes firehoses for the buckets
// that it touches, which the estimates know nothing of.
func (b *bench) wholly(win *window.Window[byte], most int) error {
	in, err := b.inBuckets(win)
	if err != nil || !in {
		return err
	}
	return fmt.Errorf("rank %d has registered its window of %d bytes in buckets, as they are used, since that is more than may be registered as a whole; "+
		"estimates are for memory that is registered: raise PGAS_MAX_PINNED to %d MiB or more", b.peer, most, (2*explainBound+explainRoom)>>20)
}

// inBuckets reports whether the window is registered in buckets at the peer, or not at all.
func (b *bench) inBuckets(win *window.Window[byte]) (bool, error) {
	e := b.w.Team().Engine()
	count := func() uint64 { // transfers that only such windows make: with firehoses or, where they have none, messages
		h, _ := e.Firehoses()
		return h.Hits + h.Misses + h.Joins + b.w.Stats()[b.w.Transport(b.peer)]["message"].Ops
	}
	before := count()
	if err := win.Put(b.peer, 0, []byte{1}); err != nil {
		return false, err
	}
	if err := win.Flush(b.peer); err != nil {
		return false, err
	}
	return count() != before, nil
}

// explainOne returns the median time of one operation by a candidate, and of how many.
func (b *bench) explainOne(win *window.Window[byte], x *explained) (float64, int, error) {
	b.w.Team().Engine().Force(x.protocol)
	most := explainBytes
	if x.protocol == selector.Direct {
		most = explainBound
	}
	count := max(2, min(explainFresh, most/x.bytes))
	bufs := explainBuffers(count, x.bytes)
	e := b.w.Team().Engine()
	do := func(buf []byte) (err error) {
		if x.get {
			err = win.Get(b.peer, 0, buf)
		} else if err = win.Put(b.peer, 0, buf); err == nil {
			err = win.Flush(b.peer)
		}
		if x.protocol == selector.Register || x.protocol == selector.Hybrid {
			e.Trim() // each use is a first one, and what giving back costs is part of it
		}
		return err
	}
	for _, buf := range bufs { // direct registers them, for good
		if err := do(buf); err != nil {
			return 0, 0, err
		}
	}
	var times []float64
	began := time.Now()
	for round := range explainMax / count {
		if round > 0 && time.Since(began) >= explainTimes*b.set.target {
			break // one is measured however long it takes, or however late this process goes on
		}
		for _, buf := range bufs {
			start := time.Now()
			if err := do(buf); err != nil {
				return 0, 0, err
			}
			times = append(times, time.Since(start).Seconds())
		}
	}
	last := bufs[count-1]
	e.Force(selector.Bounce)
	there := make([]byte, x.bytes)
	if err := win.Get(b.peer, 0, there); err != nil {
		return 0, 0, err
	}
	if !bytes.Equal(there, last) {
		return 0, 0, errors.New("wrong result: the bytes at the target differ")
	}
	return max(0, summarize(times).median-clockTime()), len(times), nil
}

// explainBuffers returns buffers that have been written.
func explainBuffers(count, size int) (bufs [][]byte) {
	for i := range count {
		b := make([]byte, size)
		for k := 0; k < size; k += 64 {
			b[k] = byte(i + k/64 + 1)
		}
		bufs = append(bufs, b)
	}
	return bufs
}

// clockTime is how many seconds reading the clock adds to what is timed.
func clockTime() float64 {
	var times []float64
	for range explainMax {
		start := time.Now()
		times = append(times, time.Since(start).Seconds())
	}
	return summarize(times).median
}

// near reports whether something is within 25 % of what was measured.
func near(x, measured float64) bool { return math.Abs(x/measured-1) <= close25 }

// writeExplained prints a line for each candidate, and how many estimates were near.
func writeExplained(w io.Writer, transport string, all []explained) error {
	fmt.Fprintf(w, "Estimated and measured cost over %s: the median of n operations. A put is put and flush, to memory that its target has\n"+
		"registered. * is chosen for a first use; direct is chosen where the memory is registered. What register and hybrid register\n"+
		"is given back with the end of the transfer, which is part of all figures, and is not new to the NIC, which may cost more (pgasrun info\n"+
		"says how much). Again is what was measured when all others had been: what the machine differs by itself.\n", transport)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "op\tbytes\tprotocol\testimated us\tmeasured us\toff by\tagain us\tn\t\t")
	var estimates, ties, medians int
	for _, x := range all {
		op, star := "put", ""
		if x.get {
			op = "get"
		}
		if x.chosen {
			star = "*"
		}
		if near(x.estimated, x.measured) {
			estimates++
		}
		if near(x.estimated, x.measured) || near(x.estimated, x.again) || (x.estimated > x.measured) != (x.estimated > x.again) {
			ties++
		}
		if near(x.again, x.measured) {
			medians++
		}
		fmt.Fprintf(t, "%s\t%d\t%v\t%.2f\t%.2f\t%+.0f %%\t%.2f\t%d\t%s\t\n",
			op, x.bytes, x.protocol, x.estimated*1e6, x.measured*1e6, 100*(x.estimated/x.measured-1), x.again*1e6, x.n, star)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d of %d estimates are within %.0f %% of the median, %d of it or of the median measured again, or between them;\n"+
		"%d of the medians measured again are within %.0f %% of the first.\n", estimates, len(all), 100*close25, ties, medians, 100*close25)
	return err
}
