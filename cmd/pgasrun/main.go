package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/urfave/cli/v2"

	"gopgas/internal/crew"
)

// Exit codes that are pgasrun's own.
const (
	codeTrouble       = 1
	codeUsage         = 2
	codeNotExecutable = 126
	codeNotFound      = 127
)

// exit is an error that ends pgasrun with a code. Without text the sentence has been said already.
type exit struct {
	code int
	text string
}

func (e *exit) Error() string { return e.text }

// usage is a mistake in the command line.
func usage(format string, args ...any) error {
	return &exit{codeUsage, fmt.Errorf(format, args...).Error() + " (pgasrun --help shows all flags)"}
}

// streams are what a call of pgasrun reads and writes.
type streams struct {
	in       *os.File
	out, err io.Writer
	signals  <-chan os.Signal
	attend   func(...os.Signal) // has these come to signals from now on; nil: none come
}

func main() {
	signals := make(chan os.Signal, 16)
	attend := func(sigs ...os.Signal) {
		for _, s := range sigs {
			if !signal.Ignored(s) { // nohup, background shells and those without job control ignore some: so do we
				signal.Notify(signals, s)
			}
		}
	}
	os.Exit(run(os.Args, streams{os.Stdin, os.Stdout, os.Stderr, signals, attend}))
}

// run is pgasrun as a function: it returns the exit code.
func run(args []string, s streams) int {
	err := oneProgram(args)
	if err == nil {
		app, out := newApp(s), &noted{w: s.out}
		app.Writer = out // for the texts of --help
		if err = app.Run(plain(args)); err == nil {
			err = out.failed
		}
	}
	if err == nil {
		return 0
	}
	var e *exit
	if !errors.As(err, &e) {
		e = &exit{codeTrouble, err.Error()}
		switch {
		case errors.Is(err, crew.ErrNotFound):
			e.code = codeNotFound
		case errors.Is(err, crew.ErrNotExecutable):
			e.code = codeNotExecutable
		}
	}
	if e.text != "" {
		fmt.Fprintln(s.err, "pgasrun:", e.text)
	}
	return e.code
}

// noted is a writer that keeps the first error, for who does not look at it.
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

func newApp(s streams) *cli.App {
	return &cli.App{
		Name: "pgasrun", HideHelpCommand: true, HideVersion: true,
		Reader: s.in, Writer: s.out, ErrWriter: s.err,
		CustomAppHelpTemplate:     helpText,
		DisableSliceFlagSeparator: true, // a comma in -x VAR=a,b is part of the value
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              onUsageError,
		Flags:                     flags(),
		Action:                    func(c *cli.Context) error { return runJob(c, s) },
		Commands: []*cli.Command{{
			Name: "info", HideHelpCommand: true, CustomHelpTemplate: infoHelp, OnUsageError: onUsageError,
			Flags: []cli.Flag{
				&cli.BoolFlag{Name: "calibrate"}, &cli.StringFlag{Name: "nic", Value: "soft"}, &cli.StringFlag{Name: "write"},
			},
			Action: func(c *cli.Context) error {
				if c.Args().Present() {
					return usage("info takes no arguments, found %q", c.Args().First())
				}
				if c.Bool("calibrate") || c.String("write") != "" {
					costs, err := calibrate(c.String("nic"), c.String("write"), s)
					if err != nil {
						return err
					}
					return writeInfo(s.out, costs)
				}
				return writeInfo(s.out, append(machineInfo(), libraryInfo(os.Environ())...))
			},
		}},
	}
}

// onUsageError makes a sentence of what the flag parser says.
func onUsageError(_ *cli.Context, err error, _ bool) error {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: "); ok {
		return usage("%s", unknownFlag(name))
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: "); ok {
		return usage("the flag %s needs a value", name)
	}
	if value, rest, ok := strings.Cut(strings.TrimPrefix(text, "invalid boolean value "), " for -"); ok {
		name, why, _ := strings.Cut(rest, ": ")
		if name == "stats" {
			return usage("%s", why)
		}
		return usage("the flag -%s is on or off and takes no value, found %s", name, value)
	}
	return usage("%s", text)
}
