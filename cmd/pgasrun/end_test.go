package main

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRanksSaveWhatTheyHave: of a signal that goes to all ranks the first to end does not cut short what the others do at their end.
func TestRanksSaveWhatTheyHave(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			var out, errs locked
			cmd := exec.Command(pgasrun, "-n", "3", "--grace", "30s", traffic, "save")
			cmd.Stdout, cmd.Stderr = &out, &errs
			require.NoError(t, cmd.Start())
			require.Eventually(t, func() bool { return strings.Count(out.String(), "up") == 3 }, 30*time.Second, time.Millisecond)
			require.NoError(t, cmd.Process.Signal(sig))
			_ = cmd.Wait()
			require.Equal(t, 128+int(sig), cmd.ProcessState.ExitCode(), errs.String())
			require.Equal(t, 3, strings.Count(out.String(), "saved"), "%s%s", out.String(), errs.String())
		})
	}
}

// TestInTheBackground: a job whose shell has put it into the background runs, although its standard input is the terminal, and reads when it is in front.
func TestInTheBackground(t *testing.T) {
	cmd := exec.Command("script", "-qec", `sh -c 'set -m; "$0" -n 2 "$1" stdin & read -r go; fg >/dev/null' `+pgasrun+" "+rank, "/dev/null")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	var out locked
	cmd.Stdout = &out
	require.NoError(t, cmd.Start())
	defer in.Close() // which ends all
	require.Eventually(t, func() bool { return strings.Contains(out.String(), `1 read ""`) }, 10*time.Second, 5*time.Millisecond, "it was stopped")
	_, err = in.Write([]byte("go\ntyped\n\x04"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return strings.Contains(out.String(), `0 read "typed\n"`) }, 10*time.Second, 5*time.Millisecond, &out)
	require.NoError(t, cmd.Wait())
}
