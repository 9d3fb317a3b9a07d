package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"gopgas/internal/agent"
	"gopgas/internal/launch"
)

// statsFlag is --stats: a flag that may stand alone or have a value.
type statsFlag struct{ mode, file string }

func (f *statsFlag) IsBoolFlag() bool { return true } // lets the flag stand without a value
func (f *statsFlag) String() string   { return f.mode }

func (f *statsFlag) Set(v string) error {
	mode, file, hasFile := strings.Cut(v, ":")
	switch {
	case v == "true" || v == "table":
		f.mode = "table"
	case mode == "json" && (!hasFile || file != ""):
		f.mode, f.file = "json", file
	default:
		return fmt.Errorf("--stats=%s: wanted --stats, --stats=json or --stats=json:FILE", v)
	}
	return nil
}

func flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "n", Aliases: []string{"np"}, Value: "1"},
		&cli.StringFlag{Name: "hosts", Aliases: []string{"H", "host"}},
		&cli.StringFlag{Name: "hostfile", Aliases: []string{"machinefile"}},
		&cli.StringFlag{Name: "ppn"},
		&cli.StringFlag{Name: "launcher", Value: "ssh"},
		&cli.StringFlag{Name: "rsh"},
		&cli.StringFlag{Name: "agent-path"},
		&cli.BoolFlag{Name: strings.TrimLeft(agent.AgentFlag, "-"), Hidden: true},
		&cli.BoolFlag{Name: "label", Aliases: []string{"l"}},
		&cli.StringFlag{Name: "prefix"},
		&cli.StringFlag{Name: "o", Aliases: []string{"output"}},
		&cli.StringFlag{Name: "e", Aliases: []string{"error"}},
		&cli.BoolFlag{Name: "tee"},
		&cli.StringFlag{Name: "only"},
		&cli.StringFlag{Name: "bind-to", Value: "none"},
		&cli.BoolFlag{Name: "report-bindings"},
		&cli.StringSliceFlag{Name: "wrap", KeepSpace: true},
		&cli.StringFlag{Name: "stdin", Value: "0"},
		&cli.StringFlag{Name: "timeout"},
		&cli.StringFlag{Name: "grace"},
		&cli.BoolFlag{Name: "no-kill"},
		&cli.StringSliceFlag{Name: "x", KeepSpace: true}, // blanks at the end of a value belong to it
		&cli.StringFlag{Name: "wdir"},
		&cli.BoolFlag{Name: "dry-run"},
		&cli.GenericFlag{Name: "stats", Value: new(statsFlag)},
		&cli.StringFlag{Name: "serve"},
		&cli.StringFlag{Name: "trace"},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}},
		&cli.BoolFlag{Name: "version"},
	}
}

// specOf reads the flags. It starts nothing and needs no file but the working folder.
func specOf(c *cli.Context, environ []string) (s launch.Spec, err error) {
	s = launch.Spec{
		Argv: c.Args().Slice(), Env: environ, Label: c.Bool("label"), Dir: c.String("wdir"),
		Prefix: c.String("prefix"), Output: c.String("o"), Error: c.String("e"), Tee: c.Bool("tee"),
		Report: c.Bool("report-bindings"),
		NoKill: c.Bool("no-kill"), Verbose: c.Bool("verbose"), Stats: statsOf(c).mode != "",
	}
	if s.N, err = parseRanks(c.String("n")); err != nil {
		return s, err
	}
	if err := place(c, &s, environ); err != nil {
		return s, err
	}
	if s.StdinTo, err = parseStdin(c.String("stdin"), s.N); err != nil {
		return s, err
	}
	if err := parseOutput(c, &s); err != nil {
		return s, err
	}
	if s.Bind, err = parseBinding(c.String("bind-to")); err != nil {
		return s, err
	}
	if s.Wrap, err = parseWraps(c.StringSlice("wrap"), s.N); err != nil {
		return s, err
	}
	if !c.IsSet("stdin") && len(s.Wrap) == 1 {
		for r := range s.Wrap {
			s.StdinTo = r // whoever wraps a debugger round a rank talks to it
		}
	}
	for name, d := range map[string]*time.Duration{"timeout": &s.Timeout, "grace": &s.Grace} {
		if c.IsSet(name) {
			if *d, err = parseTime(name, c.String(name)); err != nil {
				return s, err
			}
		}
	}
	if s.Set, err = parseVars(c.StringSlice("x"), environ); err != nil {
		return s, err
	}
	if s.Dir != "" && !elsewhere(&s) { // the launcher says it of each host
		if info, err := os.Stat(s.Dir); err != nil {
			return s, usage("--wdir: %v; wanted a folder that is there", err)
		} else if !info.IsDir() {
			return s, usage("--wdir: %s is not a folder", s.Dir)
		}
	}
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return s, usage("no program to run: wanted pgasrun -n %d PROGRAM", s.N)
	}
	if _, err := strconv.Atoi(s.Argv[0]); err == nil && !c.IsSet("n") && !elsewhere(&s) {
		if _, err := exec.LookPath(s.Argv[0]); err != nil {
			return s, usage("there is no program %q; the number of ranks is given by -n: pgasrun -n %s", s.Argv[0], strings.Join(s.Argv, " "))
		}
	}
	return s, nil
}

func statsOf(c *cli.Context) statsFlag {
	if f, ok := c.Generic("stats").(*statsFlag); ok {
		return *f
	}
	return statsFlag{}
}

func parseRanks(v string) (int, error) {
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > launch.MaxRanks {
		return 0, usage("-n %s: wanted a number of ranks, 1 to %d", v, launch.MaxRanks)
	}
	return n, nil
}

func parseStdin(v string, n int) (int, error) {
	switch v {
	case "all":
		return launch.StdinAll, nil
	case "none":
		return launch.StdinNone, nil
	}
	r, err := strconv.Atoi(v)
	if err != nil || r < 0 || r >= n {
		return 0, usage(`--stdin %s: wanted a rank from 0 to %d, "all" or "none"`, v, n-1)
	}
	return r, nil
}

// parseTime takes Go's durations and plain seconds. 0 would mean the default, so it is the smallest time instead.
func parseTime(name, v string) (time.Duration, error) {
	d, err := time.ParseDuration(v)
	if err != nil {
		var f float64
		if f, err = strconv.ParseFloat(v, 64); err == nil && f >= 0 && f < math.MaxInt64/1e9 {
			d = time.Duration(f * float64(time.Second))
		} else if err == nil {
			d = -1
		}
	}
	if err != nil || d < 0 {
		return 0, usage("--%s %s: wanted a time such as 30s, 5m or 2.5 (seconds)", name, v)
	}
	if d == 0 && name == "timeout" {
		return 0, nil // no limit, as elsewhere
	}
	return max(d, 1), nil
}

// parseVars turns VAR and VAR=VALUE into the latter.
func parseVars(vars, environ []string) ([]string, error) {
	var out []string
	for _, v := range vars {
		name, _, hasValue := strings.Cut(v, "=")
		if name == "" || strings.ContainsAny(name, " \t\x00") {
			return nil, usage("-x %s: wanted VAR or VAR=VALUE", v)
		}
		if !hasValue {
			found := false
			for _, e := range environ {
				if strings.HasPrefix(e, name+"=") {
					v, found = e, true
				}
			}
			if !found {
				return nil, usage("-x %s: this variable is not set here; set it, or write -x %s=VALUE", name, name)
			}
		}
		out = append(out, v)
	}
	return out, nil
}
