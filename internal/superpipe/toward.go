package superpipe

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gopgas/internal/cost"
	"gopgas/transport"
)

// Toward makes of a model that Measure has taken between a rank and itself one of transfers with a peer, with whom they may go
// another way, or a longer one: writes and reads are measured at the same sizes, as far as b.Longest goes, and beyond are taken to differ as the longest do. An
// operation that fails is its error, and leaves m as it was.
func (m *Model) Toward(ctx context.Context, b Bench) error {
	longest := min(b.Local.Mem.Bytes, b.NIC.Caps().MaxMessage)
	if b.Longest > 0 {
		longest = min(longest, b.Longest)
	}
	var what []task
	for i, c := range [...]cost.Curve{m.Writes, m.Reads} {
		kind := [...]transport.Kind{transport.OpWrite, transport.OpRead}[i]
		for _, s := range c {
			if s.N > longest {
				break
			}
			what = append(what, task{bytes: s.N, f: func() error { return b.move(ctx, kind, 1, 0, s.N) }})
		}
	}
	if len(what) == 0 {
		return fmt.Errorf("measure transfers with a peer: %d bytes of its memory are too few", longest)
	}
	count, least := max(2, min(burst, b.NIC.Caps().MaxPost)), m.Reads[0].N
	what = append(what, task{bytes: count * least, f: func() error { return b.move(ctx, transport.OpRead, count, 0, least) }})
	took, err := b.times(what...)
	if err != nil {
		return err
	}
	each := (len(what) - 1) / 2
	writes, reads := lengthened(m.Writes, took[:each]), lengthened(m.Reads, took[each:2*each])
	m.Gap = max(m.Gap, (took[len(took)-1]-took[each]).Seconds()/float64(count-1))
	m.Reads, m.Writes = reads, writes
	m.Latency = writes[0].Nanos / 2 / float64(time.Second)
	m.Net = bandwidth(writes)
	return nil
}

// lengthened is a curve whose first sizes take so long, and whose others differ as the last of these.
func lengthened(c cost.Curve, took []time.Duration) cost.Curve {
	c, more := slices.Clone(c), 1.0
	for i := range c {
		if i < len(took) {
			more = float64(took[i]) / c[i].Nanos
		}
		c[i].Nanos *= more
	}
	rising(c)
	return c
}
