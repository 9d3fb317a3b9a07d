package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/internal/crew"
)

func TestWhereOutputGoes(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Symlink("f", filepath.Join(dir, "link")))
	say := []string{"sh", "-c", "echo out $PGAS_RANK; echo err $PGAS_RANK >&2"}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		return string(b)
	}
	for name, c := range map[string]struct {
		spec     Spec
		out, err []string // lines, in any order
		files    map[string][]string
	}{
		"prefix": {
			spec: Spec{Prefix: "%2r/%n %s: "},
			out:  []string{"00/2 out: out 0", "01/2 out: out 1"}, err: []string{"00/2 err: err 0", "01/2 err: err 1"},
		},
		"only": {spec: Spec{Only: []int{1}}, out: []string{"out 1"}, err: []string{"err 1"}},
		"none": {spec: Spec{Only: []int{}}},
		"file of each": {
			spec:  Spec{Output: "a.%r", Label: true},
			files: map[string][]string{"a.0": {"out 0", "err 0"}, "a.1": {"out 1", "err 1"}},
		},
		"file of all": {
			spec:  Spec{Output: "b"},
			files: map[string][]string{"b": {"out 0", "err 0", "out 1", "err 1"}},
		},
		"errors apart": {
			spec: Spec{Error: "c.%r"}, out: []string{"out 0", "out 1"},
			files: map[string][]string{"c.0": {"err 0"}, "c.1": {"err 1"}},
		},
		"one file by two names": {
			spec:  Spec{Output: "e", Error: "./e"},
			files: map[string][]string{"e": {"out 0", "err 0", "out 1", "err 1"}},
		},
		"one file by a link": {
			spec:  Spec{Output: "link", Error: "f"},
			files: map[string][]string{"f": {"out 0", "err 0", "out 1", "err 1"}},
		},
		"tee, one shown": {
			spec: Spec{Output: "d.%r", Tee: true, Only: []int{0}, Label: true},
			out:  []string{"0: out 0"}, err: []string{"0: err 0"},
			files: map[string][]string{"d.0": {"out 0", "err 0"}, "d.1": {"out 1", "err 1"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.spec.N = 2
			for _, p := range []*string{&c.spec.Output, &c.spec.Error} {
				if *p != "" {
					*p = dir + "/" + *p
				}
			}
			c.spec.Argv = say
			r := run(t, c.spec)
			require.Zero(t, r.Code, r.err)
			require.ElementsMatch(t, c.out, strings.FieldsFunc(r.out, isNewline))
			require.ElementsMatch(t, c.err, strings.FieldsFunc(r.err, isNewline))
			for file, lines := range c.files {
				require.ElementsMatch(t, lines, strings.FieldsFunc(read(file), isNewline))
			}
		})
	}
}

// TestOutputToTheLaunchersOwn: a name of the launcher's own output, as /dev/stdout is, is that output, with what stands in it before and what else goes there.
func TestOutputToTheLaunchersOwn(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	for _, how := range []int{os.O_APPEND, 0} {
		log, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_RDWR|how, 0o600)
		require.NoError(t, err)
		defer log.Close()
		_, err = log.WriteString("before\n")
		require.NoError(t, err)
		for _, pattern := range []string{name, fmt.Sprintf("/proc/self/fd/%d", log.Fd())} {
			res, err := Run(t.Context(), Spec{N: 2, Argv: []string{"sh", "-c", "echo out; echo err >&2"}, Env: os.Environ(), Stdout: log, Stderr: log, Log: log, Error: pattern, Label: true})
			require.NoError(t, err)
			require.Zero(t, res.Code)
		}
		_, err = log.WriteString("after\n")
		require.NoError(t, err)
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		lines := strings.FieldsFunc(string(b), isNewline)
		require.Equal(t, []string{"before", "after"}, []string{lines[0], lines[len(lines)-1]})
		require.ElementsMatch(t, []string{"0: out", "1: out", "err", "err", "0: out", "1: out", "err", "err"}, lines[1:len(lines)-1])
	}
}

func isNewline(r rune) bool { return r == '\n' }

func TestOutputThatCannotBeWritten(t *testing.T) {
	_, err := Run(t.Context(), Spec{N: 2, Argv: []string{"true"}, Output: filepath.Join(t.TempDir(), "no", "out.%r")})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "output of rank 0: ")
	require.ErrorContains(t, err, "its folder must be there")
	_, err = Run(t.Context(), Spec{N: 1, Argv: []string{"echo", "hello"}, Output: "/dev/full"})
	require.ErrorIs(t, err, syscall.ENOSPC, "lost output is told")
	require.EqualError(t, err, "the ranks' output is not complete: write /dev/full: no space left on device")
}

func TestRanksAreBound(t *testing.T) {
	var mine unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &mine))
	first := -1
	for id := 0; first < 0; id++ {
		if mine.IsSet(id) {
			first = id
		}
	}
	r := run(t, Spec{N: 1, Bind: crew.BindCore, Report: true, Argv: []string{"grep", "Cpus_allowed_list", "/proc/self/status"}})
	require.Zero(t, r.Code, r.err)
	ids, err := crew.ParseList(strings.TrimSpace(strings.TrimPrefix(r.out, "Cpus_allowed_list:")), 1<<20)
	require.NoError(t, err)
	require.Contains(t, ids, first)
	require.Contains(t, r.err, fmt.Sprintf("is bound to processors %s of memory node ", crew.FormatList(ids)))

	r = run(t, Spec{N: 1, Argv: []string{"grep", "Cpus_allowed_list", "/proc/self/status"}})
	ids, err = crew.ParseList(strings.TrimSpace(strings.TrimPrefix(r.out, "Cpus_allowed_list:")), 1<<20)
	require.NoError(t, err)
	require.Len(t, ids, mine.Count(), "who is not bound has what the launcher has")
}

func TestWrap(t *testing.T) {
	r := run(t, Spec{N: 3, Argv: []string{"sh", "-c", "echo rank $PGAS_RANK $WRAPPED"}, Wrap: map[int][]string{1: {"env", "WRAPPED=yes"}}})
	require.Zero(t, r.Code, r.err)
	require.ElementsMatch(t, []string{"rank 0", "rank 1 yes", "rank 2"}, strings.FieldsFunc(r.out, isNewline))
	_, err := Run(t.Context(), Spec{N: 2, Argv: []string{"sleep", "100"}, Wrap: map[int][]string{1: {"no-such-debugger"}}})
	require.ErrorIs(t, err, crew.ErrNotFound)
	require.ErrorContains(t, err, "the command round rank 1")
}

// TestWrappedRankTalks: a prompt has no end of line and is shown all the same, and INT goes to the wrapped rank only.
func TestWrappedRankTalks(t *testing.T) {
	signals := make(chan os.Signal, 4)
	said := make(chan string, 64)
	debugger := `trap "echo interrupted; exit 0" INT; printf "(prompt) "; while :; do sleep 0.02; done`
	done := make(chan Result, 1)
	go func() {
		res, _ := Run(t.Context(), Spec{
			N: 2, Argv: []string{"sh", "-c", `[ $PGAS_RANK = 0 ] && exec sleep 0.1; shift; :`}, Signals: signals, Stdout: chanWriter(said),
			Wrap: map[int][]string{1: {"sh", "-c", debugger}},
		})
		done <- res
	}()
	require.Equal(t, "(prompt) ", <-said)
	signals <- syscall.SIGINT
	res := <-done
	require.Zero(t, res.Code, res.Cause)
	require.Equal(t, "interrupted\n", <-said)
}

type chanWriter chan string

func (c chanWriter) Write(b []byte) (int, error) {
	c <- string(b)
	return len(b), nil
}
