package docs_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/test/debtest"
)

const tutorial = "docs/tutorial"

// steps returns the folders of the tutorial's steps, in order.
func steps(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(root, tutorial, "[01][0-9]-*"))
	require.NoError(t, err)
	for i := range all {
		all[i] = filepath.Base(all[i])
	}
	require.Len(t, all, 10)
	require.True(t, slices.IsSorted(all))
	return all
}

// TestTutorialSteps: each step has its parts, and the way from each to the next.
func TestTutorialSteps(t *testing.T) {
	all := steps(t)
	for i, step := range all {
		require.Contains(t, text(t, tutorial+"/README.md"), "("+step+"/README.md)")
		doc := text(t, tutorial+"/"+step+"/README.md")
		for _, part := range []string{"\n## What can go wrong\n", "\n## Exercise\n", "<summary>Answer</summary>"} {
			require.Contains(t, doc, part, step)
		}
		for _, word := range []string{"", " wrong", " answer"} {
			require.Regexp(t, `\n\$ pgasrun [^\n]*\./docs/tutorial/`+step+word+`[;|\n 2]`, doc, step)
		}
		if i+1 < len(all) {
			require.Contains(t, doc, "(../"+all[i+1]+"/README.md)", step)
		}
	}
}

// TestTutorialListings: every listing is a piece of one of the step's programs, line by line.
func TestTutorialListings(t *testing.T) {
	for _, step := range steps(t) {
		files, err := filepath.Glob(filepath.Join(root, tutorial, step, "*.go"))
		require.NoError(t, err)
		shown := map[string]bool{}
		doc := tutorial + "/" + step + "/README.md"
		for _, b := range blocks(text(t, doc)) {
			if b.kind != "go" {
				continue
			}
			where := ""
			for _, f := range files {
				source, err := os.ReadFile(f)
				require.NoError(t, err)
				if strings.Contains("\n"+string(source), "\n"+strings.Join(b.text, "\n")+"\n") {
					where = filepath.Base(f)
				}
			}
			if where == "" {
				t.Errorf("%s:%d: this listing is in none of the step's files:\n%s", doc, b.line, strings.Join(b.text, "\n"))
			}
			shown[where] = true
		}
		for _, f := range []string{"main.go", "wrong.go", "answer.go"} {
			if step != "10-sparse" || f != "main.go" { // there the lesson is another file
				require.True(t, shown[f], "%s shows nothing of %s", doc, f)
			}
		}
	}
}

// TestTutorialCommands runs every command of the tutorial in a shell, as a reader does, and compares what it prints. The
// programs are built before, all at once.
func TestTutorialCommands(t *testing.T) {
	bin := t.TempDir()
	out, err := goCommand(t, "build", "-ldflags=-s -w", "-o", bin+string(filepath.Separator), "./docs/tutorial/...", "./cmd/pgasrun")
	require.NoError(t, err, "%s", out)
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	for _, step := range steps(t) {
		doc := tutorial + "/" + step + "/README.md"
		for _, b := range blocks(text(t, doc)) {
			if b.kind != "console" {
				continue
			}
			command, prompt := strings.CutPrefix(b.text[0], "$ ")
			require.True(t, prompt, "%s:%d: a command begins with $", doc, b.line)
			t.Run(command, func(t *testing.T) {
				t.Parallel()
				built := strings.ReplaceAll(command, "./"+tutorial+"/", bin+string(filepath.Separator))
				require.NotEqual(t, command, built)
				if why := differs(t, built, b.text[1:]); why != "" {
					t.Errorf("%s:%d: %s", doc, b.line, why)
				}
			})
		}
	}
}

// TestDebuggingCommands runs those of the page on debugging, and leaves the building to pgasrun.
func TestDebuggingCommands(t *testing.T) {
	debtest.Need(t, "gdb", "gdb")
	bin := t.TempDir()
	out, err := goCommand(t, "build", "-ldflags=-s -w", "-o", bin, "./cmd/pgasrun")
	require.NoError(t, err, "%s", out)
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	flags, err := goCommand(t, "env", "GOFLAGS")
	require.NoError(t, err, "%s", flags)
	t.Setenv("GOFLAGS", strings.TrimSpace(string(flags))+" -gcflags=gopgas/docs/tutorial/...=-dwarf") // a reader has not switched it off
	ran := 0
	for _, b := range blocks(text(t, "docs/debugging.md")) {
		if b.kind == "console" {
			if why := differs(t, strings.TrimPrefix(b.text[0], "$ "), b.text[1:]); why != "" {
				t.Errorf("docs/debugging.md:%d: %s", b.line, why)
			}
			ran++
		}
	}
	require.Equal(t, 2, ran)
}

// differs runs a command and says how what it prints differs from the lines wanted; empty: it does not. The text's time limits
// are a reader's, who wants to see what happens; a machine on which ranks take longer to come so far is given more.
func differs(t *testing.T, command string, want []string) string {
	t.Helper()
	limits := []string{"1"}
	if strings.Contains(command, "--timeout 1 ") {
		limits = append(limits, "8", "40")
	}
	why := ""
	for _, seconds := range limits {
		got := shell(t, strings.Replace(command, "--timeout 1 ", "--timeout "+seconds+" ", 1))
		if why = compare(want, got); why == "" {
			return ""
		}
		why += "; it printed:\n" + strings.Join(got, "\n")
	}
	return why
}

// goCommand runs the go command in the module's folder.
func goCommand(t *testing.T, args ...string) ([]byte, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root
	return cmd.CombinedOutput()
}

// shell runs a command line in the module's folder and returns the lines that it printed.
func shell(t *testing.T, command string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir, cmd.WaitDelay = root, 5*time.Second
	cmd.Stdout, cmd.Stderr = &out, &out
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil {
		require.ErrorAs(t, err, &exit)
	}
	require.NoError(t, ctx.Err(), "%s has not ended", command)
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// speaker is a line that one of several ranks, or their launcher, prints beside the others: it may come at any time.
var speaker = regexp.MustCompile(`^…?(I am |pgas: )?rank [0-9]|^pgasrun: `)

// compare says how lines differ from those wanted; empty: they do not. An … in a wanted line stands for anything, and a line
// of it for any lines. The lines of speakers come in any order.
func compare(want, lines []string) string {
	used := make([]int, len(lines)) // by which line of want, from 1
	anything := slices.Contains(want, "…")
	last := -1
	for i, w := range want {
		if w == "…" {
			continue
		}
		quoted := strings.ReplaceAll(regexp.QuoteMeta(w), "…", ".*")
		pattern := regexp.MustCompile("^" + quoted + "$")
		at := slices.IndexFunc(lines, pattern.MatchString)
		for at >= 0 && used[at] != 0 {
			next := slices.IndexFunc(lines[at+1:], pattern.MatchString)
			if next < 0 {
				at = -1
			} else {
				at += next + 1
			}
		}
		if at < 0 {
			return "nothing like " + w
		}
		used[at] = i + 1
		if !speaker.MatchString(w) {
			if at < last {
				return "in another order: " + w
			}
			last = at
		}
	}
	if at := slices.Index(used, 0); at >= 0 && !anything {
		return "not in the text: " + lines[at]
	}
	return ""
}

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		want, lines, why string
	}{
		{"a\nb", "a\nb", ""},
		{"a\nb", "b\na", "in another order: b"},
		{"rank 0 x\nrank 1 y", "rank 1 y\nrank 0 x", ""},
		{"a", "a\nb", "not in the text: b"},
		{"a\n…", "a\nb", ""},
		{"a …", "a b c", ""},
		{"a\na", "a", "nothing like a"},
		{"a.c", "abc", "nothing like a.c"},
		{"a\n…rank 0 x\n…rank 1 y\n…", "a\n[a thread rank 1 y\nrank 0 x\nends]", ""}, // a debugger has no whole lines
	} {
		require.Equal(t, c.why, compare(strings.Split(c.want, "\n"), strings.Split(c.lines, "\n")), "%q", c.want)
	}
}
