package transporttest

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// Contest is an operation of a NIC that is measured beside what it is made of. Both functions do so many operations, one run of
// either being a sample; each has done some before it is measured.
type Contest struct {
	Name      string
	Each      int // operations in a sample
	Ours, Raw func(n int) error
}

// Measure writes a table of contests to out: in each of so many turns a sample of raw, one of ours, and one of raw again, forwards and
// backwards by turns, so that what changes on the machine meanwhile changes all three. The cells are medians, with the least and the
// greatest; the quotients are those of the samples of one turn. How far the last column is from 1 is what the machine does by itself. It
// judges nothing, and ends with the first error.
func Measure(out io.Writer, turns int, contests []Contest) error {
	fmt.Fprintln(out, "| us for one | ours | raw | raw again | ours / raw | raw again / raw |")
	fmt.Fprintln(out, "| --- | ---: | ---: | ---: | ---: | ---: |")
	for _, c := range contests {
		samples, err := c.measure(turns)
		if err != nil {
			return fmt.Errorf("measure %s: %w", c.Name, err)
		}
		var ratio, control []float64
		for i, raw := range samples[0] {
			ratio, control = append(ratio, samples[1][i]/raw), append(control, samples[2][i]/raw)
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %s |\n", c.Name, spread(samples[1]), spread(samples[0]), spread(samples[2]),
			spread(ratio), spread(control))
	}
	return nil
}

// measure returns the microseconds for one operation of raw, ours and raw again, by turn.
func (c *Contest) measure(turns int) (samples [3][]float64, err error) {
	runs := [3]func(n int) error{c.Raw, c.Ours, c.Raw}
	for turn := -1; turn < turns; turn++ {
		var us [3]float64
		for i := range runs {
			k := i
			if turn%2 == 0 {
				k = len(runs) - 1 - i
			}
			began := time.Now()
			if err := runs[k](c.Each); err != nil {
				return samples, err
			}
			us[k] = float64(time.Since(began).Nanoseconds()) / 1e3 / float64(c.Each)
		}
		if turn < 0 {
			continue // caches, queues and processors are warm from here on
		}
		for k := range us {
			samples[k] = append(samples[k], us[k])
		}
	}
	return samples, nil
}

// spread is the median, with the least and the greatest.
func spread(v []float64) string {
	s := slices.Sorted(slices.Values(v))
	return fmt.Sprintf("%.3g (%.3g–%.3g)", s[len(s)/2], s[0], s[len(s)-1])
}
