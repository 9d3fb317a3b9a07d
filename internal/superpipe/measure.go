package superpipe

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// Bench is what Measure measures over: a connection with memory at its other end that nobody else uses. The other end
// may be this rank itself; then the figures are those of the NIC without the wire.
type Bench struct {
	Sched       *sched.Sched
	NIC         NIC
	Poll        func(cq []transport.Completion) (int, error) // of the same NIC, which nobody else polls meanwhile
	EP          transport.EP
	Local       transport.SGE // as long as the longest write tried
	RAddr, RKey uint64        // as many bytes at the other end
}

// How Measure works: each figure is the least of some attempts.
const (
	attempts  = 7
	burst     = 16
	small     = 64                   // bytes
	leastGap  = 20 * time.Nanosecond // between two messages: no NIC takes 50 million a second
	disturbed = 4                    // a difference is at least so small a part of the longer time
)

// Measure measures a Model on this machine and NIC: g and lambda_net from small writes, B_net from the longest,
// B_copy(L) at powers of two up to it, T_reg from one page and from all. It takes some milliseconds for a megabyte. An
// operation that fails is its error. Every wait in it ends with ctx.
func Measure(ctx context.Context, b Bench) (*Model, error) {
	longest := min(b.Local.Mem.Bytes, b.NIC.Caps().MaxMessage)
	count := max(2, min(burst, b.NIC.Caps().MaxPost))
	one, err := b.least(func() error { return b.write(ctx, 1, small) })
	if err != nil {
		return nil, err
	}
	many, err := b.least(func() error { return b.write(ctx, count, small) })
	if err != nil {
		return nil, err
	}
	long, err := b.least(func() error { return b.write(ctx, 1, longest) })
	if err != nil {
		return nil, err
	}
	// A long write that seems to take hardly longer than a short one is a short one that was disturbed.
	m := &Model{
		Gap:     max(many-one, leastGap*time.Duration(count-1)).Seconds() / float64(count-1),
		Latency: one.Seconds() / 2,
		Net:     float64(longest-small) / max(long-one, long/disturbed, time.Nanosecond).Seconds(),
		Copy:    b.copies(longest),
	}
	if err := b.register(m, longest); err != nil {
		return nil, err
	}
	return m, nil
}

// least returns the shortest time of some attempts.
func (b *Bench) least(f func() error) (time.Duration, error) {
	best := time.Duration(1<<63 - 1)
	for range attempts {
		began := b.Sched.Now()
		if err := f(); err != nil {
			return 0, fmt.Errorf("measure large transfers: %w", err)
		}
		best = min(best, b.Sched.Now()-began)
	}
	return best, nil
}

// write makes n writes of some bytes and waits until all are reported.
func (b *Bench) write(ctx context.Context, n, bytes int) error {
	op := transport.Op{
		Kind: transport.OpWrite, Flags: transport.FlagSignaled, NSGE: 1, EP: b.EP,
		SGE: [4]transport.SGE{{Mem: b.Local.Mem.Slice(0, bytes), LKey: b.Local.LKey}}, RAddr: b.RAddr, RKey: b.RKey,
	}
	ops := slices.Repeat([]transport.Op{op}, n)
	var cq [burst]transport.Completion
	sp := b.Sched.Begin(ctx, sched.What{Op: "measure", Peer: -1}, nil)
	defer sp.End()
	for reported := 0; reported < n; {
		posted, err := b.NIC.Post(ops)
		if err != nil {
			return err
		}
		ops = ops[posted:]
		k, err := b.Poll(cq[:])
		if err != nil {
			return err
		}
		for i := range cq[:k] {
			if cq[i].Status != transport.StatusOK {
				return statusError(cq[i].Status)
			}
		}
		if reported += k; k == 0 && posted == 0 {
			if err := sp.Step(); err != nil {
				return err
			}
		}
	}
	return nil
}

// copies measures B_copy(L) at powers of two.
func (b *Bench) copies(longest int) func(bytes float64) float64 {
	from, to := mem.Of(make([]uint64, longest/8+1)), mem.Of(make([]uint64, longest/8+1))
	clear(from.Data())
	clear(to.Data())
	var sizes, speeds []float64
	for n := min(Block, longest); ; n = min(2*n, longest) {
		rounds := max(1, 64<<10/n) // enough for the clock
		t, _ := b.least(func() error {
			for range rounds {
				copy(to.Slice(0, n).Data(), from.Slice(0, n).Data())
			}
			return nil
		})
		sizes = append(sizes, float64(n))
		speeds = append(speeds, float64(n*rounds)/max(t, time.Nanosecond).Seconds())
		if n == longest {
			return func(bytes float64) float64 { return between(sizes, speeds, bytes) }
		}
	}
}

// between is the straight line between the points around x, and beyond them the last one's value.
func between(xs, ys []float64, x float64) float64 {
	i, _ := slices.BinarySearch(xs, x)
	if i == 0 {
		return ys[0]
	}
	if i == len(xs) {
		return ys[i-1]
	}
	return ys[i-1] + (x-xs[i-1])/(xs[i]-xs[i-1])*(ys[i]-ys[i-1])
}

// register measures T_reg: registering and deregistering one block and everything.
func (b *Bench) register(m *Model, longest int) error {
	all := mem.Of(make([]uint64, longest/8+1))
	clear(all.Data())
	try := func(n int) (time.Duration, error) {
		return b.least(func() error {
			r, err := b.NIC.Register(all.Slice(0, n), transport.LocalWrite)
			if err != nil {
				return err
			}
			return b.NIC.Deregister(r)
		})
	}
	one, err := try(small)
	if err != nil {
		return err
	}
	whole, err := try(longest)
	if err != nil {
		return err
	}
	m.RegLatency = one.Seconds()
	m.Reg = float64(longest-small) / max(whole-one, whole/disturbed, time.Nanosecond).Seconds()
	return nil
}
