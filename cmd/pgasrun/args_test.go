package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"p":                            "p",
		"p -n2 x":                      "p -n 2 x",
		"p -np12 -l ./x -n3":           "p -np 12 -l ./x -n3",
		"p --prefix -n2 -n4 x":         "p --prefix -n2 -n 4 x",
		"p --label -n2 x":              "p --label -n 2 x",
		"p --stats -n2 x":              "p --stats -n 2 x",
		"p --stats=json:f -n2 x":       "p --stats=json:f -n 2 x",
		"p -- -n2":                     "p -- -n2",
		"p -n 2 echo -n2":              "p -n 2 echo -n2",
		"p -nx x":                      "p -nx x",
		"p help":                       "p --help",
		"p help info":                  "p info --help",
		"p help me":                    "p help me",
		"p -n 2 help":                  "p -n 2 help",
		"p --wdir help -n2 ./x --help": "p --wdir help -n 2 ./x --help",
	} {
		require.Equal(t, strings.Fields(want), plain(strings.Fields(in)), in)
	}
}

// TestOneProgram: the colon with which mpiexec begins another program is refused with what to do, where it can be one, and is the program's own else.
func TestOneProgram(t *testing.T) {
	for _, good := range []string{
		"p", "p -n 2 a", "p -n 2 a :", "p : a", "p -n 2 -- a : b", "p -- a : -n 1 b", "p --prefix : -n 2 a", "p -n 2 a b:c", "p -n 2 a -- x", "p info : x", "p -n",
	} {
		require.NoError(t, oneProgram(strings.Fields(good)), good)
	}
	for bad, own := range map[string]string{
		"p -n 1 a : -n 1 b":       "p -n 1 -- a : -n 1 b",
		"p -n1 -l a -x y : b":     "p -n 1 -l -- a -x y : b",
		"p --stats -n 2 a : b":    "p --stats -n 2 -- a : b",
		"p --wdir info a : b":     "p --wdir info -- a : b",
		"p a -- x : b : -n 1 ./c": "p -- a -- x : b : -n 1 ./c",
	} {
		err := oneProgram(strings.Fields(bad))
		require.ErrorContains(t, err, `":" would begin a second program`, bad)
		require.ErrorContains(t, err, "meant for a: "+own+" (pgasrun --help", bad)
	}
	out, errs, code := call(t, "-n", "1", "echo", "a", ":", "-n", "1", "echo", "b")
	require.Equal(t, codeUsage, code)
	require.Empty(t, out)
	require.Contains(t, errs, "case $PGAS_RANK in")
	out, errs, code = call(t, "-n", "1", "--", "echo", "a", ":", "-n", "1", "echo", "b")
	require.Zero(t, code, errs)
	require.Equal(t, "a : -n 1 echo b\n", out)
}

// TestTextsThatCannotBeWritten: who asks for a text and does not get it learns that by the exit code.
func TestTextsThatCannotBeWritten(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	for _, args := range []string{"--help", "help", "info --help", "--version", "--dry-run true"} {
		var errs bytes.Buffer
		code := run(append([]string{"pgasrun"}, strings.Fields(args)...), streams{out: full, err: &errs})
		require.Equal(t, codeTrouble, code, args)
		require.Equal(t, "pgasrun: write /dev/full: no space left on device\n", errs.String(), args)
	}
}

func TestHelpAndVersion(t *testing.T) {
	out, errs, code := call(t, "help")
	require.Zero(t, code, errs)
	require.Equal(t, helpText, out)
	out, errs, code = call(t, "--version")
	require.Zero(t, code, errs)
	require.Regexp(t, `^pgasrun \S+.*, go\S+ \w+/\w+\n$`, out)
	out, errs, code = call(t, "-n2", "--timeout", "0", "echo", "yes")
	require.Zero(t, code, errs)
	require.Equal(t, "yes\nyes\n", out)
}

// TestOutputThatIsLost: a job that fails ends with its own code although its output, or what was asked for about it, cannot be written, and what can be is.
func TestOutputThatIsLost(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	file := filepath.Join(t.TempDir(), "stats.json")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"echo", "x"}, codeTrouble, "the ranks' output is not complete"},
		{[]string{"sh", "-c", "echo x; exit 3"}, 3, "the ranks' output is not complete"},
		{[]string{"--stats=json:/dev/full", "sh", "-c", "exit 3"}, 3, "write the statistics: "},
		{[]string{"--stats=json:" + file, "echo", "x"}, codeTrouble, "the ranks' output is not complete"},
	} {
		var errs bytes.Buffer
		code := run(append([]string{"pgasrun"}, c.args...), streams{out: full, err: &errs})
		require.Equal(t, c.code, code, "%v: %s", c.args, &errs)
		require.Contains(t, errs.String(), "pgasrun: "+c.says, "%v", c.args)
	}
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, json.Valid(b), "%s", b)
}
