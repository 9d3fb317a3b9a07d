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
