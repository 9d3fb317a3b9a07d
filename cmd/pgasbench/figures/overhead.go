package figures

import (
	"context"
	"fmt"
	"time"

	"gopgas/internal/mem"
	"gopgas/internal/paired"
	"gopgas/internal/plot"
	"gopgas/internal/predict"
	"gopgas/regmgr"
	"gopgas/transport/auto"
)

// overheadPinned is how many buffers are registered at once: those of each variant, and the target.
const overheadPinned = 3*buffers + 1

// overhead is what the operations of the predictor on the critical path cost: stamp, lock, context and call stack, with the
// helper switched off so that nothing of what it gains counts. A call acquires, puts, waits, releases.
func overhead(ctx context.Context, o *Options) (*Result, error) {
	sizes, paper := []int{17 << 10, 1 << 20, 4 << 20}, []float64{14.02, 4.58, 1.22}
	if o.Bytes > 0 {
		sizes, paper = []int{o.Bytes}, nil
	}
	rounds := or(o.Iterations, 200*o.Reps)
	n, err := openNIC(ctx, o.Transport, max(16<<20, o.Bytes), auto.Config{MaxPinned: max(1<<30, overheadPinned*int64(o.Bytes))})
	if err != nil {
		return nil, err
	}
	defer n.close()
	variants, closeAll, err := overheadVariants(n)
	if err != nil {
		return nil, err
	}
	defer closeAll()
	res := &Result{
		Kind: "measured on the " + o.Transport + " NIC of this machine, a process that puts to itself",
		Columns: []string{
			"bytes", "call_us", "call_us_min", "call_us_max", "with_us", "with_us_min", "with_us_max",
			"overhead_percent", "paper_percent", "control_percent", "overhead_percent_paired", "overhead_percent_low", "overhead_percent_high",
			"control_percent_paired", "control_percent_low", "control_percent_high",
		},
		Notes: []string{
			fmt.Sprintf("%d rounds; in each, calls without (leavepinned), with (predictive, helper off), and without again; median [min, max] of the rounds' means", rounds),
			"overhead_percent compares the least means; control_percent is the same of without against without: what this machine adds by itself",
			"_paired: the median of what each round found against without's part of it, with the ends of its 95 % interval (order statistics); a difference within the interval of the control is a tie",
		},
	}
	chart := plot.Chart{
		Title: "a call with the helper off, against without predictor",
		X:     plot.Axis{}, Y: plot.Axis{Label: "% longer"}, Bars: true,
		Series: []plot.Series{{Name: "ours"}, {Name: "control: without again"}, {Name: "paper"}},
	}
	chart.Series = chart.Series[:2+min(1, len(paper))] // of other sizes the paper says nothing
	for k, size := range sizes {
		o.say("%d bytes", size)
		means, err := n.pairs(variants, size, rounds)
		if err != nil {
			return nil, err
		}
		s := [3]spread{spreadOf(means[0]), spreadOf(means[1]), spreadOf(means[2])}
		more, again := paired.Quotient(means[0], means[1]).Percent(), paired.Quotient(means[0], means[2]).Percent()
		over, control := 100*(s[1].least/s[0].least-1), 100*(s[2].least/s[0].least-1)
		theirs, values := any("-"), []float64{over, control}
		if k < len(paper) {
			theirs, values = paper[k], append(values, paper[k])
		}
		res.Rows = append(res.Rows, []any{
			size, s[0].median, s[0].least, s[0].most, s[1].median, s[1].least, s[1].most, over, theirs, control,
			more.Median, more.Low, more.High, again.Median, again.Low, again.High,
		})
		chart.X.Names = append(chart.X.Names, fmt.Sprintf("%d KiB", size>>10))
		for i, v := range values {
			chart.Series[i].Points = append(chart.Series[i].Points, plot.Point{X: float64(k), Y: v})
		}
	}
	res.Charts = []Chart{{"", chart}}
	return res, nil
}

// overheadVariants makes the managers: without, with, and without again.
func overheadVariants(n *nic) (all [3]*regmgr.Manager, closeAll func(), err error) {
	closeAll = func() {
		for _, m := range all {
			if m != nil {
				_ = m.Close() // nothing is referenced; what the NIC would not end is its own to report
				m.Forget()
			}
		}
	}
	for i := range all {
		c := regmgr.Config{Policy: regmgr.LeavePinned, Registrar: n.d, Sched: n.sched}
		if i == 1 {
			c.Policy = regmgr.Predictive
			c.Ahead = &regmgr.Ahead{Seat: func() (predict.Nanos, bool) { return 0, false }}
		}
		if all[i], err = regmgr.New(c); err != nil {
			closeAll()
			return all, nil, err
		}
	}
	return all, closeAll, nil
}

// pairs times calls of the variants by turns and returns, for each, the means of the rounds in microseconds.
func (n *nic) pairs(variants [3]*regmgr.Manager, size, rounds int) (means [3][]float64, err error) {
	var bufs [buffers][]byte
	for i := range bufs {
		bufs[i] = make([]byte, size)
		for j := range bufs[i] {
			bufs[i][j] = byte(j) ^ byte(i+1)
		}
	}
	calls := max(3, min(60, 8<<20/size/buffers*buffers)) // short rounds: some of them nothing disturbs
	for round := range rounds + 1 {
		for v := range variants {
			began := time.Now()
			for i := range calls {
				if err := n.call(variants[v], bufs[i%buffers]); err != nil {
					return means, err
				}
			}
			if round > 0 { // the first one registers
				means[v] = append(means[v], time.Since(began).Seconds()*1e6/float64(calls))
			}
		}
	}
	return means, n.holds(bufs[(calls-1)%buffers])
}

func (n *nic) call(m *regmgr.Manager, b []byte) error {
	var h regmgr.Hold
	src := mem.Of(b)
	if err := m.Acquire(&h, regmgr.Request{Mem: src}); err != nil {
		return err
	}
	defer m.Release(&h)
	return n.write(src, h.LKey())
}
