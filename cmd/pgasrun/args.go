package main

import (
	"fmt"
	"io"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// ranksGlued is -n with its value in one word, as other launchers and shells' habits have it.
var ranksGlued = regexp.MustCompile(`^(--?np?)([0-9]+)$`)

// plain puts a command line into the form that the flag parser reads: -n2 becomes -n 2, and help the flag. What comes after the program's
// name is the program's.
func plain(args []string) []string {
	if len(args) > 1 && args[1] == "help" {
		switch {
		case len(args) == 2:
			return []string{args[0], "--help"}
		case len(args) == 3 && args[2] == "info":
			return []string{args[0], "info", "--help"}
		}
	}
	var out []string
	for i, a := range args {
		if i > 0 && (a == "--" || !strings.HasPrefix(a, "-")) && !takesValue(args[i-1]) {
			return append(out, args[i:]...)
		}
		if m := ranksGlued.FindStringSubmatch(a); m != nil && i > 0 && !takesValue(args[i-1]) {
			out = append(out, m[1], m[2])
			continue
		}
		out = append(out, a)
	}
	return out
}

// oneProgram refuses what mpiexec takes for several programs in one job: a ":" by itself among the program's words, with more behind it. Behind
// -- it is the program's own.
func oneProgram(args []string) error {
	words := plain(args)
	for i, a := range words {
		switch {
		case i == 0 || takesValue(words[i-1]) || a != "--" && strings.HasPrefix(a, "-"):
			continue
		case a == "--" || a == "info":
			return nil
		}
		rest := words[i:]
		if at := slices.Index(rest, ":"); at > 0 && at < len(rest)-1 {
			own := append(append(slices.Clone(words[:i]), "--"), rest...)
			return usage("%q would begin a second program, as with mpiexec, and a job of pgasrun has one; let that choose by the rank: "+
				`pgasrun -n 2 sh -c 'case $PGAS_RANK in 0) exec ./a;; *) exec ./b;; esac'; where %q is meant for %s: %s`,
				":", ":", rest[0], strings.Join(own, " "))
		}
		return nil
	}
	return nil
}

// takesValue reports whether a word of the command line is a flag whose value is the next word.
func takesValue(word string) bool {
	name := strings.TrimLeft(word, "-")
	if name == word || name == "" {
		return false
	}
	for _, f := range flags() {
		switch f.(type) {
		case *cli.BoolFlag, *cli.GenericFlag: // and --stats has its value behind a "="
			continue
		}
		if slices.Contains(f.Names(), name) {
			return true
		}
	}
	return false
}

// buildVersion names this build: its version, and what it was built from where that is known.
func buildVersion() string {
	version, revision := "(devel)", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			version = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = ", " + s.Value
			}
		}
	}
	return version + revision
}

// writeVersion says which build this is.
func writeVersion(w io.Writer) error {
	_, err := fmt.Fprintf(w, "pgasrun %s, %s %s/%s\n", buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
