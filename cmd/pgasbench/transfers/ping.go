package transfers

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"gopgas/cmd/pgasbench/figures"
	"gopgas/eager"
	"gopgas/internal/paired"
	"gopgas/internal/plot"
	"gopgas/internal/proto"
	"gopgas/pgas"
)

// The variants of small transfers. The first stands twice. The last one makes the copy that the slots save of its own accord, to or from
// memory that the NIC then reads or has written, as it does slots: what it takes longer than the second is what a copy costs in this very loop.
var smallVariants = []variant{
	{name: "bounce", eager: "bounce", bulk: "register"},
	{name: "bypass", eager: "bypass", bulk: "register"},
	{name: "auto", eager: "auto", bulk: "register"},
	{name: "bounce again", eager: "bounce", bulk: "register"},
	{name: copyFirst, eager: "bypass", bulk: "register"},
}

// Places in smallVariants.
const (
	byBounce = iota
	byBypass
	byAuto
	byBounceAgain
	byCopyFirst
)

const (
	copyFirst  = "bypass and a copy"
	lazily     = "leavepinned" // registrations stay, as in the paper; where a NIC makes them dear the library may prefer to give them back
	pingRounds = 40            // by turns
	pingOps    = 500           // of a round
	mostSmall  = 8 << 10
	leastPing  = 64 // bytes, of which nobody would say that their copy costs anything
)

// ping is figure 6 of the paper: put and flush, and get, from and into one buffer, with the copy and without.
func ping(ctx context.Context, o *figures.Options) (res *figures.Result, err error) {
	sizes, err := pingSizes(o)
	if err != nil {
		return nil, err
	}
	benches, err := openAll(ctx, o, smallVariants, mostSmall, 64<<20, pgas.Config{Reg: lazily})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeAll(ctx, benches)) }()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC()
	ops := o.Iterations
	if ops == 0 {
		ops = pingOps
	}
	res = &figures.Result{
		Kind: "measured on the " + o.Transport + " NIC of this machine, a process that puts to itself and gets from itself",
		Columns: append([]string{
			"op", "bytes", "bounce_us", "bounce_us_min", "bounce_us_max", "bypass_us", "bypass_us_min", "bypass_us_max", "auto_us", "copy_us", "lookup_us",
			"gain_percent", "gain_auto_percent", "theory_percent", "share_percent", "control_percent", "bounced", "bypassed", "bounce_packets", "bypass_packets",
		}, pairedColumns("gain_percent", "gain_auto_percent", "control_percent")...),
		Notes: []string{
			fmt.Sprintf("rounds of %d operations by turns, %d rounds; a round's mean; median [min, max] of the rounds", ops, pingRounds*o.Reps),
			"copy_us, C_m, is what the bypass takes longer in the same loop if the program copies the payload to, or from, the memory that the NIC uses",
			fmt.Sprintf("lookup_us, V, is all that the bypass takes longer but for the copy: bypass less bounce at %d bytes, plus the copy of these, in the same loop", leastPing),
			"gain is that of the medians over bounce; theory is (C_m - V)/bounce (equation 6); share is gain over theory; control is bounce against bounce",
			pairedNote,
			"bounced and bypassed: operations of bounce that went through the slots, and of bypass that went past them, with those of the first round; packets: what " +
				"the RDMA devices sent for one more round of each, by their hw_counters, and -1 where there are none",
			"registrations stay (leavepinned), whatever the library would prefer on this NIC; bypass registers at the first use and asks the registration cache only; auto asks the usage table too, and chooses by the less of what is saved in the caches and out of them",
		},
	}
	chart := plot.Chart{
		Title: "what the bypass saves of a put with its flush, and of a get", X: plot.Axis{Label: "bytes", Log: 2, Bytes: true}, Y: plot.Axis{Label: "% of bounce", Zero: true},
	}
	for _, get := range []bool{false, true} {
		name := "put and flush"
		if get {
			name = "get"
		}
		say(o, "%s, %d sizes", name, len(sizes))
		plain := len(sizes) > 30
		gains, theories, controls := plot.Series{Name: name, Plain: plain}, plot.Series{Name: name + ", theory", Plain: plain}, plot.Series{Name: name + ", control", Plain: plain}
		var nothing timing
		for i, n := range append([]int{leastPing}, sizes...) {
			runs, err := pingSize(benches, n, get, ops, pingRounds*o.Reps)
			if err != nil {
				return nil, err
			}
			s := spreads(runs)
			median := timingOf(s)
			if i == 0 {
				nothing = median
				continue
			}
			theory, share := median.theory(nothing), 0.0
			if theory > 0 {
				share = 100 * median.gain(byBypass) / theory
			}
			b, p := s[byBounce], s[byBypass]
			bounce, bypass := &runs[byBounce], &runs[byBypass]
			res.Rows = append(res.Rows, append([]any{
				name, n, b.median, b.least, b.most, p.median, p.least, p.most, s[byAuto].median, median.copying(), nothing.lookup(),
				median.gain(byBypass), median.gain(byAuto), theory, share, median.gain(byBounceAgain),
				int(bounce.bounced), int(bypass.bypassed), bounce.packets, bypass.packets,
			}, three(bounce.saved(bypass), bounce.saved(&runs[byAuto]), bounce.saved(&runs[byBounceAgain]))...))
			for series, v := range map[*plot.Series]float64{&gains: median.gain(byBypass), &theories: theory, &controls: median.gain(byBounceAgain)} {
				series.Points = append(series.Points, plot.Point{X: float64(n), Y: v})
			}
		}
		chart.Series = append(chart.Series, gains, theories, controls)
	}
	res.Charts = []figures.Chart{{Chart: chart}}
	return res, nil
}

// timing is what operations of one size take with each variant, microseconds: medians.
type timing [byCopyFirst + 1]float64

func timingOf(s []spread) (t timing) {
	for i := range t {
		t[i] = s[i].median
	}
	return t
}

// gain is what a variant saves, in percent of bounce.
func (t timing) gain(variant int) float64 { return 100 * (1 - t[variant]/t[byBounce]) }

// copying is C_m.
func (t timing) copying() float64 { return t[byCopyFirst] - t[byBypass] }

// lookup is V, by what operations take that have next to nothing to copy.
func (t timing) lookup() float64 { return t[byBypass] - t[byBounce] + t.copying() }

// theory is equation 6, in percent of bounce, by V of operations that have next to nothing to copy.
func (t timing) theory(nothing timing) float64 {
	return 100 * (t.copying() - nothing.lookup()) / t[byBounce]
}

// pingSizes are in steps of 5 %, with the powers of two among them: on soft, where that takes a minute or two, else on request.
func pingSizes(o *figures.Options) ([]int, error) {
	if o.Bytes > mostSmall { // the windows are no larger
		return nil, fmt.Errorf("--bytes %d: want at most %d: this figure is of small transfers", o.Bytes, mostSmall)
	}
	steps := *o
	steps.Fine = false
	sizes, err := smallSizes(&steps, leastPing)
	if err != nil || o.Bytes > 0 || !o.Fine && o.Transport != "soft" {
		return sizes, err
	}
	steps.Fine = true
	between, err := smallSizes(&steps, leastPing)
	sizes = append(sizes, between...)
	slices.Sort(sizes)
	return slices.Compact(sizes), err
}

// smallSizes are the sizes of small transfers.
func smallSizes(o *figures.Options, least int) ([]int, error) {
	if o.Bytes > 0 {
		return []int{o.Bytes}, nil
	}
	within := *o
	within.Most = min(o.Most, mostSmall)
	return within.Sweep(least, mostSmall)
}

// smallCosts are what the library measures of small puts at its start, in a world of its own.
func smallCosts(ctx context.Context, o *figures.Options) (eager.Costs, error) {
	b, err := openBench(ctx, o, smallVariants[2], mostSmall, 0, pgas.Config{})
	if err != nil {
		return nil, err
	}
	return b.w.Team().Engine().SmallCosts(false), b.close(ctx)
}

// pingRun is what was seen of one variant at one size.
type pingRun struct {
	us                []float64 // of an operation, by round
	bounced, bypassed uint64    // operations
	packets           int       // that RDMA devices sent for the operations of one more round; -1: there are none
}

// saved is by how many percent of base's time the other's is less, round by round.
func (base *pingRun) saved(other *pingRun) paired.Interval {
	return paired.Quotient(base.us, other.us).Saved()
}

func spreads(runs []pingRun) (out []spread) {
	for i := range runs {
		out = append(out, spreadOf(runs[i].us))
	}
	return out
}

// pingSize times rounds of every variant by turns.
func pingSize(benches []*bench, n int, get bool, ops, rounds int) (runs []pingRun, err error) {
	runs = make([]pingRun, len(benches))
	bufs := newArena((len(benches) + 1) * 2 * mostSmall)
	mine := make([][]byte, len(benches))
	for i := range benches {
		mine[i] = bufs.take(n)
	}
	staging := bufs.take(n)
	for round := range rounds + 1 {
		for k := range benches {
			i := paired.Turn(len(benches), round, k)
			b, r := benches[i], &runs[i]
			before := b.paths()
			took, err := b.pings(mine[i], staging, get, ops)
			if err != nil {
				return nil, err
			}
			after := b.paths()
			r.bounced += after[proto.PathBounce].Ops - before[proto.PathBounce].Ops
			r.bypassed += after[proto.PathBypass].Ops - before[proto.PathBypass].Ops
			if round > 0 { // the first one registers and learns
				r.us = append(r.us, took.Seconds()*1e6/float64(ops))
			}
		}
	}
	for _, i := range []int{byBounce, byBypass} {
		if runs[i].packets, err = packetsFor(func() error {
			_, err := benches[i].pings(mine[i], staging, get, ops)
			return err
		}); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// pings makes operations from or into one buffer.
func (b *bench) pings(buf, staging []byte, get bool, ops int) (took time.Duration, err error) {
	first := b.name == copyFirst
	if get {
		copy(b.win.Local(), buf)
		for i := range buf {
			buf[i] ^= 0xff
		}
	}
	began := time.Now()
	for range ops {
		switch {
		case get && first:
			if err = b.win.Get(0, 0, staging); err == nil {
				copy(buf, staging)
			}
		case get:
			err = b.win.Get(0, 0, buf)
		case first:
			copy(staging, buf)
			err = b.put(staging)
		default:
			err = b.put(buf)
		}
		if err != nil {
			return 0, fmt.Errorf("%s, %d bytes: %w", b.name, len(buf), err)
		}
	}
	took = time.Since(began)
	return took, b.holds(buf)
}
