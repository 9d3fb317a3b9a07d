package superpipe

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gopgas/transport"
)

// Toward makes of a model that Measure has taken between a rank and itself one of transfers with a peer, with whom they may go
// another way, or a longer one. It only reads the peer's memory, so that this may be anybody's: reads are measured at the same
// sizes, as far as b.Longest goes, and writes are taken to differ from them as they do at home. An operation that fails is its
// error, and leaves m as it was.
func (m *Model) Toward(ctx context.Context, b Bench) error {
	longest := min(b.Local.Mem.Bytes, b.NIC.Caps().MaxMessage)
	if b.Longest > 0 {
		longest = min(longest, b.Longest)
	}
	var what []task
	for _, s := range m.Reads {
		if s.N > longest {
			break
		}
		what = append(what, task{bytes: s.N, f: func() error { return b.move(ctx, transport.OpRead, 1, 0, s.N) }})
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
	reads, writes, more := slices.Clone(m.Reads), slices.Clone(m.Writes), 1.0
	for i := range reads {
		if i < len(what)-1 {
			more = float64(took[i]) / reads[i].Nanos
		}
		reads[i].Nanos *= more
		writes[i].Nanos *= more
	}
	rising(reads)
	rising(writes)
	m.Reads, m.Writes = reads, writes
	m.Gap = max(m.Gap, (took[len(took)-1]-took[0]).Seconds()/float64(count-1))
	m.Latency = writes[0].Nanos / 2 / float64(time.Second)
	m.Net = bandwidth(writes)
	return nil
}
