package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestForeignFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		text string
	}{
		{[]string{"-w", "a,b", "true"}, "there is no flag -w: hosts are named with -H a:2,b or --hostfile FILE"},
		{[]string{"-f", "hosts", "-n", "4", "true"}, "there is no flag -f: hosts are named with"},
		{[]string{"-n", "4", "-perhost", "2", "true"}, "there is no flag -perhost: -n is the number of all ranks, --ppn that of each host"},
		{[]string{"-n", "4", "--map-by", "node", "true"}, "--bind-to core"},
		{[]string{"--oversubscribe", "-n", "4", "true"}, "there is no flag -oversubscribe: none is needed: there may be more ranks than cores"},
		{[]string{"-genv", "A", "1", "true"}, "-x VAR=VALUE sets one more variable"},
		{[]string{"--mca", "btl", "tcp,self", "true"}, "-x PGAS_TRANSPORT=tcp"},
		{[]string{"--iface", "eth0", "true"}, "PGAS_DEVICE"},
		{[]string{"--heap", "1G", "true"}, "the heap grows"},
		{[]string{"--backtrace", "true"}, "--timeout TIME"},
		{[]string{"-bootstrap", "ssh", "true"}, "--launcher ssh, fork or srun"},
		{[]string{"-W", "5", "true"}, "--grace TIME"},
		{[]string{"-s", "all", "true"}, "--stdin: a rank, all or none; the program's own flags belong after its name"},
		{[]string{"-rows", "7", "true"}, "there is no flag -rows; the program's own flags belong after its name"},
	} {
		out, errs, code := call(t, c.args...)
		require.Contains(t, errs, c.text, "%v", c.args)
		require.Equal(t, 1, strings.Count(errs, "\n"), "one sentence: %s", errs)
		require.Equal(t, codeUsage, code, "%v", c.args)
		require.Empty(t, out)
	}
}

// TestForeignFlagsAreForeign: nothing is called foreign that pgasrun has, no name has two answers, and the flags and variables that answers
// name are there.
func TestForeignFlagsAreForeign(t *testing.T) {
	ours, seen := map[string]bool{"h": true, "help": true}, map[string]bool{}
	for _, f := range flags() {
		for _, name := range f.Names() {
			ours[name] = true
		}
	}
	info, _, code := call(t, "info")
	require.Zero(t, code)
	for _, f := range foreignFlags {
		for name := range strings.FieldsSeq(f.names) {
			require.False(t, ours[name], "-%s is a flag of pgasrun", name)
			require.False(t, seen[name], "-%s is there twice", name)
			seen[name] = true
		}
		for word := range strings.FieldsFuncSeq(f.instead, func(r rune) bool { return strings.ContainsRune(" ,;:='()", r) }) {
			if name, ok := strings.CutPrefix(word, "PGAS_"); ok && name != "" && name != "RANK" {
				require.Contains(t, info, word)
			}
			if name := strings.TrimLeft(word, "-"); name != word && name != "" && name != "mpi" && !strings.Contains("mpi c i m", name) { // of srun, sh, env and go
				require.True(t, ours[name], "%s: an answer names %s, which is not there", f.names, word)
			}
		}
	}
	require.Greater(t, len(seen), 80)
}
