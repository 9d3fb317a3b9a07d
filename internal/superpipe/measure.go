package superpipe

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"gopgas/internal/cost"
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
	Local       transport.SGE  // four times as long as Longest, so that some of it is in no cache of a core
	RAddr, RKey uint64         // as many bytes at the other end
	Longest     int            // transfer to try, bytes; 0: all of Local
	Cold        mem.Range      // to copy long transfers out of: more than caches hold; less than four times Longest: as much is taken for some milliseconds
	Hush        sched.Hushable // told as the NIC's waits tell it; nil: nobody is

	// Rest is called between two rounds of tries, with how long that one took, and leaves the cores to the program for some time; nil: never.
	Rest func(worked time.Duration) error

	// Pin registers memory and gives it back, as the program's transfers have it done; nil: the NIC alone.
	Pin func(r mem.Range) error
}

// How Measure works: all is tried in turn, some times over, so that a disturbance of some length does not spoil all tries
// of one thing; and of the tries of each the lower quartile counts, since what disturbs makes longer, never shorter.
const (
	attempts  = 7
	burst     = 16
	small     = 64                   // bytes
	leastGap  = 20 * time.Nanosecond // between two messages: no NIC takes 50 million a second
	disturbed = 4                    // a difference is at least so small a part of the longer time
	latencies = 8
	fastest   = 1.25                  // times the whole curve's bandwidth its end may have
	coldest   = 4                     // times the longest transfer is copied, and moved where there is memory for it
	fewTries  = 3                     // of what is long
	longTry   = 512 << 10             // bytes
	shortTime = 80 * time.Microsecond // what takes less is done several times in a row
	mostInRow = 16
	awakening = 8                    // while there is time: a NIC that has slept looks for work longer when there is some
	enoughOf  = 5 * time.Millisecond // for the tries of one kind of thing: beyond that there are few
	cutBytes  = 16 << 10             // sent at once, and in so many pieces
	cutInto   = 8
)

// Measure measures a Model on this machine and NIC: writes and reads at powers of four up to the longest, from which lambda_net
// and B_net follow; g from small writes at once; B_copy(L) at powers of two; T_reg from one page and from the longest. It takes some
// milliseconds for a megabyte. An operation that fails is its error. Every wait in it ends with ctx.
func Measure(ctx context.Context, b Bench) (*Model, error) {
	longest := min(b.Local.Mem.Bytes, b.NIC.Caps().MaxMessage)
	if b.Longest > 0 {
		longest = min(longest, b.Longest)
	}
	count := max(2, min(burst, b.NIC.Caps().MaxPost))
	var sizes []int
	var what []task
	for _, n := range b.sizes(longest) {
		sizes = append(sizes, n)
		what = append(what, task{bytes: n, f: func() error { return b.move(ctx, transport.OpWrite, 1, 0, n) }},
			task{bytes: n, f: func() error { return b.move(ctx, transport.OpRead, 1, 0, n) }})
	}
	what = append(what, task{bytes: count * small, f: func() error { return b.move(ctx, transport.OpWrite, count, 0, min(small, longest)) }})
	pieces := min(cutInto, count)
	cut := min(cutBytes, longest) / pieces
	for _, n := range []int{1, pieces} {
		what = append(what, task{bytes: pieces * cut, f: func() error { return b.move(ctx, transport.OpWrite, n, 0, pieces*cut/n) }})
	}
	took, err := b.times(what...)
	if err != nil {
		return nil, err
	}
	most := coldest * max(Block, longest)
	cold := b.Cold
	if cold.Bytes < most {
		cold = mem.Of(make([]uint64, most/8+1))
		clear(cold.Data())
	}
	m := new(Model)
	if m.Copies, err = b.copies(cold, most); err != nil {
		return nil, err
	}
	m.Copy = m.Copies.At
	for i, n := range sizes {
		m.Writes = append(m.Writes, cost.Sample{N: n, Nanos: float64(took[2*i])})
		m.Reads = append(m.Reads, cost.Sample{N: n, Nanos: float64(took[2*i+1])})
	}
	rising(m.Writes)
	rising(m.Reads)
	one, many := took[0], took[len(took)-3]
	m.Gap = max(many-one, leastGap*time.Duration(count-1)).Seconds() / float64(count-1)
	m.Cut = min(m.Gap, max(took[len(took)-1]-took[len(took)-2], leastGap*time.Duration(pieces-1)).Seconds()/float64(pieces-1))
	m.Latency = one.Seconds() / 2
	m.Net = bandwidth(m.Writes)
	m.FreshStart, m.Fresh = b.fresh(cold)
	if m.Slowed, err = b.slowed(ctx, longest, m.Net); err != nil {
		return nil, fmt.Errorf("measure copies beside large transfers: %w", err)
	}
	wake := func() error { return b.move(ctx, transport.OpWrite, 1, 0, min(small, longest)) }
	if err := b.register(m, cold, longest, wake); err != nil {
		return nil, err
	}
	return m, nil
}

// beside is how many copies, and as many with a write under way, tell by how much the one slows the other; beneath leastBeside bytes there is
// none long enough. A copy is shorter than the write by copyPart.
const (
	beside      = 7
	leastBeside = 64 << 10
	copyPart    = 4
)

// slowed measures by how much of B_net copies are slower beside a write, by turns.
func (b *Bench) slowed(ctx context.Context, longest int, net float64) (float64, error) {
	if longest < leastBeside {
		return 0, nil
	}
	n := longest / copyPart
	from, to := mem.Of(make([]uint64, beside*2*n/8)), mem.Of(make([]uint64, copySlot/8))
	clear(from.Data())
	var took [2][]time.Duration // alone, beside
	for k := range 2 * beside {
		part, tell := from.Slice(k*n, n), &took[k%2]
		copies := func() {
			began := b.Sched.Now()
			for at := 0; at < n; at += to.Bytes {
				mem.Copy(to.Data(), part.Slice(at, min(to.Bytes, n-at)).Data())
			}
			*tell = append(*tell, b.Sched.Now()-began)
		}
		if k%2 == 0 {
			copies()
		} else if err := b.moving(ctx, transport.OpWrite, 1, 0, longest, copies); err != nil {
			return 0, err
		}
	}
	slices.Sort(took[0])
	slices.Sort(took[1])
	return slowdown(n, took[0][beside/4], took[1][beside/4], net), nil
}

// slowdown is by how much of a bandwidth copies of so many bytes are slower that take the latter time, than those that take the former: 0 to 1.
func slowdown(bytes int, alone, beside time.Duration, net float64) float64 {
	if alone <= 0 || beside <= alone {
		return 0
	}
	return min(1, float64(bytes)*(1/alone.Seconds()-1/beside.Seconds())/net)
}

// sizes are powers of four up to the longest, and all there is, which no cache of a core holds: so is what is longer.
func (b *Bench) sizes(longest int) (all []int) {
	for n := min(small, longest); n < longest; n *= 4 {
		all = append(all, n)
	}
	all = append(all, longest)
	if most := min(coldest*longest, b.NIC.Caps().MaxMessage); most > longest && b.Local.Mem.Bytes >= most {
		all = append(all, most)
	}
	return all
}

// rising makes a curve grow: what took longer than something larger was disturbed.
func rising(c cost.Curve) {
	for i := len(c) - 2; i >= 0; i-- {
		c[i].Nanos = min(c[i].Nanos, c[i+1].Nanos)
	}
}

// bandwidth is that of the end of a curve. A long transfer that seems to take hardly longer than a shorter one is not much
// faster than all of the curve: the shorter one was disturbed.
func bandwidth(c cost.Curve) float64 {
	k := len(c) - 1
	if k == 0 {
		return float64(c[0].N) / c[0].Nanos * 1e9
	}
	end := float64(c[k].N-c[k-1].N) / max(c[k].Nanos-c[k-1].Nanos, c[k].Nanos/disturbed)
	if c[k].Nanos > latencies*c[0].Nanos { // of what takes so long the latency is no large part
		end = min(end, fastest*float64(c[k].N)/c[k].Nanos)
	}
	return end * 1e9
}

// times tries all functions in turn and returns the lower quartile of each one's times.
func (b *Bench) times(what ...task) ([]time.Duration, error) {
	all := make([][]time.Duration, len(what))
	worked := time.Duration(0)
	for try := range attempts {
		if try >= fewTries && worked > enoughOf {
			break
		}
		began := b.Sched.Now()
		for i, t := range what {
			if try >= fewTries && t.bytes >= longTry {
				continue
			}
			d, err := b.once(t)
			if err != nil {
				return nil, fmt.Errorf("measure large transfers: %w", err)
			}
			all[i] = append(all[i], d)
		}
		round := b.Sched.Now() - began
		worked += round
		if err := b.rest(round); err != nil {
			return nil, err
		}
	}
	took := make([]time.Duration, len(what))
	for i := range all {
		slices.Sort(all[i])
		took[i] = max(all[i][len(all[i])/4], 1)
	}
	return took, nil
}

// rest lets the program have its turn.
func (b *Bench) rest(worked time.Duration) error {
	if b.Rest == nil {
		return nil
	}
	return b.Rest(worked)
}

// once returns how long a task takes. What is short is done before, and then several times in a row: it comes often, and is
// slower where other things have just been done, or where nothing was and a NIC sleeps, by more than it takes.
func (b *Bench) once(t task) (took time.Duration, err error) {
	for range awakening {
		again, err := b.row(t, 1)
		if err != nil || t.bytes >= longTry || b.Sched.Virtual() {
			return again, err
		}
		if took == 0 || again < took {
			took = max(1, again)
		}
		if took < shortTime {
			return b.row(t, min(mostInRow, 1+int(shortTime/took)))
		}
	}
	return took, nil
}

// row returns how long a task takes that is done n times.
func (b *Bench) row(t task, n int) (time.Duration, error) {
	if t.before != nil {
		if err := t.before(); err != nil {
			return 0, err
		}
	}
	began := b.Sched.Now()
	for range n {
		if err := t.f(); err != nil {
			return 0, err
		}
	}
	return (b.Sched.Now() - began) / time.Duration(n), nil
}

// task is something that moves so many bytes.
type task struct {
	bytes  int
	f      func() error
	before func() error // a row of it, nil: nothing
}

// move makes n writes or reads of some bytes at a place and waits until all are reported.
func (b *Bench) move(ctx context.Context, kind transport.Kind, n, at, bytes int) error {
	return b.moving(ctx, kind, n, at, bytes, nil)
}

// moving is move that does something while the NIC is at the first of them.
func (b *Bench) moving(ctx context.Context, kind transport.Kind, n, at, bytes int, meanwhile func()) error {
	op := transport.Op{
		Kind: kind, Flags: transport.FlagSignaled, NSGE: 1, EP: b.EP,
		SGE: [4]transport.SGE{{Mem: b.Local.Mem.Slice(at, bytes), LKey: b.Local.LKey}}, RAddr: b.RAddr + uint64(at), RKey: b.RKey,
	}
	ops := slices.Repeat([]transport.Op{op}, n)
	var cq [burst]transport.Completion
	sp := b.Sched.Begin(ctx, sched.What{Op: "measure", Peer: -1}, nil)
	defer sp.End()
	sp.Hushes(b.Hush)
	for reported := 0; reported < n; {
		posted, err := b.NIC.Post(ops)
		if err != nil {
			return err
		}
		ops = ops[posted:]
		if posted > 0 && meanwhile != nil {
			meanwhile()
			meanwhile = nil
		}
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

// copies measures B_copy(L) at powers of two, as the first transfer of a buffer copies: out of a source that is in no cache of
// a core, since each copy goes on where the one before has ended, into a slot. Long ones go through so much memory that it is in none of the machine's,
// and the last is long: that needs no registration, and so is measured also where the transfers that are tried are shorter.
func (b *Bench) copies(from mem.Range, most int) (all cost.Speeds, err error) {
	to := mem.Of(make([]uint64, copySlot/8))
	clear(to.Data())
	var sizes []float64
	var what []task
	var rounds []int
	start := 0 // of the next copy
	try := func(n int) {
		r, within := max(1, 64<<10/n), most // enough for the clock
		if n >= longTry {
			within = from.Bytes
		}
		sizes, rounds = append(sizes, float64(n)), append(rounds, r)
		what = append(what, task{bytes: n, f: func() error {
			for range r {
				if start+n > within {
					start = 0
				}
				for at := 0; at < n; at += to.Bytes {
					mem.Copy(to.Data(), from.Slice(start+at, min(to.Bytes, n-at)).Data())
				}
				start += n
			}
			return nil
		}})
	}
	for n := min(Block, most); n < most; n *= 2 {
		try(n)
	}
	try(most)
	if most < b.Cold.Bytes/coldest {
		try(b.Cold.Bytes / coldest)
	}
	took, err := b.times(what...)
	if err != nil {
		return nil, err
	}
	for i, n := range sizes {
		all = append(all, struct{ Bytes, Speed float64 }{n, n * float64(rounds[i]) / took[i].Seconds()})
	}
	return all, nil
}

// copySlot is the size of what is copied into.
const copySlot = 128 << 10

// How copies of fresh memory are measured: of two sizes, at places as far from each other as can be, which no prefetcher foresees.
const (
	freshLess  = 1 << 10
	freshMore  = 32 << 10
	freshTries = 24
	freshStep  = 0.381966 // of the memory: the golden section's smaller part
	pageBytes  = 4096
)

// fresh measures copies whose source nobody has touched for long: when they begin to go on steadily, in seconds, and with what bandwidth. 0, 0
// where there is no memory for it, or time does not show it.
func (b *Bench) fresh(from mem.Range) (start, bandwidth float64) {
	if from.Bytes < 2*freshTries*2*freshMore {
		return 0, 0
	}
	to := mem.Of(make([]uint64, freshMore/8))
	clear(to.Data())
	var took [2][]time.Duration
	places := (from.Bytes - freshMore) / pageBytes
	for k := range 2 * freshTries {
		n, tell := [...]int{freshLess, freshMore}[k%2], &took[k%2]
		_, part := math.Modf(float64(k) * freshStep)
		src := from.Slice(int(part*float64(places))*pageBytes, n)
		began := b.Sched.Now()
		mem.Copy(to.Data(), src.Data())
		*tell = append(*tell, b.Sched.Now()-began)
	}
	slices.Sort(took[0])
	slices.Sort(took[1])
	return line(took[0][freshTries/2], took[1][freshTries/2])
}

// line is the start and the slope, as a bandwidth, of what takes so long for freshLess and for freshMore bytes.
func line(less, more time.Duration) (start, bandwidth float64) {
	if more <= less {
		return 0, 0
	}
	bandwidth = (freshMore - freshLess) / (more - less).Seconds()
	return max(0, less.Seconds()-freshLess/bandwidth), bandwidth
}

// register measures T_reg: registering and deregistering one block, and as much as the longest. Each try is of the memory behind that of the one
// before, as first transfers are: what the kernel keeps of pages that have just been registered is in its caches. And wake comes first: a NIC that
// is a program looks for work for a while after a transfer, beside what registers for the next one.
func (b *Bench) register(m *Model, all mem.Range, longest int, wake func() error) error {
	pin, start := b.Pin, 0
	if pin == nil {
		pin = func(r mem.Range) error {
			reg, err := b.NIC.Register(r, transport.LocalWrite)
			if err != nil {
				return err
			}
			return b.NIC.Deregister(reg)
		}
	}
	try := func(n int) task {
		return task{bytes: n, before: wake, f: func() error {
			if start+n > all.Bytes {
				start = 0
			}
			r := all.Slice(start, n)
			start += max(n, Block)
			return pin(r)
		}}
	}
	took, err := b.times(try(min(small, longest)), try(longest))
	if err != nil {
		return err
	}
	one, whole := took[0], took[1]
	m.RegLatency = one.Seconds()
	m.Reg = float64(max(1, longest-small)) / max(whole-one, whole/disturbed, time.Nanosecond).Seconds()
	return nil
}
