package transfers

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"gopgas/cmd/pgasbench/figures"
	"gopgas/internal/paired"
	"gopgas/internal/plot"
	"gopgas/internal/selector"
	"gopgas/pgas"
	"gopgas/window"
)

// The matrix, fixed before anything was measured: sizes of eight to a factor, three operations, and buffers that are new each
// time, used by turns, or registered already, on each NIC.
var (
	matrixSizes = []int{64, 512, 4 << 10, 32 << 10, 256 << 10, 2 << 20, 16 << 20}
	matrixOps   = []string{"put and flush", "puts, then flush", "get"}
	matrixUses  = []string{"fresh", "reused", "registered"}
	matrixNICs  = []string{"soft", "tcp"}
)

// The policies, each alone in a world; the first is the one that is judged, the last the control of it.
var matrixPolicies = []variant{
	{name: "auto", eager: "auto", bulk: "auto"},
	{name: "bounce", eager: "bounce", bulk: "register", force: selector.Bounce},
	{name: "direct", eager: "bypass", bulk: "register", force: selector.Direct},
	{name: "superpipe", eager: "bounce", bulk: "superpipe", force: selector.Pipe},
	{name: "hybrid", eager: "bounce", bulk: "auto", force: selector.Hybrid},
	{name: "auto again", eager: "auto", bulk: "auto"},
}

const (
	matrixBatch  = 16        // puts before a flush
	matrixReused = 4         // buffers
	matrixMemory = 192 << 20 // of fresh buffers in a cell, all policies together
	matrixFresh  = 64        // of them at most, for each policy
	matrixAgain  = 200       // uses of reused buffers
	matrixBytes  = 64 << 20  // that they move at most
	matrixTie    = 1.05
)

// matrix is the choice by costs against each fixed policy, cell by cell.
func matrix(ctx context.Context, o *figures.Options) (*figures.Result, error) {
	sizes := matrixSizes
	if o.Bytes > 0 {
		sizes = []int{o.Bytes}
	} else if o.Most > 0 {
		for len(sizes) > 1 && sizes[len(sizes)-1] > o.Most {
			sizes = sizes[:len(sizes)-1]
		}
	}
	m := &matrixRun{ctx: ctx, o: o, sizes: sizes, cells: map[cell][][]float64{}, res: &figures.Result{
		Kind: "measured on the soft and tcp NICs of this machine, a process that puts to itself and gets from itself",
		Columns: append([]string{
			"nic", "op", "buffers", "bytes", "auto_us", "auto_us_min", "auto_us_max", "bounce_us", "direct_us", "superpipe_us", "hybrid_us", "best", "auto_to_best",
			"control", "verdict",
		}, pairedColumns("auto_to_best", "control")...),
		Notes: []string{
			"medians of single operations, for puts with one flush of " + fmt.Sprint(matrixBatch) + " of them, or of as many as fit into the window; policies by turns of four, each after a pause in which the others' NICs fall asleep, and a transfer of 16 KiB that wakes its own; auto_to_best is auto's median over the least of the fixed ones'",
			pairedNote + "; the verdict goes by the medians",
			"control is auto against auto; auto holds where it is within 5 % of the best, or where the two autos differ by more than it loses",
			"fresh: each buffer once; reused: four buffers by turns; registered: in memory of the library. The target is registered in all cells",
			"a policy that cannot carry a size leaves it to bounce slots: direct and pipes take them all",
		},
	}}
	for m.rep = range o.Reps {
		for _, nic := range matrixNICs {
			say(o, "%s, repeat %d of %d", nic, m.rep+1, o.Reps)
			if err := m.nic(nic); err != nil {
				return nil, fmt.Errorf("%s: %w", nic, err)
			}
		}
	}
	m.table()
	return m.res, nil
}

// cell is one of the matrix.
type cell struct {
	nic, op, uses string
	bytes         int
}

type matrixRun struct {
	ctx   context.Context
	o     *figures.Options
	sizes []int
	rep   int                  // who comes first differs by it: of the largest fresh buffers there is but one turn
	cells map[cell][][]float64 // seconds of operations, by policy
	res   *figures.Result
}

// nic measures all cells of a NIC once, in new worlds.
func (m *matrixRun) nic(name string) (err error) {
	most := 2 * m.sizes[len(m.sizes)-1]
	own := *m.o
	own.Transport = name
	benches, err := openAll(m.ctx, &own, matrixPolicies, most, 8*matrixMemory, pgas.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll(m.ctx, benches)) }()
	libs := make([]*window.Window[byte], len(benches)) // memory that is registered
	for i, b := range benches {
		if libs[i], err = window.Allocate[byte](m.ctx, b.w.Team(), matrixReused/2*most); err != nil {
			return err
		}
		b.learn()
	}
	for _, op := range matrixOps {
		for _, uses := range matrixUses {
			for _, n := range m.sizes {
				if err := m.cell(benches, libs, cell{name, op, uses, n}); err != nil {
					return fmt.Errorf("%s, %s buffers of %d bytes: %w", op, uses, n, err)
				}
			}
		}
	}
	for i := range libs {
		err = errors.Join(err, libs[i].Free(m.ctx))
	}
	return err
}

// learn lets the world see some operations, so that what is measured at the start is.
func (b *bench) learn() {
	buf := make([]byte, min(4<<10, b.win.Len(0)))
	for range 32 {
		_ = b.put(buf) // an error comes again where it is looked at
	}
}

// cell measures one cell.
func (m *matrixRun) cell(benches []*bench, libs []*window.Window[byte], c cell) error {
	whole := (c.bytes + 4095) &^ 4095
	again := matrixAgain
	if m.o.Iterations > 0 {
		again = m.o.Iterations
	}
	count, rounds := matrixReused, max(3, min(again, matrixBytes/c.bytes)/matrixReused)
	if c.uses == "fresh" {
		count, rounds = max(matrixReused, min(matrixFresh, again, matrixMemory/whole/len(benches))), 1
	}
	bufs := make([][][]byte, len(benches))
	mem := newArena(len(benches) * count * whole)
	for k := range count {
		for i := range benches {
			b := mem.take(c.bytes)
			if c.uses == "registered" {
				b = libs[i].Local()[k*c.bytes : (k+1)*c.bytes]
			}
			bufs[i] = append(bufs[i], b)
		}
	}
	debug.FreeOSMemory() // what earlier cells used is not given back while others are measured
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	all := m.cells[c]
	if all == nil {
		all = make([][]float64, len(benches))
	}
	batch := 1
	if c.op == matrixOps[1] {
		batch = min(matrixBatch, benches[0].win.Len(0)/c.bytes)
	}
	skip := 0
	if c.uses != "fresh" { // registrations, and what is learned
		rounds, skip = rounds+3, 3
	}
	warm := make([]byte, warmBytes)
	turn := max(batch, matrixReused)
	for round := range rounds {
		for k := 0; k < count; k += turn {
			for j := range benches {
				i := paired.Turn(len(benches), m.rep+round+k/turn, j)
				ts, err := benches[i].turn(c.op, bufs[i][k:min(k+turn, count)], warm, batch)
				if err != nil {
					return fmt.Errorf("%s: %w", benches[i].name, err)
				}
				if round >= skip {
					all[i] = append(all[i], ts...)
				}
			}
		}
	}
	m.cells[c] = all
	return nil
}

// turn makes the operations of one policy's turn, after one that wakes the NIC, and returns the seconds of each.
func (b *bench) turn(op string, bufs [][]byte, warm []byte, batch int) (ts []float64, err error) {
	apart()
	if err := b.put(warm[:min(len(warm), b.win.Len(0))]); err != nil {
		return nil, err
	}
	if batch > 1 {
		t, err := b.step(op, bufs, batch)
		return []float64{t}, err
	}
	for i := range bufs {
		t, err := b.step(op, bufs[i:i+1], 1)
		if err != nil {
			return nil, err
		}
		ts = append(ts, t)
	}
	return ts, nil
}

// step makes one operation, or a batch of puts with their flush, and returns the seconds of an operation.
func (b *bench) step(op string, bufs [][]byte, batch int) (float64, error) {
	last := bufs[0]
	ops, at := 1, 0
	t, err := timed(func() error {
		switch op {
		case "get":
			return b.win.Get(0, 0, last)
		case "put and flush":
			return b.put(last)
		}
		ops = batch // of few buffers each goes several times
		for i := range ops {
			last, at = bufs[i%len(bufs)], i*len(last) // nothing orders puts to one place
			if err := b.win.Put(0, at, last); err != nil {
				return err
			}
		}
		return b.win.Flush(0)
	})
	if err != nil {
		return 0, err
	}
	return t / float64(ops), b.holdsAt(at, last)
}

// table judges the cells.
func (m *matrixRun) table() {
	fixed := len(matrixPolicies) - 1
	names, ours := []string{}, plot.Series{Name: "auto against the best fixed policy"}
	held, all := 0, 0
	for _, nic := range matrixNICs {
		for _, op := range matrixOps {
			for _, uses := range matrixUses {
				for _, n := range m.sizes {
					s := make([]spread, len(matrixPolicies))
					took := m.cells[cell{nic, op, uses, n}]
					for i, v := range took {
						s[i] = spreadOf(v).times(1e6)
					}
					best := 1
					for i := 2; i < fixed; i++ {
						if s[i].median < s[best].median {
							best = i
						}
					}
					ratio, control := s[0].median/s[best].median, s[fixed].median/s[0].median
					verdict := "loses"
					switch {
					case ratio <= matrixTie:
						verdict = "holds"
					case max(control, 1/control) >= ratio || s[fixed].median/s[best].median <= matrixTie:
						verdict = "tie"
					}
					if all++; verdict != "loses" {
						held++
					}
					m.res.Rows = append(m.res.Rows, append([]any{
						nic, op, uses, n, s[0].median, s[0].least, s[0].most, s[1].median, s[2].median, s[3].median, s[4].median,
						matrixPolicies[best].name, ratio, control, verdict,
					}, three(paired.Quotient(took[best], took[0]), paired.Quotient(took[0], took[fixed]))...))
					ours.Points = append(ours.Points, plot.Point{X: float64(len(names)), Y: ratio})
					names = append(names, fmt.Sprint(len(names)))
				}
			}
		}
	}
	m.res.Notes = append(m.res.Notes, fmt.Sprintf("auto holds or ties in %d of %d cells", held, all))
	m.res.Charts = []figures.Chart{{Chart: plot.Chart{
		Title: "the choice by costs against the best fixed policy, by cell of the table", X: plot.Axis{Label: "cell"},
		Y: plot.Axis{Label: "times its median", Zero: true}, Series: []plot.Series{asLine(ours)},
	}}}
}

// asLine is a series over numbers instead of named places.
func asLine(s plot.Series) plot.Series {
	s.Plain = len(s.Points) > 200
	return s
}
