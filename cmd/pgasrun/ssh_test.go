package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestJobBySSH: this machine itself needs no ssh; others are reached by the command that PATH has under that name, here one that stays. Go code
// that was built for the job is sent, and is gone afterwards.
func TestJobBySSH(t *testing.T) {
	dir, tmp, mod := t.TempDir(), t.TempDir(), t.TempDir()
	log := filepath.Join(dir, "log")
	fake := "#!/bin/sh\necho \"$*\" >>" + log + "\nfor last; do :; done\nexec sh -c \"$last\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ssh"), []byte(fake), 0o700))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("TMPDIR", tmp)
	own, err := os.Hostname()
	require.NoError(t, err)
	hostfile := filepath.Join(dir, "hosts")
	require.NoError(t, os.WriteFile(hostfile, []byte(own+"\nother slots=2 # by ssh\n"), 0o600))
	call := func(args ...string) (out, errs string, code int) {
		cmd := exec.Command(pgasrun, args...)
		var o, e bytes.Buffer
		cmd.Stdout, cmd.Stderr, cmd.Dir = &o, &e, mod
		_ = cmd.Run()
		return o.String(), e.String(), cmd.ProcessState.ExitCode()
	}

	out, errs, code := call("--hostfile", hostfile, "--prefix", "%h ", "sh", "-c", "echo $PGAS_RANK of $PGAS_SIZE; exit $PGAS_RANK")
	require.Contains(t, []int{1, 2}, code, errs)
	require.Regexp(t, `^pgasrun: rank [12] on other exited with [12] after `, errs)
	require.NotEmpty(t, out)
	for line := range strings.Lines(out) {
		require.Contains(t, []string{own + " 0 of 3\n", "other 1 of 3\n", "other 2 of 3\n"}, line)
	}
	said, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(said), "\n"), "one agent, on the other host: %s", said)
	require.Contains(t, string(said), "-o BatchMode=yes")
	require.Contains(t, string(said), " other "+pgasrun+" --agent\n")

	require.NoError(t, os.WriteFile(filepath.Join(mod, "go.mod"), []byte("module m\n\ngo 1.26\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(mod, "main.go"), []byte("package main\n\nimport \"os\"\n\nfunc main() { println(os.Args[0]) }\n"), 0o644))
	_, errs, code = call("-H", own+",other", ".")
	require.Zero(t, code, errs)
	lines := strings.Fields(errs)
	require.Len(t, lines, 2)
	require.NotEqual(t, lines[0], lines[1], "the other host runs what was sent")
	requireEmpty(t, tmp)

	_, errs, code = call("-H", "other", "./not-here")
	require.Equal(t, codeNotFound, code, errs)
	require.Contains(t, errs, "pgasrun: host other: no such program: there is no file "+mod+"/not-here")
}
