package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"gopgas/internal/mem"
)

// onUsageError makes a sentence of what the flag parser says: which option, what was found, and what is wanted.
func onUsageError(c *cli.Context, err error, _ bool) error {
	all := "pgasbench --help"
	options := c.App.Flags
	if c.Command != nil && c.Command.Name != "" && c.Command.Name != c.App.Name {
		all, options = "pgasbench "+c.Command.Name+" --help", c.Command.Flags
	}
	return fmt.Errorf("%s (%s shows all options)", usageText(err.Error(), options), all)
}

// usageText is the sentence without what helps.
func usageText(said string, options []cli.Flag) string {
	if name, ok := strings.CutPrefix(said, "flag provided but not defined: "); ok {
		return "there is no option -" + name // it begins with a dash
	}
	if name, ok := strings.CutPrefix(said, "flag needs an argument: "); ok {
		return fmt.Sprintf("the option -%s needs a value: want %s", name, wantedOf(name, options))
	}
	for _, begin := range []string{"invalid value ", "invalid boolean value "} {
		if rest, ok := strings.CutPrefix(said, begin); ok {
			value, rest, _ := strings.Cut(rest, " for ")
			name, _, _ := strings.Cut(strings.TrimPrefix(rest, "flag "), ":")
			return fmt.Sprintf("-%s %s: want %s", name, value, wantedOf(name, options)) // it begins with a dash
		}
	}
	return said
}

// unknownCommand is a word where a command stands that is none; it may be a row's.
func unknownCommand(word string) error {
	rows := ""
	if len(selectRows(allRows(), word)) > 0 {
		rows = fmt.Sprintf("; the rows that contain it are measured by pgasbench --only %s", word)
	}
	return fmt.Errorf("unknown command %q; there are: lat, bw, rate, sets, passive, collectives, targets, reg, eager, bulk, select, replay, list, merge (options come first)%s", word, rows)
}

// wantedOf says what an option takes.
func wantedOf(name string, options []cli.Flag) string {
	name = strings.TrimLeft(name, "-")
	for _, o := range options {
		if o.Names()[0] != name {
			continue
		}
		switch o.(type) {
		case *cli.IntFlag, *cli.Int64Flag, *cli.Uint64Flag:
			return "a whole number"
		case *cli.GenericFlag:
			return strings.TrimPrefix(mem.ErrBytes.Error(), "want ")
		case *cli.Float64Flag:
			return "a number such as 0.04"
		case *cli.DurationFlag:
			return "a time such as 50ms"
		case *cli.BoolFlag:
			return "no value: it is on or off"
		}
	}
	return "a word"
}
