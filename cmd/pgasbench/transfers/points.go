package transfers

import (
	"fmt"

	"gopgas/transport/sim"
)

// points adds the values that the paper states in words, beside ours, to the notes.
func (d *drawing) points() error {
	fly, naive, hard, planned := rawWays[1], rawWays[2], rawWays[4], rawWays[5]
	long := d.sizes[len(d.sizes)-1]
	for _, p := range []struct {
		paper string
		way   way
		bytes int
	}{
		{"registration lowers the bandwidth by as much as 60 % near 64 KB", fly, 64 << 10},
		{"the same", fly, 92 << 10},
		{"on the fly tends to 91 %", fly, long},
		{"naive copy tends to 57 %", naive, long},
		{"superpipeline, 12 KB and 1.5, within 15 % at 16 KB", hard, 16 << 10},
		{"superpipeline within 5 % above 64 KB", hard, 64 << 10},
		{"the same, planned from the constants", planned, 64 << 10},
		{"the same, 12 KB and 1.5, above", hard, 128 << 10},
		{"the same, planned, above", planned, 128 << 10},
		{"the same, far above", hard, 1 << 20},
	} {
		if p.bytes > long {
			continue
		}
		derived, err := d.share(p.way, p.bytes)
		if err != nil {
			return err
		}
		with := *d
		with.model = sim.Graphene()
		assumed, err := with.share(p.way, p.bytes)
		if err != nil {
			return err
		}
		d.res.Notes = append(d.res.Notes, fmt.Sprintf("paper: %s; ours at %d bytes: %.1f %% of raw (%.1f %% with g of %v)", p.paper, p.bytes,
			derived, assumed, with.model.Write.Gap))
	}
	at, err := d.overtakes(naive, rawWays[3])
	if err != nil {
		return err
	}
	d.res.Notes = append(d.res.Notes, fmt.Sprintf("paper: naive copy ahead of the flat pipeline below 16 KB; ours, simulated: up to %d bytes", at))
	return nil
}

// share is the bandwidth of a way in percent of the raw write's.
func (d *drawing) share(w way, bytes int) (float64, error) {
	raw, err := d.one(rawWays[0], bytes, 1, false)
	if err != nil {
		return 0, err
	}
	s, err := d.one(w, bytes, 1, false)
	if err != nil {
		return 0, err
	}
	return 100 * raw[0] / s[0], nil
}

// overtakes returns the largest size, in steps of 5 %, up to which the first way is faster than the second.
func (d *drawing) overtakes(a, b way) (at int, err error) {
	for n := 4 << 10; n <= 64<<10 && n <= d.sizes[len(d.sizes)-1]; n += n / 20 {
		x, err := d.one(a, n, 1, false)
		if err != nil {
			return 0, err
		}
		y, err := d.one(b, n, 1, false)
		if err != nil {
			return 0, err
		}
		if x[0] >= y[0] {
			return at, nil
		}
		at = n
	}
	return at, nil
}
