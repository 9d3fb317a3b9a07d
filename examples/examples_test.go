// Package examples_test runs every example as people do: built, with its ranks as processes under a launcher.
package examples_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/test/debtest"
)

// launchers start a program with n ranks: those of others. Each example runs under each of them in worlds of several sizes, and under
// pgasrun in one.
var launchers = map[string]func(t *testing.T, n int) []string{
	"mpiexec.hydra": func(t *testing.T, n int) []string {
		return []string{debtest.Need(t, "mpiexec.hydra", "mpich"), "-n", strconv.Itoa(n)}
	},
}

// pgasrun is the launcher of this module, in the folder of what was built.
func pgasrun(bin string, n int) []string {
	return []string{filepath.Join(bin, "pgasrun"), "-n", strconv.Itoa(n)}
}

// compiled is where the examples are, once somebody has asked.
var compiled = struct {
	sync.Once
	dir, out string
	err      error
}{}

func TestMain(m *testing.M) {
	code := m.Run()
	os.RemoveAll(compiled.dir)
	os.Exit(code)
}

// build compiles the examples and pgasrun, once, and returns their folder.
func build(t *testing.T) string {
	t.Helper()
	c := &compiled
	c.Do(func() {
		if c.dir, c.err = os.MkdirTemp("", "examples"); c.err == nil {
			var out []byte
			out, c.err = exec.Command("go", "build", "-ldflags=-s -w", "-o", c.dir+string(filepath.Separator), "./...", "../cmd/pgasrun").CombinedOutput()
			c.out = string(out)
		}
	})
	require.NoError(t, c.err, "%s", c.out)
	return c.dir
}

// start runs a command to its end and returns what it wrote, and its exit code.
func start(t *testing.T, argv ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &errs, 5*time.Second
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		require.NoError(t, err)
	}
	require.NoError(t, ctx.Err(), "%v has not ended\n%s", argv, errs.String())
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// TestProcesses runs every example with small input, and alone too: a world of one rank needs no launcher.
func TestProcesses(t *testing.T) {
	bin := build(t)
	all, three := []int{1, 3, 4, 8}, []int{3}
	if testing.Short() {
		all = []int{3, 8} // the examples' own tests have all worlds of goroutines
	}
	examples := []struct {
		argv  []string
		want  string // a pattern; RANKS stands for their number
		ranks []int
	}{
		{[]string{"hello"}, `all RANKS ranks are on the roll\n`, all},
		{[]string{"ring", "-laps", "50"}, `the token went round 50 times`, all},
		{[]string{"heat", "-rows", "40", "-cols", "30", "-steps", "50"}, `40 x 30 cells, 50 steps on RANKS ranks.*\nverified: `, all},
		{[]string{"stencil3d", "-edge", "12", "-steps", "20"}, `12 x 12 x 12 cells in .* blocks, 20 steps on RANKS ranks.*\nverified: `, all},
		{[]string{"gups", "-bits", "14"}, `65536 updates of 16384 words by RANKS ranks.*\nverified: `, all},
		{[]string{"gups", "-bits", "14", "-atomic"}, `65536 updates of 16384 words by RANKS ranks.*\nverified: 0 words wrong`, all},
		{[]string{"isx", "-keys", "20000", "-max", "65536"}, `keys on RANKS ranks.*\nverified: sorted`, all},
		{[]string{"kmer", filepath.Join("kmer", "lambda.fa")}, `48472 of them distinct, counted by RANKS ranks.*\nverified`, all},
		{[]string{"words", "-words", "1000"}, `000 words counted by RANKS ranks.*\nverified: all counts exact\n`, three},
		{[]string{"transpose", "-order", "64", "-times", "2"}, `64 x 64 transposed 2 times by RANKS ranks.*\nverified: `, three},
		{[]string{"p2p", "-cols", "40", "-rows", "30", "-rounds", "2"}, `2 rounds by RANKS ranks.*\nverified: the last cell is 204`, three},
		{[]string{"matmul", "-n", "40"}, `40 x 40 by .* ranks.*\nverified: `, three},
		{[]string{"histogram", "-values", "1000"}, `000 values in 1000 bins by RANKS ranks.*\nverified: `, three},
		{[]string{"cg", "-side", "10"}, `100 unknowns, .* by RANKS ranks.*\nverified: `, three},
		{[]string{"indexgather", "-table", "1000", "-reads", "2000"}, `by RANKS ranks, gather.*\nverified: `, three},
	}
	for _, e := range examples {
		argv := append([]string{filepath.Join(bin, e.argv[0])}, e.argv[1:]...)
		run := func(name string, n int, launcher []string) {
			t.Run(fmt.Sprintf("%s,%s,ranks=%d", strings.Join(e.argv, " "), name, n), func(t *testing.T) {
				stdout, stderr, code := start(t, append(launcher, argv...)...)
				require.Zero(t, code, "%s%s", stdout, stderr)
				require.Regexp(t, strings.ReplaceAll(e.want, "RANKS", strconv.Itoa(n)), stdout)
				require.Empty(t, stderr)
			})
		}
		run("alone", 1, nil)
		if !testing.Short() || len(e.ranks) > 1 {
			run("pgasrun", 3, pgasrun(bin, 3))
		}
		for name, launcher := range launchers {
			for _, n := range e.ranks {
				run(name, n, launcher(t, n))
			}
		}
	}
}

// TestHello sees every rank's own line.
func TestHello(t *testing.T) {
	bin := build(t)
	commands := [][]string{pgasrun(bin, 4)}
	for _, launcher := range launchers {
		commands = append(commands, launcher(t, 4))
	}
	for _, command := range commands {
		stdout, _, _ := start(t, append(command, filepath.Join(bin, "hello"))...)
		for r := range 4 {
			require.Contains(t, stdout, fmt.Sprintf("rank %d of 4 on node 0 (", r))
			require.Contains(t, stdout, fmt.Sprintf("reaches rank %d over shm\n", r))
		}
	}
}

// TestReadme runs the first command that the README gives, as it stands there.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "README.md"))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "\n$ ")
	require.True(t, found, "no command in the README")
	line, _, _ := strings.Cut(rest, "\n")
	line, _, _ = strings.Cut(line, "#")
	argv := strings.Fields(line)
	require.Equal(t, []string{"go", "run", "./cmd/pgasrun"}, argv[:3])
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir = ".."
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Regexp(t, `48472 of them distinct, counted by 4 ranks.*\nverified`, string(out))
}

// TestFailures runs what cannot work: the exit code and the sentence must tell.
func TestFailures(t *testing.T) {
	bin := build(t)
	empty := filepath.Join(t.TempDir(), "empty.fa")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"hello", "there"}, "hello takes no arguments"},
		{[]string{"ring", "-laps", "0"}, "needed from 1 to"},
		{[]string{"heat", "-rows", "3"}, "needed 4 rows or more (one for each rank)"},
		{[]string{"gups", "-bits", "1"}, "a word for each of 4 ranks"},
		{[]string{"isx", "-max", "3"}, "a max from 4 (a value for each rank)"},
		{[]string{"kmer"}, "needed one file in FASTA or FASTQ"},
		{[]string{"kmer", "missing.fa"}, "open missing.fa: no such file or directory: needed a file in FASTA or FASTQ"},
		{[]string{"kmer", empty}, "(0 bytes): \"\" is no sequence: needed FASTA"},
		{[]string{"kmer", "README.md"}, "is no sequence: needed FASTA"},
		{[]string{"kmer", "-k", "32", filepath.Join("kmer", "lambda.fa")}, "a number from 1 to 31"},
	} {
		argv := append([]string{filepath.Join(bin, c.argv[0])}, c.argv[1:]...)
		for name, launcher := range launchers {
			t.Run(strings.Join(c.argv, " ")+","+name, func(t *testing.T) {
				stdout, stderr, code := start(t, append(launcher(t, 4), argv...)...)
				require.NotZero(t, code) // Hydra mixes in the signal with which it ends the other ranks
				require.Contains(t, stderr, c.want)
				require.NotContains(t, stdout, "verified")
			})
		}
	}
}

// TestFailureAlone pins the whole of what a person sees.
func TestFailureAlone(t *testing.T) {
	kmer := filepath.Join(build(t), "kmer")
	stdout, stderr, code := start(t, kmer, "missing.fa")
	require.Equal(t, 1, code)
	require.Empty(t, stdout)
	require.Equal(t, "pgas: rank 0: open missing.fa: no such file or directory: needed a file in FASTA or FASTQ\n", stderr)
}
