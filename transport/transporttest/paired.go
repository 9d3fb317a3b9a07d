package transporttest

import (
	"fmt"
	"io"
	"slices"
	"time"

	"gopgas/internal/paired"
)

// Contest is an operation of a NIC that is measured beside what it is made of. Both functions do so many operations, one run of
// either being a block; each has done some before it is measured.
type Contest struct {
	Name      string
	Each      int // operations in a block
	Blocks    int // of each side in a turn; 0: one
	Ours, Raw func(n int) error
}

// turn is what one turn found, medians over its blocks: microseconds for one operation, and quotients of blocks that were neighbours.
type turn struct{ ours, raw, again, ratio, control float64 }

// Measure writes a table of contests to out: in each of so many turns blocks of raw, of ours, and of raw again, forwards and
// backwards by turns, so that what changes on the machine meanwhile changes all three. The cells are medians of the turns, with the least and the
// greatest; the quotients are those of neighbouring blocks, with the 95 % interval of their median over the turns in brackets (package paired). How far
// the last column is from 1 is what the machine does by itself. It judges nothing, and ends with the first error.
func Measure(out io.Writer, turns int, contests []Contest) error {
	fmt.Fprintln(out, "| us for one | ours | raw | raw again | ours / raw [95 %] | raw again / raw [95 %] |")
	fmt.Fprintln(out, "| --- | ---: | ---: | ---: | ---: | ---: |")
	for _, c := range contests {
		all, err := c.measure(turns)
		if err != nil {
			return fmt.Errorf("measure %s: %w", c.Name, err)
		}
		fmt.Fprintf(out, "| %s", c.Name)
		for _, of := range []func(t turn) float64{
			func(t turn) float64 { return t.ours }, func(t turn) float64 { return t.raw }, func(t turn) float64 { return t.again },
		} {
			fmt.Fprintf(out, " | %s", spread(column(all, of)))
		}
		for _, of := range []func(t turn) float64{func(t turn) float64 { return t.ratio }, func(t turn) float64 { return t.control }} {
			fmt.Fprintf(out, " | %v", paired.Of(column(all, of)))
		}
		fmt.Fprintln(out, " |")
	}
	return nil
}

func (c *Contest) measure(turns int) (all []turn, err error) {
	runs := [3]func(n int) error{c.Raw, c.Ours, c.Raw}
	for i := -1; i < turns; i++ {
		var us [3][]float64
		var ratio, control []float64
		for block := range max(1, c.Blocks) {
			var at [3]float64
			for j := range runs {
				k := j
				if (i+block)%2 == 0 {
					k = len(runs) - 1 - j
				}
				began := time.Now()
				if err := runs[k](c.Each); err != nil {
					return all, err
				}
				at[k] = float64(time.Since(began).Nanoseconds()) / 1e3 / float64(c.Each)
				us[k] = append(us[k], at[k])
			}
			ratio, control = append(ratio, 2*at[1]/(at[0]+at[2])), append(control, at[2]/at[0])
		}
		if i >= 0 { // before, caches, queues and processors became warm
			all = append(all, turn{raw: median(us[0]), ours: median(us[1]), again: median(us[2]), ratio: median(ratio), control: median(control)})
		}
	}
	return all, nil
}

func column(all []turn, of func(turn) float64) (v []float64) {
	for _, t := range all {
		v = append(v, of(t))
	}
	return v
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[len(s)/2]
}

// spread is the median, with the least and the greatest.
func spread(v []float64) string {
	return fmt.Sprintf("%.3g (%.3g–%.3g)", median(v), slices.Min(v), slices.Max(v))
}
