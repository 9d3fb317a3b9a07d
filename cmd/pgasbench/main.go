// Command pgasbench measures one-sided operations between ranks. It is a program of ranks like any other: start it
// under a launcher, every rank runs it, rank 0 measures and prints.
//
//	pgasrun -n 2 pgasbench                     all rows: latency, rate, bandwidth, atomics, barrier, GUPS
//	pgasrun -n 2 pgasbench --only fetch-add    the rows whose name, title or API contains the words
//	pgasrun -n 2 pgasbench bw --op get         one operation over a range of sizes
//	pgasrun -n 2 pgasbench passive             operations that the target serves while it computes
//	pgasrun -n 2 pgasbench sets                working sets of a window, part of which may be registered at a time
//	pgasrun -n 2 -x PGAS_LOCAL=off pgasbench --explain  the protocols of a transfer: estimated and measured cost
//	pgasrun -n 4 pgasbench collectives         broadcast and scatter from reused buffers
//	pgasrun -n 2 pgasbench targets             the choice of protocols where the target is registered in buckets
//	pgasbench list                             the rows, without measuring
//	pgasbench reg accuracy                     a figure of the papers on registered memory; reg --help lists them
//	pgasbench eager ping                       a figure of the paper on small transfers; bulk and select likewise
//	pgasbench replay --shape bt                policies of registration over a trace, in virtual time
//	pgasbench merge ours=a.csv raw=b.csv       one markdown table from several --csv outputs
//
// Every loop takes its displacements from a table, is sized to a target time, runs several times over, and is checked
// afterwards at the target: a wrong result is an error and no figure is printed for it. Ranks that do not take part
// wait in a barrier. Each row names the calls it measures.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"gopgas/pgas"
)

// settings is the command line.
type settings struct {
	only    string
	reps    int
	target  time.Duration
	pin     string
	csv     bool
	json    bool
	updates int
	rounds  int
	bytes   int
	plot    string

	collectives int // of a repeat
	passive     int // operations on a rank that computes, of a repeat
}

func main() { os.Exit(run(os.Args, os.Stdout, os.Stderr)) }

// run is pgasbench as a function: it returns the exit code.
func run(args []string, out, errs io.Writer) int {
	said := &noted{w: out} // the texts of --help are written by who does not look at errors
	a := app(said)
	if !first(os.Getenv) {
		a.Writer = io.Discard
	}
	err := a.Run(args)
	if err == nil {
		err = said.failed
	}
	if err != nil {
		fmt.Fprintln(errs, "pgasbench:", err)
		return 2
	}
	return 0
}

// first reports whether this process says what all ranks of a job would say: as rank 0 of what a launcher has started, or without one.
func first(env func(string) string) bool {
	for _, name := range []string{"PMI_RANK", "PMI_ID"} {
		if rank := env(name); rank != "" && rank != "0" {
			return false
		}
	}
	return true
}

// noted is a writer that keeps the first error.
type noted struct {
	w      io.Writer
	failed error
}

func (n *noted) Write(b []byte) (int, error) {
	k, err := n.w.Write(b)
	if n.failed == nil {
		n.failed = err
	}
	return k, err
}

const help = `Rows are measured by rank 0 against rank 1 (alone: against itself) while the other ranks wait in a barrier.
Figures are the median, minimum and maximum over the repeats; n is operations per repeat. Put and Flush name the calls
measured: View forms work on mapped memory only and inline to plain instructions, Window forms work everywhere.

On a machine that others use too, compare minima, and take differences below 20 % (a factor of 2 for transfers of 1 MiB
and more) for ties.`

func app(out io.Writer) *cli.App {
	a := &cli.App{
		Name: "pgasbench", OnUsageError: onUsageError, Usage: "measure one-sided operations between ranks",
		UsageText:   "pgasrun -n 2 pgasbench [options]\n   pgasrun -n 2 pgasbench lat|bw|rate --op put|get [options]\n   pgasbench list|merge|reg|eager|bulk|select|replay",
		Description: help, HideVersion: true, Flags: flags(), Writer: out,
		ExitErrHandler: func(*cli.Context, error) {}, // main says it
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return unknownCommand(c.Args().First())
			}
			s := settingsOf(c)
			if c.Bool("explain") {
				return explainRanks(s, out)
			}
			return measureRanks(s, selectRows(allRows(), s.only), out)
		},
		Commands: []*cli.Command{
			sweepCommand("lat", "latency of a blocking operation over sizes", out),
			sweepCommand("bw", "bandwidth over sizes, a flush for every 64 operations", out),
			sweepCommand("rate", "operations per second over sizes, a flush for every 64", out),
			setsCommand(out),
			targetsCommand(out),
			replayCommand(out),
			regCommand(out),
			seatCommand(),
			eagerCommand(out),
			bulkCommand(out),
			selectCommand(out),
			{
				Name: "collectives", Usage: "broadcast and scatter from reused buffers; one run for each PGAS_EAGER, merged",
				Flags: append(flags(), &cli.BoolFlag{Name: "fine", Usage: "sizes grow by 5 % instead of doubling"},
					&cli.IntFlag{Name: "iterations", Value: 500, Usage: "collectives of a repeat"}),
				Action: func(c *cli.Context) error {
					s := settingsOf(c)
					if s.collectives = c.Int("iterations"); s.collectives < 1 {
						return fmt.Errorf("--iterations %d: want 1 or more", s.collectives)
					}
					return measureRanks(s, selectRows(collectiveRows(c.Bool("fine")), s.only), out)
				},
			},
			{
				Name: "passive", Usage: "latency of operations that a rank must serve while it computes", Flags: flags(),
				Description: "The target has one goroutine that computes, and may use every core that others leave: --pin auto binds the measuring\n" +
					"threads only. With --pin process a rank's core is that of its computing goroutine, and who serves waits for the kernel's next turn.",
				Action: func(c *cli.Context) error {
					s := settingsOf(c)
					s.pin = choosePassivePin(s.pin)
					return measureRanks(s, selectRows(passiveRows(), s.only), out)
				},
			},
			{
				Name: "list", Usage: "print the rows: name, title, API",
				Action: func(*cli.Context) error { return listRows(out, allRows()) },
			},
			{
				Name: "merge", Usage: "print one markdown table of the figures in CSV files", ArgsUsage: "NAME=FILE...",
				Description: "NAME=FILE gives a column; a NAME that is given several times (runs of one program) becomes one\n" +
					"column over all repeats. Columns appear in the order in which their names come first.\n" +
					"The first column's APIs have a line each, and what another one has by the same API stands there. One that shares no API of a row\n" +
					"has its figures of it together, on the first of the row's lines.",
				Action: func(c *cli.Context) error { return mergeFiles(out, c.Args().Slice()) },
			},
		},
	}
	for _, c := range a.Commands {
		c.OnUsageError = onUsageError
		if c.ArgsUsage == "" {
			c.Before = optionsOnly
		}
	}
	return a
}

// optionsOnly refuses what stands behind the options of a command that takes nothing else: it would be left out of account.
func optionsOnly(c *cli.Context) error {
	if c.Args().Present() {
		return fmt.Errorf("%s: %q: want options only (pgasbench %s --help shows all)", c.Command.Name, c.Args().First(), c.Command.Name)
	}
	return nil
}

func flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "only", Usage: "measure the rows whose name, title or API contains `WORDS`"},
		&cli.IntFlag{Name: "reps", Value: 5, Usage: "repeats of each row"},
		&cli.DurationFlag{Name: "target-time", Value: 50 * time.Millisecond, Usage: "how long one repeat takes"},
		&cli.StringFlag{Name: "pin", Value: pinAuto, Usage: "process, thread or off: what is bound to core rank%cores; " +
			"auto is process where there are several ranks on the node"},
		&cli.BoolFlag{Name: "explain", Usage: "instead of rows: what each protocol of a transfer over the NIC is estimated to cost, and costs"},
		&cli.BoolFlag{Name: "csv", Usage: "comma-separated values, with every repeat"},
		&cli.BoolFlag{Name: "json", Usage: "JSON, with every repeat"},
		&cli.StringFlag{Name: "plot", Usage: "draw the figures to `FILE.svg` too; where there are several units, FILE-UNIT.svg each"},
		&cli.IntFlag{Name: "updates", Value: 500_000, Usage: "GUPS: updates by each rank in a repeat"},
		&cli.IntFlag{Name: "barriers", Value: 20_000, Usage: "barriers, and round trips of the ping-pong, in a repeat"},
		bytesFlag("span", 64<<20, "`BYTES` that bandwidth rows and the GUPS table span"),
	}
}

func settingsOf(c *cli.Context) settings {
	return settings{
		only: c.String("only"), reps: c.Int("reps"), target: c.Duration("target-time"), pin: c.String("pin"),
		csv: c.Bool("csv"), json: c.Bool("json"), updates: c.Int("updates"), rounds: c.Int("barriers"), bytes: bytesOf(c, "span"),
		plot: c.String("plot"), passive: passiveOps,
	}
}

func (s settings) validate() error {
	switch {
	case s.reps < 1 || s.reps > 1000:
		return fmt.Errorf("--reps %d: want 1 to 1000", s.reps)
	case s.target <= 0:
		return fmt.Errorf("--target-time %v: want more than 0", s.target)
	case s.updates < gupsBatch || s.rounds < 1:
		return fmt.Errorf("--updates %d, --barriers %d: want at least %d and 1", s.updates, s.rounds, gupsBatch)
	case s.bytes < 1<<20 || s.bytes&(s.bytes-1) != 0:
		return fmt.Errorf("--span %d: want a power of two of at least %d", s.bytes, 1<<20)
	case s.csv && s.json:
		return errors.New("--csv and --json: want one of them")
	}
	return checkPin(s.pin)
}

func sweepCommand(kind, usage string, out io.Writer) *cli.Command {
	return &cli.Command{
		Name: kind, Usage: usage,
		Flags: append(flags(),
			&cli.StringFlag{Name: "op", Value: "put", Usage: "put, get, putnb or getnb; the last two without a wait before the flush"},
			bytesFlag("min", 8, "smallest size in `BYTES`; sizes double from there"),
			bytesFlag("max", 4<<20, "largest size in `BYTES`"),
			&cli.BoolFlag{Name: "hot", Usage: "all operations are of one buffer, as those of perftest and ucx_perftest"},
			&cli.BoolFlag{Name: "fine", Usage: "sizes grow by 5 % instead of doubling"}),
		Action: func(c *cli.Context) error {
			s := settingsOf(c)
			rows, err := sweepRows(kind, c.String("op"), bytesOf(c, "min"), bytesOf(c, "max"), s.bytes, c.Bool("fine"), c.Bool("hot"))
			if err != nil {
				return err
			}
			return measureRanks(s, selectRows(rows, s.only), out)
		},
	}
}

func setsCommand(out io.Writer) *cli.Command {
	return &cli.Command{
		Name: "sets", Usage: "latency over working sets; with PGAS_MAX_PINNED below --span memory is registered as it is needed",
		Flags: append(flags(),
			&cli.StringFlag{Name: "op", Value: "put", Usage: "put or get"},
			&cli.BoolFlag{Name: "fine", Usage: "sets grow by 5 % instead of doubling"},
			&cli.BoolFlag{Name: "edges", Usage: "instead: sets around what this rank may hold of the other one (F buckets), and that and what the owner keeps (F+V)"},
			&cli.DurationFlag{Name: "compute", Usage: "with --edges: how long the program sleeps between two operations, so that they can be foreseen (PGAS_REG=predictive)"},
			&cli.BoolFlag{Name: "buckets", Usage: "instead: bandwidth over sizes of buckets, of one put and of an exchange of keys"}),
		Action: func(c *cli.Context) error {
			s := settingsOf(c)
			if c.Bool("buckets") {
				rows, err := bucketRows(s.bytes)
				if err != nil {
					return err
				}
				return measureRanks(s, selectRows(rows, s.only), out)
			}
			rows, err := setRows(c.String("op"), s.bytes, c.Bool("fine"))
			if c.Bool("edges") {
				rows, err = edgeRows(c.String("op"), c.Duration("compute"))
			}
			if err != nil {
				return err
			}
			return measureRanks(s, selectRows(rows, s.only), out)
		},
	}
}

// measureRanks joins the job and measures. It does not return where that could begin.
func measureRanks(s settings, rows []row, out io.Writer) error {
	if err := s.validate(); err != nil {
		return err
	}
	if len(rows) == 0 {
		return fmt.Errorf("--only %q: no row of this command contains that; `pgasbench list` shows those of pgasbench by itself", s.only)
	}
	onRanks(s, os.Stderr, func(ctx context.Context, b *bench, pinned string) error {
		head := headerOf(b.w.Size(), pinned, strings.Join(os.Args, " "))
		if err := checkPlot(s.plot, b.w.Rank()); err != nil {
			return err
		}
		if err := b.run(ctx, rows); err != nil {
			return err
		}
		if b.w.Rank() != 0 {
			return nil
		}
		if s.plot != "" {
			if err := b.plot(head); err != nil {
				return err
			}
		}
		return b.print(out, head)
	})
	return nil
}

// onRanks joins the job, binds what is to be bound, and has each rank do its part. It does not return.
func onRanks(s settings, progress io.Writer, part func(ctx context.Context, b *bench, pinned string) error) {
	pgas.Main(func(ctx context.Context, w *pgas.World) error {
		pinned, err := pin(s.pin, w)
		if err != nil {
			return err
		}
		defer pinned.release()
		return part(ctx, newBench(w, s, progress), pinned.what)
	})
}

// explainRanks runs the comparison of protocols and prints it.
func explainRanks(s settings, out io.Writer) error {
	if err := s.validate(); err != nil {
		return err
	}
	onRanks(s, os.Stderr, func(ctx context.Context, b *bench, _ string) error {
		all, err := b.explain(ctx, explainMost)
		if err != nil || b.w.Rank() != 0 {
			return err
		}
		return writeExplained(out, b.w.Transport(b.peer), all)
	})
	return nil
}
