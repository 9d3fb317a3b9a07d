package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"gopgas/internal/paired"
	"gopgas/internal/selector"
	"gopgas/window"
)

// The matrix of targets whose memory is not registered as a whole, fixed before anything was measured: what a window that exceeds
// PGAS_MAX_PINNED has registered in buckets, of which a rank may hold a share.
var (
	targetOps   = []string{opPut, opGet}
	targetSizes = []int{64, 512, 4 << 10, 32 << 10, 256 << 10, 2 << 20, 16 << 20}
	targetWays  = []selector.Protocol{selector.None, selector.Bounce, selector.Direct, selector.Pipe, selector.Lease, selector.None}
)

const (
	targetTurn   = 4        // operations of a way, then another has its turn
	targetStep   = 1 << 20  // bytes from one place to the next, where places change
	targetMemory = 96 << 20 // of fresh buffers of a cell, all ways together
	targetMost   = 64       // uses of each way
	targetLeast  = 3
	targetTime   = time.Second // of a cell, but for the least number of uses
	targetTie    = 1.05
	targetLease  = 64 << 10 // from so many bytes on leases carry them; what is less goes as chosen, and is no way of its own
)

// targetCell is one cell: seconds of operations by way.
type targetCell struct {
	op            string
	fresh, moving bool
	bytes         int
	took          [][]float64
}

func targetsCommand(out io.Writer) *cli.Command {
	return &cli.Command{
		Name: "targets", Usage: "the choice by costs against each fixed way, to memory that its owner has not registered as a whole",
		Description: "Two ranks, PGAS_LOCAL=off, and PGAS_MAX_PINNED below --span: PGAS_MAX_PINNED=24M pgasrun -n 2 pgasbench targets",
		Flags:       append(flags(), bytesFlag("max", targetSizes[len(targetSizes)-1], "largest size in `BYTES`")),
		Action: func(c *cli.Context) error {
			s := settingsOf(c)
			if err := errors.Join(s.validate(), checkTargets(s.bytes, bytesOf(c, "max"))); err != nil {
				return err
			}
			onRanks(s, io.Discard, func(ctx context.Context, b *bench, _ string) error {
				all, err := b.targets(ctx, s.bytes, bytesOf(c, "max"))
				if err != nil || b.w.Rank() != 0 {
					return err
				}
				return writeTargets(out, b.w.Transport(1), all)
			})
			return nil
		},
	}
}

// checkTargets refuses what has no cell, and a window in which there is nowhere to move.
func checkTargets(span, most int) error {
	switch {
	case most < targetSizes[0]:
		return fmt.Errorf("--max %d: want at least %d", most, targetSizes[0])
	case span < 2*targetStep:
		return fmt.Errorf("--span %d: want at least %d, in which there are two places", span, 2*targetStep)
	}
	return nil
}

// targets measures the cells of sizes up to most, in a window of so many bytes.
func (b *bench) targets(ctx context.Context, span, most int) (all []targetCell, err error) {
	if b.w.Size() < 2 {
		return nil, errors.New("it needs two ranks; start it with -n 2")
	}
	win, err := window.Allocate[byte](ctx, b.w.Team(), span)
	if err != nil {
		return nil, err
	}
	clear(win.Local())
	if err := win.Fence(ctx); err != nil {
		return nil, err
	}
	if b.w.Rank() == 0 {
		all, err = b.targetCells(win, most)
	}
	if err := b.agree(ctx, err); err != nil {
		return nil, err
	}
	return all, win.Free(ctx)
}

func (b *bench) targetCells(win *window.Window[byte], most int) (all []targetCell, err error) {
	if in, err := b.inBuckets(win); err != nil || !in {
		return nil, errors.Join(err, errors.New("the window is mapped or registered as a whole: set PGAS_LOCAL=off, and PGAS_MAX_PINNED to less than --span"))
	}
	defer b.w.Team().Engine().Force(selector.None)
	for _, op := range targetOps {
		for _, moving := range []bool{false, true} {
			for _, fresh := range []bool{true, false} {
				for _, n := range targetSizes {
					if n > most || n > win.Len(b.peer)/2 {
						continue
					}
					c := targetCell{op: op, fresh: fresh, moving: moving, bytes: n, took: make([][]float64, len(targetWays))}
					if err := b.targetCell(win, &c); err != nil {
						return nil, fmt.Errorf("%s of %d bytes: %w", op, n, err)
					}
					all = append(all, c)
				}
			}
		}
	}
	return all, nil
}

// targetCell measures a cell: ways by turns, each first at times, after a turn of each that is not looked at where buffers are reused.
func (b *bench) targetCell(win *window.Window[byte], c *targetCell) error {
	e := b.w.Team().Engine()
	uses, turn := targetMost, targetTurn
	if c.fresh {
		uses = max(targetLeast, min(uses, targetMemory/len(targetWays)/c.bytes))
	}
	turn = min(turn, uses)
	reused := make([][]byte, turn)
	for i := range reused {
		reused[i] = touched(c.bytes, i)
	}
	place, places := 0, (win.Len(b.peer)-c.bytes)/targetStep+1
	began := time.Now()
	for round := 0; round*turn < uses && (round < 2 || time.Since(began) < targetTime); round++ {
		for j := range targetWays {
			i := paired.Turn(len(targetWays), round, j)
			e.Force(targetWays[i])
			bufs := reused
			if c.fresh {
				bufs = make([][]byte, turn)
				for k := range bufs {
					bufs[k] = touched(c.bytes, round+i+k)
				}
			}
			at := 0
			for k, buf := range bufs {
				if c.moving {
					place = (place + 1) % places
					at = place * targetStep
				}
				start := time.Now()
				if err := c.do(win, b.peer, at, buf); err != nil {
					return fmt.Errorf("%v: %w", targetWays[i], err)
				}
				if c.fresh || round > 0 || k > 0 && !c.moving {
					c.took[i] = append(c.took[i], time.Since(start).Seconds())
				}
			}
			if err := b.holdsThere(win, at, bufs[turn-1]); err != nil {
				return fmt.Errorf("%v: %w", targetWays[i], err)
			}
		}
	}
	return nil
}

func (c *targetCell) do(win *window.Window[byte], rank, at int, buf []byte) error {
	if c.op == opGet {
		return win.Get(rank, at, buf)
	}
	if err := win.Put(rank, at, buf); err != nil {
		return err
	}
	return win.Flush(rank)
}

// touched returns memory that has been written.
func touched(n, seed int) []byte {
	buf := make([]byte, n)
	fillPattern(buf, byte(seed))
	return buf
}

// holdsThere reads what lies at the target through slots and compares it.
func (b *bench) holdsThere(win *window.Window[byte], at int, want []byte) error {
	b.w.Team().Engine().Force(selector.Bounce)
	there := make([]byte, len(want))
	if err := win.Get(b.peer, at, there); err != nil {
		return err
	}
	if !bytes.Equal(there, want) {
		return errors.New("wrong result: the bytes at the target differ")
	}
	return nil
}

// verdict compares what was chosen, which is the first way and the last one, with the best of the others: how many times its median
// it takes, and whether that is within 5 % or what the two differ by.
func (c *targetCell) verdict() (medians []float64, best int, ratio float64, word string) {
	for _, t := range c.took {
		medians = append(medians, summarize(t).median)
	}
	last := len(medians) - 1
	best = 1
	for i := 2; i < last; i++ {
		if medians[i] < medians[best] && (targetWays[i] != selector.Lease || c.bytes >= targetLease) {
			best = i
		}
	}
	ratio = medians[0] / medians[best]
	control := max(medians[0]/medians[last], medians[last]/medians[0])
	switch {
	case ratio <= targetTie:
		return medians, best, ratio, "holds"
	case control >= ratio || medians[last]/medians[best] <= targetTie:
		return medians, best, ratio, "tie"
	}
	return medians, best, ratio, "loses"
}

func writeTargets(w io.Writer, transport string, all []targetCell) error {
	fmt.Fprintf(w, "Transfers over %s to a window that is registered in buckets, by turns: medians, us. A put is put and flush. Held: at one place; moving: 1 MiB\n"+
		"further each time. Fresh: buffers that are used once. lease carries what is large; what a way cannot carry goes as chosen, or through slots.\n"+
		"By turns: auto to best again, as the median of what each turn's operations found beside each other, with the ends of its 95 %% interval (order\n"+
		"statistics; of fewer than six the least and the greatest); a difference within the interval of auto again is a tie.\n", transport)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "op\ttarget\tbuffers\tbytes\tauto\tbounce\tdirect\tpipe\tlease\tauto again\tbest\tauto to best\t\tby turns\tauto again to auto\t")
	good := 0
	for i := range all {
		c := &all[i]
		medians, best, ratio, word := c.verdict()
		if word != "loses" {
			good++
		}
		target, buffers := "held", "reused"
		if c.moving {
			target = "moving"
		}
		if c.fresh {
			buffers = "fresh"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t", c.op, target, buffers, c.bytes)
		for _, m := range medians {
			fmt.Fprintf(t, "%.2f\t", m*1e6)
		}
		fmt.Fprintf(t, "%v\t%.2f\t%s\t%v\t%v\t\n", targetWays[best], ratio, word,
			paired.Quotient(c.took[best], c.took[0]), paired.Quotient(c.took[0], c.took[len(c.took)-1]))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "auto holds or ties in %d of %d cells\n", good, len(all))
	return err
}
