package transfers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"

	"gopgas/cmd/pgasbench/figures"
	"gopgas/internal/paired"
	"gopgas/internal/plot"
	"gopgas/pgas"
)

const (
	spectrumBuffers = 1000 // buffer i is used i times
	spectrumEvery   = 10   // that many buffers, then another variant has its turn
)

// The paper's break-even counts of one-sided operations, table 2.
var paperBreakEven = map[int]int{
	512: 196, 1 << 10: 128, 2 << 10: 128, 3 << 10: 125, 4 << 10: 56, 5 << 10: 33, 6 << 10: 29, 7 << 10: 26, 8 << 10: 25,
}

var spectrumVariants = []variant{
	{name: "bounce", eager: "bounce", bulk: "register"},
	{name: "auto", eager: "auto", bulk: "register"},
	{name: "bounce again", eager: "bounce", bulk: "register"},
}

// spectrum is figure 7 of the paper: a thousand buffers, of which the first is used once and the last a thousand times, each
// use a put and its flush; back to back and one per page.
func spectrum(ctx context.Context, o *figures.Options) (*figures.Result, error) {
	sizes, err := smallSizes(o, 256)
	if err != nil {
		return nil, err
	}
	buffers := spectrumBuffers
	if o.Iterations > 0 {
		buffers = o.Iterations
	}
	costs, err := smallCosts(ctx, o)
	if err != nil {
		return nil, err
	}
	res := &figures.Result{
		Kind: "measured on the " + o.Transport + " NIC of this machine, a process that puts to itself",
		Columns: append([]string{
			"layout", "bytes", "bounce_us", "bounce_us_min", "bounce_us_max", "auto_us", "auto_us_min", "auto_us_max", "gain_percent", "control_percent",
			"bypassed_percent", "break_even", "paper_break_even",
		}, pairedColumns("gain_percent", "control_percent")...),
		Notes: []string{
			fmt.Sprintf("%d buffers, buffer i used i times in a row, put and flush; %d buffers at a time by turns, in new worlds for each layout and size; us is all time over all uses", buffers, spectrumEvery),
			fmt.Sprintf("median [min, max] of %d repeats; gain is that of the medians over bounce, registrations included; control is bounce against bounce", o.Reps),
			pairedNote + "; turns count alike, though late ones have more uses and early ones the registrations",
			"break_even is n > R/(C - V) of what the library measures at its start (eager.Measure), -1 where V is not below C; the paper registers at 25 % of it, and so does auto",
			"bypassed_percent: uses of those counted in the usage table that went past the slots",
		},
	}
	chart := plot.Chart{
		Title: "what the choice by use saves over bounce, registrations included", X: plot.Axis{Label: "bytes", Log: 2, Bytes: true},
		Y: plot.Axis{Label: "%", Zero: true},
	}
	for _, paged := range []bool{false, true} {
		layout := "back to back"
		if paged {
			layout = "one per page"
		}
		gains, control := plot.Series{Name: layout}, plot.Series{Name: layout + ", control"}
		for _, n := range sizes {
			say(o, "%s, %d bytes", layout, n)
			var values, turns [3][]float64
			passed := 0.0
			for range o.Reps {
				us, share, err := spectrumOnce(ctx, o, buffers, n, paged)
				if err != nil {
					return nil, err
				}
				for i := range us {
					values[i] = append(values[i], perUse(us[i], buffers))
					turns[i] = append(turns[i], us[i]...)
				}
				passed = share
			}
			s := [3]spread{spreadOf(values[0]), spreadOf(values[1]), spreadOf(values[2])}
			even := -1
			if at, ok := costs.At(n).BreakEven(); ok && !math.IsInf(at, 0) {
				even = int(at)
			}
			gain, again := 100*(1-s[1].median/s[0].median), 100*(1-s[2].median/s[0].median)
			res.Rows = append(res.Rows, append([]any{
				layout, n, s[0].median, s[0].least, s[0].most, s[1].median, s[1].least, s[1].most, gain, again, passed, even, paperBreakEven[n],
			}, three(paired.Quotient(turns[0], turns[1]).Saved(), paired.Quotient(turns[0], turns[2]).Saved())...))
			gains.Points = append(gains.Points, plot.Point{X: float64(n), Y: gain})
			control.Points = append(control.Points, plot.Point{X: float64(n), Y: again})
		}
		chart.Series = append(chart.Series, gains, control)
	}
	res.Notes = append(res.Notes, "paper: up to 12.7 % at 8 KB; break-even counts, measured here [paper]: "+breakEvens(func(n int) (float64, bool) { return costs.At(n).BreakEven() }))
	res.Charts = []figures.Chart{{Chart: chart}}
	return res, nil
}

// breakEvens lists the break-even counts at the paper's sizes, ours and in brackets the paper's.
func breakEvens(at func(bytes int) (float64, bool)) (text string) {
	for _, n := range []int{512, 1 << 10, 2 << 10, 3 << 10, 4 << 10, 5 << 10, 6 << 10, 7 << 10, 8 << 10} {
		ours := "none"
		if v, ok := at(n); ok {
			ours = fmt.Sprintf("%.0f", v)
		}
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%d B: %s [%d]", n, ours, paperBreakEven[n])
	}
	return text
}

// perUse is what a use takes, where turns of all uses of so many buffers took so long each.
func perUse(turns []float64, buffers int) (us float64) {
	for _, t := range turns {
		us += t
	}
	return us / float64(buffers*(buffers+1)/2)
}

// spectrumOnce uses all buffers in new worlds and returns the microseconds of each turn under each variant, and how many percent of
// auto's uses went past the slots.
func spectrumOnce(ctx context.Context, o *figures.Options, buffers, n int, paged bool) (us [3][]float64, passed float64, err error) {
	benches, err := openAll(ctx, o, spectrumVariants, n, 64<<20, pgas.Config{Reg: lazily})
	if err != nil {
		return us, 0, err
	}
	defer func() { err = errors.Join(err, closeAll(ctx, benches)) }()
	stride := n
	if paged {
		stride = (n + 4095) &^ 4095
	}
	mem := newArena(buffers*stride + n)
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for from := 0; from < buffers; from += spectrumEvery {
		to := min(from+spectrumEvery, buffers)
		for k := range benches {
			i := paired.Turn(len(benches), from/spectrumEvery, k)
			b := benches[i]
			var last []byte
			t, err := timed(func() error {
				for j := from; j < to; j++ {
					last = mem.mem[j*stride : j*stride+n]
					for range j + 1 {
						if err := b.put(last); err != nil {
							return err
						}
					}
				}
				return nil
			})
			if err = errors.Join(err, b.holds(last)); err != nil {
				return us, 0, err
			}
			us[i] = append(us[i], t*1e6)
		}
	}
	if u, ok := benches[1].w.Team().Engine().Bypasses(); ok && u.Bypass > 0 {
		passed = 100 * float64(u.Bypass) / float64(u.Bypass+u.Bounce)
	}
	return us, passed, nil
}
