package transfers

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"gopgas/cmd/pgasbench/figures"
	"gopgas/eager"
	"gopgas/internal/paired"
	"gopgas/internal/plot"
	"gopgas/pgas"
)

// adapt's buffers: each used once, beginning a line after the one before, so that a million of them fit into little memory.
const (
	onceBuffers = 1_000_000
	onceBytes   = 4 << 10
	onceStride  = 64
	onceBlock   = 10_000 // buffers before another variant has its turn
	paperUses   = 14     // 25 % of the paper's 56 uses at 4 KB
)

var adaptVariants = []variant{
	{name: "bounce", eager: "bounce", bulk: "register"},
	{name: "auto", eager: "auto", bulk: "register"},
	{name: "bounce again", eager: "bounce", bulk: "register"},
}

// adapt is section 3.4 of the paper: what a program pays whose buffers are used once, and what the usage table does.
func adapt(ctx context.Context, o *figures.Options) (res *figures.Result, err error) {
	count := onceBuffers
	if o.Iterations > 0 {
		count = o.Iterations
	}
	size := onceBytes
	if o.Bytes > 0 {
		size = o.Bytes
	}
	res = &figures.Result{
		Kind:    "measured on the " + o.Transport + " NIC of this machine, a process that puts to itself; the usage table alone beside it",
		Columns: []string{"phase", "uses", "us", "us_min", "us_max", "more_than_bounce_percent", "more_percent_paired", "more_percent_low", "more_percent_high", "buffers", "frequent", "chained", "refused"},
		Notes: []string{
			fmt.Sprintf("%d buffers of %d bytes, each used once by a put and its flush, and by a get, %d at a time by turns; us is the median [min, max] of the blocks' means",
				count, size, onceBlock),
			"more_percent_paired is the median of how much longer each block took than bounce's block of the same buffers; low and high are the ends of its 95 % interval (order statistics). A difference that lies within that of bounce again, the control, is a tie",
			fmt.Sprintf("the table alone: a threshold of %d uses, 25 %% of the paper's 56 at 4 KB", paperUses),
		},
	}
	for _, get := range []bool{false, true} {
		if err := adaptWorlds(ctx, o, res, count, size, get); err != nil {
			return nil, err
		}
	}
	chart := plot.Chart{
		Title: "the usage table: used once, then half of the known again, then new ones", X: plot.Axis{Label: "uses"}, Y: plot.Axis{Label: "buffers", Zero: true},
		Series: adaptTable(res, count),
	}
	res.Charts = []figures.Chart{{Chart: chart}}
	return res, nil
}

// adaptWorlds times buffers that are used once, by puts or by gets.
func adaptWorlds(ctx context.Context, o *figures.Options, res *figures.Result, count, size int, get bool) (err error) {
	op, use := "put and flush", (*bench).put
	if get {
		op, use = "get", (*bench).get
	}
	benches, err := openAll(ctx, o, adaptVariants, size, 64<<20, pgas.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll(ctx, benches)) }()
	mem := newArena(count*onceStride + size)
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	values := make([][]float64, len(benches))
	block := min(onceBlock, count)
	for at := 0; at+block <= count; at += block {
		if at%(10*block) == 0 {
			say(o, "%s: %d of %d buffers", op, at, count)
		}
		for k := range benches {
			i := paired.Turn(len(benches), at/block, k) // who comes first finds the buffers cold
			b := benches[i]
			var last []byte
			t, err := timed(func() error {
				for j := at; j < at+block; j++ {
					last = mem.mem[j*onceStride : j*onceStride+size]
					if err := use(b, last); err != nil {
						return err
					}
				}
				return nil
			})
			if err = errors.Join(err, b.holds(last)); err != nil {
				return err
			}
			values[i] = append(values[i], t*1e6/float64(block))
		}
	}
	base := spreadOf(values[0])
	for i, b := range benches {
		s := spreadOf(values[i])
		u, asked := b.w.Team().Engine().Bypasses()
		if b.name == "auto" && (!asked || u.Buffers == 0) {
			res.Notes = append(res.Notes, op+": the table was not asked: at this size the copy costs less here than the bypass")
		}
		more := paired.Quotient(values[0], values[i]).Percent()
		res.Rows = append(res.Rows, []any{
			"used once, " + op + ", " + b.name, count, s.median, s.least, s.most, 100 * (s.median/base.median - 1), more.Median, more.Low, more.High, u.Buffers, u.Frequent, u.Chained, u.Refused,
		})
	}
	return nil
}

// adaptTable has the usage table alone see a million buffers once, then those it knows until they are frequent, then others.
func adaptTable(res *figures.Result, count int) []plot.Series {
	t := eager.NewTable()
	known, often := plot.Series{Name: "known", Step: true, Plain: true}, plot.Series{Name: "frequent", Step: true, Plain: true}
	uses := 0
	use := func(i int) {
		t.Use(uint64(0x7f00_0000_0000+i*onceStride), paperUses)
		if uses++; uses%(count/200+1) == 0 {
			u := t.Usage()
			known.Points = append(known.Points, plot.Point{X: float64(uses), Y: float64(u.Buffers)})
			often.Points = append(often.Points, plot.Point{X: float64(uses), Y: float64(u.Frequent)})
		}
	}
	note := func(phase string) {
		u := t.Usage()
		res.Rows = append(res.Rows, []any{"table alone: " + phase, uses, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, u.Buffers, u.Frequent, u.Chained, u.Refused})
	}
	for i := range count {
		use(i)
	}
	note("each used once")
	for i := range t.Usage().Buffers / 2 {
		for range paperUses {
			use(i)
		}
	}
	note("half of the known ones again")
	for i := range count {
		use(count + i)
	}
	note("others, each used once")
	return []plot.Series{known, often}
}
