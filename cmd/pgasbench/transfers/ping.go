package transfers

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"gopgas/cmd/pgasbench/figures"
	"gopgas/eager"
	"gopgas/internal/plot"
	"gopgas/pgas"
)

// The variants of small transfers. The first stands twice, and once with a copy more, so that the difference is what a copy
// costs in this very loop.
var smallVariants = []variant{
	{name: "bounce", eager: "bounce", bulk: "register"},
	{name: "bypass", eager: "bypass", bulk: "register"},
	{name: "auto", eager: "auto", bulk: "register"},
	{name: "bounce again", eager: "bounce", bulk: "register"},
	{name: extraCopy, eager: "bounce", bulk: "register"},
}

const (
	extraCopy  = "bounce and one more copy"
	pingRounds = 40  // by turns
	pingOps    = 500 // of a round
	mostSmall  = 8 << 10
)

// ping is figure 6 of the paper: put and flush, and get, from and into one buffer, with the copy and without.
func ping(ctx context.Context, o *figures.Options) (res *figures.Result, err error) {
	sizes := smallSizes(o, 64)
	benches, err := openAll(ctx, o, smallVariants, mostSmall, 64<<20, pgas.Config{})
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
		Columns: []string{
			"op", "bytes", "bounce_us", "bounce_us_min", "bounce_us_max", "bypass_us", "bypass_us_min", "bypass_us_max", "auto_us", "copy_us", "lookup_us",
			"gain_percent", "gain_auto_percent", "theory_percent", "share_percent", "control_percent",
		},
		Notes: []string{
			fmt.Sprintf("rounds of %d operations by turns, %d rounds; a round's mean; median [min, max] of the rounds", ops, pingRounds*o.Reps),
			"copy_us, C_m, is what one more copy of the payload adds to the same loop; lookup_us, V, is what the library measures at its start: usage table, and all that a transfer past the slots takes longer but for the copy",
			"gain is that of the medians over bounce; theory is (C_m - V)/bounce (equation 6); share is gain over theory; control is bounce against bounce",
			"bypass registers at the first use and asks the registration cache only; auto asks the usage table too",
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
		costs := benches[2].w.Team().Engine().SmallCosts(get)
		gains, theories, controls := plot.Series{Name: name}, plot.Series{Name: name + ", theory"}, plot.Series{Name: name + ", control"}
		for _, n := range sizes {
			s, err := pingSize(benches, n, get, ops, pingRounds*o.Reps)
			if err != nil {
				return nil, err
			}
			copying := s[4].median - (s[0].median+s[3].median)/2
			lookup := costs.At(n).Lookup / 1e3
			gain := func(i int) float64 { return 100 * (1 - s[i].median/s[0].median) }
			theory := 100 * (copying - lookup) / s[0].median
			share := 0.0
			if theory > 0 {
				share = 100 * gain(1) / theory
			}
			res.Rows = append(res.Rows, []any{
				name, n, s[0].median, s[0].least, s[0].most, s[1].median, s[1].least, s[1].most, s[2].median, copying, lookup,
				gain(1), gain(2), theory, share, gain(3),
			})
			for series, v := range map[*plot.Series]float64{&gains: gain(1), &theories: theory, &controls: gain(3)} {
				series.Points = append(series.Points, plot.Point{X: float64(n), Y: v})
			}
		}
		chart.Series = append(chart.Series, gains, theories, controls)
	}
	res.Charts = []figures.Chart{{Chart: chart}}
	return res, nil
}

// smallSizes are the sizes of small transfers.
func smallSizes(o *figures.Options, least int) []int {
	if o.Bytes > 0 {
		return []int{o.Bytes}
	}
	most := mostSmall
	if o.Most > 0 {
		most = min(o.Most, most)
	}
	return figures.Sizes(least, most, o.Fine)
}

// smallCosts are what the library measures of small puts at its start, in a world of its own.
func smallCosts(ctx context.Context, o *figures.Options) (eager.Costs, error) {
	b, err := openBench(ctx, o, smallVariants[2], mostSmall, 0, pgas.Config{})
	if err != nil {
		return nil, err
	}
	return b.w.Team().Engine().SmallCosts(false), b.close(ctx)
}

// pingSize times rounds of every variant by turns and returns the microseconds of an operation.
func pingSize(benches []*bench, n int, get bool, ops, rounds int) (out []spread, err error) {
	values := make([][]float64, len(benches))
	bufs := newArena(len(benches) * 2 * mostSmall)
	mine := make([][]byte, len(benches))
	scratch := make([]byte, n)
	for i := range benches {
		mine[i] = bufs.take(n)
	}
	for round := range rounds + 1 {
		for i, b := range benches {
			took, err := b.pings(mine[i], scratch, get, ops)
			if err != nil {
				return nil, err
			}
			if round > 0 { // the first one registers and learns
				values[i] = append(values[i], took.Seconds()*1e6/float64(ops))
			}
		}
	}
	for i := range benches {
		out = append(out, spreadOf(values[i]))
	}
	return out, nil
}

// pings makes operations from or into one buffer.
func (b *bench) pings(buf, scratch []byte, get bool, ops int) (took time.Duration, err error) {
	more := b.name == extraCopy
	if get {
		copy(b.win.Local(), buf)
		for i := range buf {
			buf[i] ^= 0xff
		}
	}
	began := time.Now()
	for range ops {
		switch {
		case get:
			err = b.win.Get(0, 0, buf)
		default:
			err = b.put(buf)
		}
		if err != nil {
			return 0, fmt.Errorf("%s, %d bytes: %w", b.name, len(buf), err)
		}
		if more {
			copy(scratch, buf)
		}
	}
	took = time.Since(began)
	return took, b.holds(buf)
}
