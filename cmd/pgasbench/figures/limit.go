package figures

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gopgas/internal/replay"
	"gopgas/regmgr"
)

// impossible is a problem whose buffers do not fit under the limit together: three buffers, and room for two.
func impossible(ctx context.Context, o *Options) (*Result, error) {
	m := micro{
		transport: o.Transport, bytes: or(o.Bytes, 4<<20), iterations: or(o.Iterations, 10), compute: or(o.Compute, 20*time.Millisecond),
	}
	m.limit = 2*int64(m.bytes) + 64<<10
	res := &Result{
		Kind:    "measured on the " + o.Transport + " NIC of this machine, one rank that puts to itself",
		Columns: []string{"policy", "outcome", "peak_bytes", "limit_bytes", "hits", "misses", "copies_for_want_of_room", "evictions", "call_us"},
		Notes: []string{
			fmt.Sprintf("%d iterations over %d buffers of %d bytes, limit %d bytes", m.iterations, buffers, m.bytes, m.limit),
			"paper: FT.D needs 3.58 GB a task and may register 3 GB: it ends with an error when everything stays pinned, and runs with the helper",
		},
	}
	for _, name := range policies() {
		m.policy = name
		r, err := m.run(ctx)
		if err != nil && (name != regmgr.LeavePinnedNoEvict.String() || !errors.Is(err, regmgr.ErrBudget)) {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err != nil { // that is this policy's outcome
			res.Rows = append(res.Rows, []any{name, "error", "-", m.limit, "-", "-", "-", "-", "-"})
			res.Notes = append(res.Notes, name+": "+err.Error())
			continue
		}
		s := r.stats
		var later []float64
		for _, c := range r.later() {
			later = append(later, c*1e6)
		}
		res.Rows = append(res.Rows, []any{
			name, "ran", s.PeakBytes, m.limit, s.Hits, s.MissCold + s.MissPartial + s.MissRights, s.CopiedBudget + s.CopiedRefused,
			s.Evicted, spreadOf(later).median,
		})
	}
	return res, nil
}

// tooLarge is the same in virtual time with the shape of FT and the paper's ratio of limit to demand.
func tooLarge(_ context.Context, o *Options) (*Result, error) {
	files, err := o.shape("ft", replay.ShapeConfig{Noise: or(o.Noise, defaultNoise), Spikes: or(o.Spikes, defaultSpikes)})
	if err != nil {
		return nil, err
	}
	c, err := o.config()
	if err != nil {
		return nil, err
	}
	c.Policy, c.RanksPerNode = replay.LeavePinned, 1
	whole, err := replay.Run(files, c)
	if err != nil {
		return nil, err
	}
	res := o.replayed("policy", "outcome", "peak_bytes", "limit_bytes", "hits", "misses", "copies_for_want_of_room", "evictions")
	c.Limit = int64(float64(whole.Peak) * 3 / 3.58)
	for _, p := range []replay.Policy{replay.LeavePinnedNoEvict, replay.LeavePinned, replay.Predictive} {
		c.Policy = p
		r, err := replay.Run(files, c)
		var limit *replay.LimitError
		switch {
		case errors.As(err, &limit):
			res.Rows = append(res.Rows, []any{p.String(), "error", "-", c.Limit, "-", "-", "-", "-"})
			res.Notes = append(res.Notes, err.Error())
		case err != nil:
			return nil, err
		default:
			res.Rows = append(res.Rows, []any{p.String(), "ran", r.Peak, c.Limit, r.Hits, r.First + r.Again, r.Fallback, r.Evictions})
		}
	}
	return res, nil
}
