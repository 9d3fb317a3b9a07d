package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSplitWords(t *testing.T) {
	for in, want := range map[string][]string{
		"": nil, "  ": nil, "dlv exec --": {"dlv", "exec", "--"}, `a 'b c' "d e"`: {"a", "b c", "d e"},
		`a\ b "\"" '' c'd'e`: {"a b", `"`, "", "cde"}, `'\'`: {`\`},
	} {
		got, err := splitWords(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got, in)
	}
	for _, bad := range []string{`'`, `a "b`, `\`} {
		_, err := splitWords(bad)
		require.Error(t, err, bad)
	}
}

func TestOutputFlags(t *testing.T) {
	dir := t.TempDir()
	say := []string{"sh", "-c", "echo rank $PGAS_RANK $IN"}
	out, errs, code := call(t, append([]string{"-n", "3", "--prefix", "%r> ", "--only", "0,2", "--wrap", "2:env IN='a debugger'"}, say...)...)
	require.Zero(t, code, errs)
	require.ElementsMatch(t, []string{"0> rank 0", "rank 2 a debugger"}, strings.FieldsFunc(out, func(r rune) bool { return r == '\n' }), "a wrapped rank is shown as it comes")
	out, errs, code = call(t, append([]string{"-n", "2", "-o", filepath.Join(dir, "out.%r")}, say...)...)
	require.Zero(t, code, errs)
	require.Empty(t, out)
	found, err := filepath.Glob(filepath.Join(dir, "out.*"))
	require.NoError(t, err)
	require.Len(t, found, 2)
	out, _, code = call(t, append([]string{"-n", "1", "--dry-run", "--wrap", "all:dlv exec --"}, say...)...)
	require.Zero(t, code)
	require.Contains(t, out, "dlv exec -- sh -c")
	_, errs, code = call(t, "--bind-to", "core", "--report-bindings", "true")
	require.Zero(t, code)
	require.Contains(t, errs, "is bound to processors ")
}
