package main

import (
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
