package pgas_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
)

// abortCode tells a process that it is a rank alone, which aborts with that code.
const abortCode = "PGAS_TEST_ABORT"

// TestAbortAlone: a rank that no launcher has started says itself why it aborts, and no failure ends with the code of a success.
func TestAbortAlone(t *testing.T) {
	if code, err := strconv.Atoi(os.Getenv(abortCode)); err == nil {
		w, err := pgas.Init(t.Context(), nil)
		require.NoError(t, err)
		w.Abort(code, os.Getenv(abortCode+"_WHY"))
	}
	self, err := os.Executable()
	require.NoError(t, err)
	for _, c := range []struct {
		code, want int
		why, said  string
	}{
		{7, 7, "no luck", "pgas: rank 0: aborted the job with code 7: no luck\n"},
		{255, 255, "", "pgas: rank 0: aborted the job with code 255\n"},
		{0, 0, "all is found", "pgas: rank 0: aborted the job with code 0: all is found\n"},
		{256, 1, "no luck", "pgas: rank 0: aborted the job with code 1: no luck\n"},
		{-512, 1, "no luck", "pgas: rank 0: aborted the job with code 1: no luck\n"},
	} {
		cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestAbortAlone$")
		cmd.Env = append(os.Environ(), abortCode+"="+strconv.Itoa(c.code), abortCode+"_WHY="+c.why)
		out, _ := cmd.CombinedOutput()
		require.Equal(t, c.want, cmd.ProcessState.ExitCode(), "code %d: %s", c.code, out)
		require.Equal(t, c.said, string(out), "code %d", c.code)
	}
}

// TestCloseAfterFail: who closes a world that has failed learns why it did.
func TestCloseAfterFail(t *testing.T) {
	why := errors.New("the file is not there")
	errs := pgastest.Errors(t, 1, pgastest.Config{}, func(_ context.Context, w *pgas.World) error {
		w.Fail(why)
		return nil // and the world is closed
	})
	require.ErrorIs(t, errs[0], pgas.ErrClosed)
	require.ErrorIs(t, errs[0], why)
}
