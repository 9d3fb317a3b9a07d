package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"gopgas/cmd/pgasbench/figures"
	"gopgas/cmd/pgasbench/transfers"
)

// family is a command that makes figures of protocols.
type family struct {
	name, usage, help string
	all               []figures.Figure // their names begin with the command's and a dash, which may be left out
	first             int              // the one that is made without a name
}

const alike = `

Each figure says what it was measured on, or which constants it was simulated with, and what of them is assumed. Measured ones take
turns between the variants within a repeat and have a control: the first variant once more, whose difference is what the machine
adds by itself. On two cores, start them with "chrt -f 10" where other programs run. --out writes table, JSON and charts.

It is no program of ranks: start it without a launcher.`

func eagerCommand(out io.Writer) *cli.Command {
	return family{
		name: "eager", usage: "the figures of the paper on small transfers, as tables and plots",
		help: "Small puts and gets through bounce slots against the frequent-buffer bypass." + alike, all: transfers.Eager(),
	}.command(out)
}

func bulkCommand(out io.Writer) *cli.Command {
	return family{
		name: "bulk", usage: "the figures of the paper on large transfers, as tables and plots",
		help: "Large transfers of memory that is not registered: copied in chunks, registered on the fly or for good." + alike, all: transfers.Bulk(),
	}.command(out)
}

func selectCommand(out io.Writer) *cli.Command {
	return family{
		name: "select", usage: "the choice by costs against every fixed protocol, over a matrix fixed beforehand",
		help: "What is chosen by costs against each fixed protocol, cell by cell of a matrix that is fixed beforehand." + alike, all: transfers.Select(),
	}.command(out)
}

func (f family) command(out io.Writer) *cli.Command {
	var list, short []string
	for _, g := range f.all {
		list = append(list, fmt.Sprintf("  %-12s %s (%s)", f.short(g), g.Title, g.Paper))
		short = append(short, f.short(g))
	}
	return &cli.Command{
		Name: f.name, Usage: f.usage, ArgsUsage: "[" + strings.Join(short, "|") + "|all]",
		Description: f.help + "\n\n" + strings.Join(list, "\n"),
		Flags: append(figureFlags(), []cli.Flag{
			&cli.IntFlag{Name: "iterations", Usage: "operations of a measured figure's round, or buffers; 0: the figure's own"},
			bytesFlag("bytes", 0, "only transfers of so many; 0: the figure's own sizes"),
			&cli.StringSliceFlag{Name: "trace", Usage: "recorded `NAME=DIR`, for figures of recorded programs; may be repeated"},
		}...),
		Action: func(c *cli.Context) error {
			chosen, err := f.chosen(c.Args().Slice())
			if err != nil {
				return err
			}
			o, err := f.options(c)
			if err != nil {
				return err
			}
			return giveFigures(c, out, chosen, o)
		},
	}
}

// short is a figure's name without the command's.
func (f family) short(g figures.Figure) string { return strings.TrimPrefix(g.Name, f.name+"-") }

func (f family) chosen(names []string) (all []figures.Figure, err error) {
	switch {
	case len(names) == 0:
		return f.all[f.first : f.first+1], nil
	case len(names) == 1 && names[0] == "all":
		return f.all, nil
	}
	var there []string
	for _, g := range f.all {
		there = append(there, f.short(g))
	}
next:
	for _, n := range names {
		if strings.HasPrefix(n, "-") {
			return nil, fmt.Errorf("%s: %q: options come before the figures", f.name, n)
		}
		for _, g := range f.all {
			if n == g.Name || n == f.short(g) {
				all = append(all, g)
				continue next
			}
		}
		return nil, fmt.Errorf("%s: figure %q: there are: %s", f.name, n, strings.Join(there, ", "))
	}
	return all, nil
}

func (f family) options(c *cli.Context) (o figures.Options, err error) {
	if err := checkFigures(c, 1<<24); err != nil {
		return o, err
	}
	o = figures.Options{
		Transport: c.String("transport"), Reps: c.Int("reps"), Iterations: c.Int("iterations"), Bytes: bytesOf(c, "bytes"), Fine: c.Bool("fine"),
		Most: bytesOf(c, "max"), Seed: c.Uint64("seed"), Progress: os.Stderr,
	}
	o.Traces, err = tracesOf(f.name, c.StringSlice("trace"))
	return o, err
}
