package pgastest

import (
	"flag"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOwnArgs: process ranks get the arguments of the test's program as it was given them, and none of package testing's.
func TestOwnArgs(t *testing.T) {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	for _, name := range []string{"test.run", "test.timeout", "config"} {
		flags.String(name, "", "")
	}
	for _, name := range []string{"test.v", "quick"} {
		flags.Bool(name, false, "")
	}
	for given, want := range map[string]string{
		"":                                 "",
		"-test.run=X -test.v -quick":       "-quick",
		"-test.run X -quick":               "-quick",
		"--test.run X --test.v -quick y":   "-quick y",
		"-test.v -config test.yaml":        "-config test.yaml",
		"-config -test.v -quick":           "-config -test.v -quick",
		"-config=a -test.timeout 5s":       "-config=a",
		"-test.v=true test.json -test.v":   "test.json -test.v",
		"-quick -- -test.run X":            "-quick -- -test.run X",
		"-test.v - -test.v":                "- -test.v",
		"-test.timeout":                    "",
		"-test.run X -unknown -test.v z":   "-unknown z",
		"-quick=false test.v -config test": "-quick=false test.v -config test",
	} {
		require.Equal(t, want, strings.Join(ownArgs(strings.Fields(given), flags.Lookup), " "), "%q", given)
	}
}

// TestProgramOfRanks: the program of process ranks is found wherever the test has gone.
func TestProgramOfRanks(t *testing.T) {
	t.Chdir(t.TempDir())
	require.FileExists(t, argv(t.Name())[0])
}
