package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"gopgas/internal/agent"
	"gopgas/internal/crew"
	"gopgas/internal/launch"
)

// runJob is pgasrun without a subcommand.
func runJob(c *cli.Context, s streams) error {
	if s.attend == nil {
		s.attend = func(...os.Signal) {}
	}
	s.attend(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	switch {
	case c.Bool("version"):
		return writeVersion(s.out)
	case c.Bool(strings.TrimLeft(agent.AgentFlag, "-")):
		return runAgent(s)
	}
	spec, err := specOf(c, os.Environ())
	if err != nil {
		return err
	}
	stats := statsOf(c)
	source, err := findSource(spec.Argv[0])
	if err != nil {
		return err
	}
	if c.Bool("dry-run") {
		return dryRun(s.out, spec, source)
	}
	statsTo, err := openStats(stats, s)
	if err != nil {
		return err
	}
	defer statsTo.discard()
	closePage, err := openPage(c, &spec, s.err)
	if err != nil {
		return err
	}
	defer closePage()
	shown, err := openPicture(c, s, statsTo)
	if err != nil {
		return err
	}
	defer shown.discard()
	if source != nil || shown.file != nil {
		tmp, err := filepath.Abs(os.TempDir()) // ranks, compiler and guard work in other folders
		if err != nil {
			return fmt.Errorf("make a temporary folder: %w", err)
		}
		dir, err := os.MkdirTemp(tmp, "pgasrun-")
		if err != nil {
			return fmt.Errorf("make a temporary folder: %w", err)
		}
		defer os.RemoveAll(dir) // R3; if pgasrun is killed, the guard of the job does it
		spec.Scratch = dir
		if err := shown.take(&spec, dir); err != nil {
			return err
		}
	}
	if source != nil {
		dir := spec.Scratch
		binary := filepath.Join(dir, source.name)
		if err := source.build(binary, s); err != nil {
			return err
		}
		spec.Argv = append([]string{binary}, spec.Argv[1:]...)
		spec.Ship = elsewhere(&spec)
	}
	given := spec.Set
	if spec.Folder != "" {
		given = append(slices.Clip(given), spec.FolderEnv+"="+spec.Folder)
	}
	for _, name := range crew.Withheld(spec.Env, given) {
		fmt.Fprintf(s.err, "pgasrun: %s is for the ranks of the job that this was started in (PGAS_JOB), and these do not get it; -x %s hands it on\n", name, name)
	}
	spec.Stdin, spec.Stdout, spec.Stderr, spec.Signals = s.in, s.out, s.err, s.signals
	spec.Taken = func(file string) string {
		switch {
		case statsTo.takes(file):
			return "--stats=json:" + stats.file
		case shown.takes(file):
			return "--trace " + c.String("trace")
		}
		return ""
	}
	spec.Suspend = func() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) } // which cannot fail
	s.attend(syscall.SIGTSTP, syscall.SIGCONT)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // so that writing to a reader who has gone is an error, of which the job is told, and not the end
	res, err := launch.Run(context.Background(), spec)
	if len(res.Ranks) == 0 { // nothing was started, and there is nothing to tell
		if err == nil {
			err = &exit{code: res.Code}
		}
		return err
	}
	err = errors.Join(err, shown.draw(res.Ranks, s.err)) // what ranks wrote may be lost, and what is known of them is told all the same
	if stats.mode != "" {
		err = errors.Join(err, tellStats(statsTo, s.err, stats.mode, spec.N, res.Stats))
	}
	if res.Code == 0 {
		return err
	}
	if err != nil {
		fmt.Fprintln(s.err, "pgasrun:", err) // the job's own failure, which it has named, decides
	}
	return &exit{code: res.Code}
}

// dryRun prints the commands as a shell would take them.
func dryRun(w io.Writer, spec launch.Spec, source *source) error {
	var b strings.Builder
	if source != nil {
		binary := filepath.Join("$TMP", source.name)
		fmt.Fprintf(&b, "# built first, into a temporary folder TMP that is removed at the end:\n%s\n", strings.Join(source.command(binary), " "))
		spec.Argv = append([]string{binary}, spec.Argv[1:]...)
	} else if path, err := crew.Lookup(spec.Argv[0]); err == nil {
		fmt.Fprintf(&b, "# the program is %s\n", path)
	} else if !elsewhere(&spec) {
		return err
	}
	if spec.Dir != "" {
		fmt.Fprintf(&b, "cd %s\n", quote(spec.Dir))
	}
	b.WriteString("# this environment is handed on, less what names another launcher's ranks; JOB is a name made at the start\n")
	words := func(all ...string) {
		for _, word := range all {
			b.WriteString(quote(word) + " ")
		}
		b.WriteString("\n")
	}
	hosts := spec.Hosts
	if hosts == nil {
		hosts = []launch.Host{{Ranks: spec.N}}
	}
	plan := crew.Plan{Job: "JOB", Size: spec.N, Argv: spec.Argv, Wrap: spec.Wrap, Set: spec.Set, Stats: spec.Stats}
	for _, h := range hosts {
		plan.Count = h.Ranks
		switch {
		case h.Agent != nil:
			fmt.Fprintf(&b, "# host %s, ranks %d to %d, with the environment there and the PGAS_ variables of here, by\n", h.Name, plan.First, plan.First+plan.Count-1)
			words(h.Agent...)
		case h.Name != "":
			fmt.Fprintf(&b, "# host %s, ranks %d to %d, as children of pgasrun\n", h.Name, plan.First, plan.First+plan.Count-1)
		}
		for r := plan.First; r < plan.First+plan.Count; r++ {
			env, argv := crew.Describe(plan, r)
			fmt.Fprintf(&b, "# rank %d\n", r)
			words(append(env, argv...)...)
		}
		plan.First += plan.Count
	}
	_, err := io.WriteString(w, strings.ReplaceAll(b.String(), " \n", "\n"))
	return err
}

// quote makes a word that a shell reads back as it is; $TMP is left for the reader.
func quote(word string) string {
	plain := func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("_-./=:,+@%", r)
	}
	rest := strings.TrimPrefix(word, "$TMP/")
	if rest != "" && strings.IndexFunc(rest, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
