package figures

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"gopgas/internal/cost"
	"gopgas/internal/mem"
	"gopgas/internal/plot"
	"gopgas/transport"
	"gopgas/transport/auto"
)

// costs is registration against copy by size, on every NIC that is here, with the lines that are fitted to it.
func costs(ctx context.Context, o *Options) (*Result, error) {
	sizes, err := o.Sweep(4<<10, 16<<20)
	if err != nil {
		return nil, err
	}
	if len(sizes) < 2 {
		return nil, fmt.Errorf("--max %d: want two sizes at least, to which a line can be fitted: %d", o.Most, 2*sizes[0])
	}
	res := &Result{
		Kind:    "measured on the NICs of this machine, without the library above them",
		Columns: []string{"nic", "bytes", "register_us", "register_us_min", "register_us_max", "deregister_us", "copy_us", "register_gb_per_s", "copy_gb_per_s"},
		Notes:   []string{"median [min, max]; register_gb_per_s counts registering and deregistering; buffers were touched beforehand"},
	}
	rate := plot.Chart{
		Title: "bandwidth of registering and deregistering, and of copying",
		X:     plot.Axis{Label: "bytes", Log: 2, Bytes: true}, Y: plot.Axis{Label: "GB/s", Log: 10},
	}
	lines := plot.Chart{
		Title: "cost of a registration by pages",
		X:     plot.Axis{Label: "pages", Log: 2}, Y: plot.Axis{Label: "us", Log: 10},
	}
	copied := plot.Series{Name: "copy"}
	for _, name := range []string{"soft", "tcp", "verbs"} {
		n, err := openNIC(ctx, name, 0, auto.Config{MaxPinned: 1 << 30})
		if err != nil {
			res.Notes = append(res.Notes, fmt.Sprintf("not measured: %s: %v", name, err))
			continue
		}
		o.say("%s", name)
		rows, err := n.registrations(sizes, 5+15*o.Reps)
		if err := errors.Join(err, n.close()); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		r, l := plot.Series{Name: name}, plot.Series{Name: name}
		var samples []cost.Sample
		for _, x := range rows {
			gb := func(us float64) float64 { return float64(x.bytes) / us / 1e3 }
			both := spread{gb(x.reg.median + x.dereg.median), gb(x.reg.most + x.dereg.most), gb(x.reg.least + x.dereg.least)}
			res.Rows = append(res.Rows, []any{
				name, x.bytes, x.reg.median, x.reg.least, x.reg.most, x.dereg.median, x.copied.median, both.median, gb(x.copied.median),
			})
			r.Points = append(r.Points, both.point(float64(x.bytes)))
			pages := float64(x.bytes) / float64(n.page())
			l.Points = append(l.Points, x.reg.point(pages))
			samples = append(samples, cost.Sample{N: (x.bytes + n.page() - 1) / n.page(), Nanos: x.reg.least * 1e3})
			if name == "soft" {
				copied.Points = append(copied.Points, spread{gb(x.copied.median), gb(x.copied.most), gb(x.copied.least)}.point(float64(x.bytes)))
			}
		}
		fit, err := cost.Fit(samples)
		if err != nil {
			return nil, err
		}
		res.Notes = append(res.Notes, fmt.Sprintf("%s: register = %.2f us + %.4f us a page, largest residual %.2f us (fit to the least times)",
			name, fit.B/1e3, fit.A/1e3, fit.Residual/1e3))
		fitted := plot.Series{Name: name + ", fit", Plain: true}
		for _, p := range l.Points {
			fitted.Points = append(fitted.Points, plot.Point{X: p.X, Y: (fit.B + fit.A*p.X) / 1e3})
		}
		rate.Series = append(rate.Series, r)
		lines.Series = append(lines.Series, l, fitted)
	}
	if len(rate.Series) == 0 {
		return nil, fmt.Errorf("no NIC can be opened here: %v", res.Notes)
	}
	rate.Series = append(rate.Series, copied)
	res.Charts = []Chart{{"bandwidth", rate}, {"lines", lines}}
	return res, nil
}

// registration is what one size costs, in microseconds.
type registration struct {
	bytes              int
	reg, dereg, copied spread
}

// page is the size of what is registered and charged.
func (n *nic) page() int { return os.Getpagesize() }

// registrations times tries of each size.
func (n *nic) registrations(sizes []int, tries int) (out []registration, err error) {
	most := sizes[len(sizes)-1]
	from, to := make([]byte, most), make([]byte, most)
	for i := range from {
		from[i], to[i] = byte(i), 1
	}
	memory := mem.Of(from)
	defer runtime.KeepAlive(from)
	for _, size := range sizes {
		var reg, dereg, copied []float64
		for range tries {
			t0 := time.Now()
			r, err := n.d.Register(memory.Slice(0, size), transport.LocalWrite)
			t1 := time.Now()
			if err != nil {
				return nil, fmt.Errorf("register %d bytes: %w", size, err)
			}
			if err := n.d.Deregister(r); err != nil {
				return nil, fmt.Errorf("deregister %d bytes: %w", size, err)
			}
			t2 := time.Now()
			copy(to[:size], from[:size])
			t3 := time.Now()
			reg, dereg, copied = append(reg, us(t1.Sub(t0))), append(dereg, us(t2.Sub(t1))), append(copied, us(t3.Sub(t2)))
		}
		out = append(out, registration{size, spreadOf(reg), spreadOf(dereg), spreadOf(copied)})
	}
	return out, nil
}

func us(d time.Duration) float64 { return max(float64(d), 1) / 1e3 }
