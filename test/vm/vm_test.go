package vm

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMachine looks at all that a command sees of a machine in one boot.
func TestMachine(t *testing.T) {
	share, outside := t.TempDir(), t.TempDir()
	t.Setenv("VM_TEST_WORD", "handed on")
	r := Run(t, Machine{Share: share, Env: []string{"VM_TEST_WORD"}}, "sh", "-c", `
		echo "$VM_TEST_WORD"; pwd; ulimit -l; cat /sys/class/infiniband/rxe0/ports/1/state
		echo to stderr >&2
		echo shared >"$1/file"; echo lost >"$2/file" || exit 9
		(sleep 1000 &) # left behind: nobody waits for it
		exit 42`, "sh", share, outside)
	require.Equal(t, 42, r.Code)
	here, err := os.Getwd()
	require.NoError(t, err)
	require.Equal(t, "handed on\n"+here+"\nunlimited\n4: ACTIVE\n", r.Stdout)
	require.Equal(t, "to stderr\n", r.Stderr)
	text, err := os.ReadFile(filepath.Join(share, "file"))
	require.NoError(t, err)
	require.Equal(t, "shared\n", string(text))
	require.NoFileExists(t, filepath.Join(outside, "file"), "V1: a write outside the share came through")
}

// TestTimeout has the script end a machine whose command does not.
func TestTimeout(t *testing.T) {
	need(t)
	var out, err bytes.Buffer
	code, e := run(t.Context(), &out, &err, []string{filepath.Join(unpack(t), "run.sh"), "--timeout", "1", "--", "sleep", "1000"})
	require.NoError(t, e)
	require.Equal(t, codeTimeout, code)
	require.Contains(t, err.String(), "no end within 1 s")
}

func TestOptions(t *testing.T) {
	require.Equal(t, []string{"--timeout", "60"}, Machine{}.options(time.Minute))
	require.Equal(t, []string{"--timeout", "5", "--nics", "pair", "--cpus", "4", "--mem", "512", "--share", "/s", "--env", "A", "--env", "B"},
		Machine{NICs: Pair, CPUs: 4, Memory: 512, Share: "/s", Env: []string{"A", "B"}}.options(5*time.Second))
	require.Equal(t, []string{"--timeout", "1", "--link", "/l", "--node", "0"}, Machine{Link: "/l"}.options(time.Millisecond))
}
