package transfers

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"gopgas/cmd/pgasbench/figures"
	"gopgas/internal/paired"
	"gopgas/internal/plot"
	"gopgas/internal/selector"
	"gopgas/pgas"
	"gopgas/transport/auto"
)

// The variants of large transfers whose source is not registered. The target is.
var largeVariants = []variant{
	{name: "naive copy", bulk: "copy", force: selector.Pipe},
	{name: "flat pipeline", bulk: "flat", force: selector.Pipe},
	{name: "register on the fly", bulk: "onthefly", force: selector.Pipe},
	{name: "left pinned", bulk: "register", force: selector.Direct},
	{name: "superpipeline", bulk: "superpipe", force: selector.Pipe},
	{name: "superpipeline, 12 KB and 1.5", bulk: "superpipe", force: selector.Pipe, plain: true},
	{name: "hybrid", bulk: "auto", force: selector.Hybrid},
}

const (
	rawName     = "raw write"
	rawControl  = "raw write again"
	paperNIC    = 1_500_000_000 // bytes per second, near the paper's
	again       = 100           // uses of one buffer, as in figure 7
	againTime   = 300 * time.Millisecond
	freshMemory = 192 << 20
	mostFresh   = 16
	warmBytes   = 16 << 10 // of a transfer that wakes the NIC, and the way that is timed, before it
)

func touchSoft(ctx context.Context, o *figures.Options) (*figures.Result, error) {
	return touch(ctx, o, paperNIC)
}

func touchNative(ctx context.Context, o *figures.Options) (*figures.Result, error) {
	return touch(ctx, o, 0)
}

// uses are the times of one variant at one size, in seconds: of first uses, of as many uses of a buffer that was used before, under the same
// circumstances, of first uses in the midst of other transfers, and of many uses of one buffer.
type uses struct{ first, known, midst, again []float64 }

// touch times the first use of buffers, and a hundred uses of one, under every variant.
func touch(ctx context.Context, o *figures.Options, bandwidth int64) (*figures.Result, error) {
	sizes := figures.Sizes(4<<10, max(o.Most, 4<<10), o.Fine)
	switch {
	case o.Bytes > 0:
		sizes = []int{o.Bytes}
	case o.Most == 0:
		sizes = figures.Sizes(4<<10, 16<<20, o.Fine)
	}
	names := []string{rawName}
	for _, v := range largeVariants {
		names = append(names, v.name)
	}
	names = append(names, rawControl)
	all := map[string]map[int]*uses{}
	for _, n := range names {
		all[n] = map[int]*uses{}
		for _, size := range sizes {
			all[n][size] = &uses{}
		}
	}
	for rep := range o.Reps {
		say(o, "repeat %d of %d, %d sizes", rep+1, o.Reps, len(sizes))
		if err := touchOnce(ctx, o, bandwidth, sizes, all); err != nil {
			return nil, err
		}
	}
	return touchResult(o, bandwidth, sizes, names, all), nil
}

// touchOnce is one repeat: new worlds, so that nothing is registered.
func touchOnce(ctx context.Context, o *figures.Options, bandwidth int64, sizes []int, all map[string]map[int]*uses) (err error) {
	most := max(warmBytes, sizes[len(sizes)-1])
	raw, err := figures.OpenRaw(ctx, o.Transport, most, auto.Config{MaxPinned: 4 * int64(most), SoftBandwidth: bandwidth})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, raw.Close()) }()
	benches, err := openAll(ctx, o, largeVariants, most, int64(freshMemory)*3, pgas.Config{SoftBandwidth: bandwidth})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll(ctx, benches)) }()
	warm := newArena(warmBytes).take(warmBytes) // not on the stack: what lies there no pipe and no registration carries
	for _, size := range sizes {
		count := max(2, min(mostFresh, freshMemory/len(benches)/max(size, 4096)/2))
		mem := newArena((2*count + 1) * len(benches) * ((size + 4095) &^ 4095))
		mine := map[*bench][]byte{}
		for _, b := range benches {
			mine[b] = mem.take(size)
			if err := b.put(mine[b]); err != nil {
				return err
			}
		}
		runtime.GC()
		percent := debug.SetGCPercent(-1)
		for round := range count {
			u := func(name string) *uses { return all[name][size] }
			for _, step := range []struct {
				way  func(b *bench) error
				to   func(name string) *[]float64
				wake int
			}{
				{func(b *bench) error { return b.touch(mem.take(size), warm, &u(b.name).first) }, func(name string) *[]float64 { return &u(name).first }, warmBytes},
				{func(b *bench) error { return b.touch(mine[b], warm, &u(b.name).known) }, func(name string) *[]float64 { return &u(name).known }, warmBytes},
				{func(b *bench) error { return b.touch(mem.take(size), mine[b], &u(b.name).midst) }, func(name string) *[]float64 { return &u(name).midst }, size},
			} {
				err := byTurns(benches, round, step.way, func(name string) error { return touchRaw(raw, size, min(size, step.wake), 1, step.to(name)) })
				if err != nil {
					return err
				}
			}
		}
		err := touchAgain(raw, benches, size, all)
		debug.SetGCPercent(percent)
		if err != nil {
			return err
		}
	}
	return nil
}

// byTurns has each way measured once, and the raw write twice: as itself and as its own control.
func byTurns(benches []*bench, round int, way func(*bench) error, write func(name string) error) error {
	n := len(benches)
	for place := range n + 2 {
		var err error
		switch i := paired.Turn(n+2, round, place); i {
		case n:
			err = write(rawName)
		case n + 1:
			err = write(rawControl)
		default:
			err = way(benches[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// touchRaw times raw writes, after one of so many bytes that wakes the NIC.
func touchRaw(raw *figures.Raw, size, wake, times int, to *[]float64) error {
	apart()
	if err := raw.Write(wake); err != nil {
		return err
	}
	for range times {
		t, err := timed(func() error { return raw.Write(size) })
		if err != nil {
			return err
		}
		*to = append(*to, t)
	}
	return raw.Check(size)
}

// touch times a put of src after one of another buffer, which wakes the NIC and the way: a short one, or one as long, in whose midst src is then.
func (b *bench) touch(src, before []byte, to *[]float64) error {
	apart()
	if err := b.put(before); err != nil {
		return err
	}
	t, err := timed(func() error { return b.put(src) })
	if err != nil {
		return fmt.Errorf("%s, %d bytes: %w", b.name, len(src), err)
	}
	*to = append(*to, t)
	return b.holds(src)
}

// touchAgain times a hundred uses of one buffer, or as many as fit into the time, in rounds of ten by turns.
func touchAgain(raw *figures.Raw, benches []*bench, size int, all map[string]map[int]*uses) error {
	bufs := newArena(len(benches) * ((size + 4095) &^ 4095))
	mine := map[*bench][]byte{}
	for _, b := range benches {
		mine[b] = bufs.take(size)
		if err := b.put(mine[b]); err != nil {
			return err
		}
	}
	const rounds = 10
	began := time.Now()
	for round := range rounds {
		err := byTurns(benches, round, func(b *bench) error {
			apart()
			if err := b.put(mine[b]); err != nil { // wakes the NIC
				return err
			}
			u := all[b.name][size]
			for range again / rounds {
				t, err := timed(func() error { return b.put(mine[b]) })
				if err != nil {
					return err
				}
				u.again = append(u.again, t)
			}
			return b.holds(mine[b])
		}, func(name string) error {
			return touchRaw(raw, size, min(size, warmBytes), again/rounds, &all[name][size].again)
		})
		if err != nil {
			return err
		}
		if round > 0 && time.Since(began) > againTime*time.Duration(len(benches)) {
			break
		}
	}
	return nil
}

// touchResult makes the tables and charts.
func touchResult(o *figures.Options, bandwidth int64, sizes []int, names []string, all map[string]map[int]*uses) *figures.Result {
	speed := "at its own speed"
	if bandwidth > 0 {
		speed = fmt.Sprintf("slowed to %.1f GB/s", float64(bandwidth)/1e9)
	}
	res := &figures.Result{
		Kind: "measured on the " + o.Transport + " NIC of this machine " + speed + ", a process that puts to itself",
		Columns: append([]string{
			"way", "bytes", "first_us", "first_us_min", "first_us_max", "again_us", "again_us_min", "again_us_max", "first_percent_of_raw", "best_percent_of_raw",
			"known_us", "midst_us", "midst_percent_of_raw", "midst_percent_of_best",
		}, pairedColumns("first_of_raw", "again_of_raw", "first_of_known")...),
		Notes: []string{
			"known: as first, but a buffer used before: what first takes more is what its newness costs; midst: a first use directly after a transfer as long of another buffer, " +
				"by the same way, instead of after one of 16 KiB: NIC, slots and code are as they are among transfers; midst_percent_of_best: the best of again over the median of midst",
			"put and flush to registered memory; first: buffers never used before, touched, by turns; again: one buffer, up to 100 times by turns of ten; median [min, max]",
			"before each timed transfer one of 16 KiB that travels the same way, of memory used before, or the same, wakes the NIC; percents compare medians of first uses, and least times, with the raw write's",
			pairedNote + ", the raw write again; the two are the bandwidth as a part of the raw write's",
			"naive copy and flat pipeline have the library's slots of 128 KiB: longer messages are cut",
		},
	}
	first, best := bandwidthChart("first use, medians, "+speed), bandwidthChart("best of up to 100, "+speed)
	for _, name := range names {
		f, b := plot.Series{Name: name}, plot.Series{Name: name}
		for _, n := range sizes {
			u, raw := all[name][n], all[rawName][n]
			one, many, midst := spreadOf(u.first), spreadOf(u.again), spreadOf(u.midst).median
			res.Rows = append(res.Rows, append([]any{
				name, n, one.median * 1e6, one.least * 1e6, one.most * 1e6, many.median * 1e6, many.least * 1e6, many.most * 1e6,
				100 * spreadOf(raw.first).median / one.median, 100 * spreadOf(raw.again).least / many.least,
				spreadOf(u.known).median * 1e6, midst * 1e6, 100 * spreadOf(raw.midst).median / midst, 100 * many.least / midst,
			}, three(paired.Quotient(u.first, raw.first), paired.Quotient(u.again, raw.again), paired.Quotient(u.known, u.first))...))
			f.Points = append(f.Points, plot.Point{X: float64(n), Y: float64(n) / one.median / 1e9})
			b.Points = append(b.Points, plot.Point{X: float64(n), Y: float64(n) / many.least / 1e9})
		}
		if name != rawControl {
			first.Series, best.Series = append(first.Series, f), append(best.Series, b)
		}
	}
	res.Charts = []figures.Chart{{Name: "first", Chart: first}, {Name: "best", Chart: best}}
	return res
}
