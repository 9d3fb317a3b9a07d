package transfers

import (
	"context"
	"fmt"
	"math"
	"time"

	"gopgas/cmd/pgasbench/figures"
	"gopgas/cmd/pgasbench/pair"
	"gopgas/internal/superpipe"
	"gopgas/transport/sim"
)

// The ways of figures 2 and 6: all are drawn against the first.
var rawWays = []way{
	{name: "raw write"},
	{name: "register on the fly", how: fresh},
	{name: "naive copy", how: copied},
	{name: "flat pipeline, C_opt", how: piped, policy: superpipe.Flat, whole: true},
	{name: "superpipeline, 12 KB and 1.5", how: piped, hard: true},
	{name: "superpipeline, planned", how: piped},
}

// crossing is where the paper sees the naive copy and the flat pipeline change places, in bytes.
const crossing = 16 << 10

// derivedGap is g from where the naive copy's 2L/B and the best flat pipeline's 2 sqrt(2Lg/B) are equal: L = 2gB.
func derivedGap(m *sim.Model) time.Duration {
	perByte := float64(m.CopyCost(1<<20, crossing)) / (1 << 20)
	return time.Duration(math.Round(crossing * perByte / 2))
}

// simulated redraws figures 2, 4, 6 and 7 in virtual time.
func simulated(ctx context.Context, o *figures.Options) (*figures.Result, error) {
	m := sim.Graphene()
	assumed := m.Write.Gap
	m.Write.Gap = derivedGap(&m)
	m.Send.Gap = m.Write.Gap
	sizes, err := o.Sweep(4<<10, 16<<20)
	if err != nil {
		return nil, err
	}
	d := &drawing{
		ctx: ctx, o: o, model: m, sizes: sizes, raw: map[int]float64{},
		res: &figures.Result{
			Kind:    "simulated with the constants of " + m.Name + " (transport/sim), one transfer at a time between two nodes",
			Columns: []string{"figure", "way", "bytes", "us", "gb_per_s", "percent_of_raw"},
			Notes: []string{
				m.Source,
				fmt.Sprintf("here g is %v, derived from the paper's crossing of naive copy and flat pipeline at 16 KB with copies of %.0f GB/s: "+
					"L = 2 g B; with the %v that transport/sim assumes they cross at half of that", m.Write.Gap,
					1e9*float64(1<<20)/float64(m.CopyCost(1<<20, crossing))/1e9, assumed),
				"figures 2 and 6: from the call to the moment at which the target's memory is filled, no rendezvous, as in the paper's raw test; " +
					"both ends unregistered but for the raw write; on the fly both ends register at once",
				"figure 4: the equations of internal/superpipe; figure 7: with a rendezvous; in virtual time no use differs from another but by " +
					"what is registered, so the best of many is any but the first",
				"windows: put and flush, and get, by this library's engine; percent_of_raw is there of the same between registered memory",
				"the flat pipeline copies a chunk out when all of it is there, as in equation 1; the superpipeline copies block by block",
			},
		},
	}
	for _, step := range []func() error{d.raws, d.equations, d.firstTouch, d.points, d.windows} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return d.res, nil
}

// drawing is the figure while it is made.
type drawing struct {
	ctx   context.Context
	o     *figures.Options
	model sim.Model
	sizes []int
	raw   map[int]float64 // seconds of a raw write
	res   *figures.Result
}

// one makes one simulated transfer, or several.
func (d *drawing) one(w way, bytes, rounds int, rendezvous bool) ([]float64, error) {
	return wireTest{d.model, w, bytes, rounds, rendezvous}.run(d.ctx)
}

func (d *drawing) row(figure, way string, bytes int, seconds float64) float64 {
	gb := float64(bytes) / seconds / 1e9
	d.res.Rows = append(d.res.Rows, []any{figure, way, bytes, seconds * 1e6, gb, 100 * d.raw[bytes] / seconds})
	return gb
}

// raws is figures 2 and 6.
func (d *drawing) raws() error {
	lines := make([][]float64, len(rawWays))
	for i, w := range rawWays {
		say(d.o, "figures 2 and 6: %s, %d sizes", w.name, len(d.sizes))
		for _, n := range d.sizes {
			s, err := d.one(w, n, 1, false)
			if err != nil {
				return err
			}
			if i == 0 {
				d.raw[n] = s[0]
			}
			lines[i] = append(lines[i], d.row("2 and 6", w.name, n, s[0]))
		}
	}
	two, six := bandwidthChart("figure 2: registration and copies against the raw write"), bandwidthChart("figure 6: the superpipeline against the raw write")
	for i, w := range rawWays {
		c := curve(w.name, d.sizes, lines[i])
		if i < 3 {
			two.Series = append(two.Series, c)
		}
		six.Series = append(six.Series, c)
	}
	d.res.Charts = append(d.res.Charts, figures.Chart{Name: "figure2", Chart: two}, figures.Chart{Name: "figure6", Chart: six})
	return nil
}

// equations is figure 4, from the model alone.
func (d *drawing) equations() error {
	m := pipeModel(&d.model)
	chart := bandwidthChart("figure 4: the equations")
	for _, l := range []struct {
		name string
		time func(length float64) float64
	}{
		{"raw write", m.Wire},
		{"naive copy", m.NaiveCopy},
		{"flat pipeline, C_opt (equations 1, 3)", func(l float64) float64 { return m.Pipeline(l, m.BestChunk(l)) }},
		{"superpipeline, 12 KB and 1.5 (equation 9)", func(l float64) float64 { return m.SubBlocked(l, 12<<10, 1.5, superpipe.Block) }},
	} {
		var ys []float64
		for _, n := range d.sizes {
			ys = append(ys, d.row("4", l.name, n, l.time(float64(n))))
		}
		chart.Series = append(chart.Series, curve(l.name, d.sizes, ys))
	}
	d.res.Charts = append(d.res.Charts, figures.Chart{Name: "figure4", Chart: chart})
	return nil
}

// firstTouch is figure 7: the first transfer of a buffer and the best of several.
func (d *drawing) firstTouch() error {
	const rounds = 3
	chart := bandwidthChart("figure 7: the first transfer and the best")
	for _, w := range []way{
		{name: "registration cache", how: cached}, {name: "superpipeline", how: piped},
	} {
		say(d.o, "figure 7: %s", w.name)
		var first, best []float64
		for _, n := range d.sizes {
			s, err := d.one(w, n, rounds, true)
			if err != nil {
				return err
			}
			first = append(first, d.row("7", w.name+", first", n, s[0]))
			best = append(best, d.row("7", w.name+", best", n, spreadOf(s).least))
		}
		chart.Series = append(chart.Series, curve(w.name+", first", d.sizes, first), curve(w.name+", best", d.sizes, best))
	}
	d.res.Charts = append(d.res.Charts, figures.Chart{Name: "figure7", Chart: chart})
	return nil
}

// windows is the paper's case through windows: neither end is registered.
func (d *drawing) windows() error {
	rows, err := pair.Compare(d.ctx, d.model, append([]int{80 << 10}, figures.Sizes(128<<10, d.sizes[len(d.sizes)-1], false)...))
	for _, r := range rows {
		d.res.Rows = append(d.res.Rows, []any{"windows", r.Way + ", both ends unregistered", r.Bytes, r.Seconds * 1e6, float64(r.Bytes) / r.Seconds / 1e9, 100 * r.Share})
	}
	return err
}
