package launch

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/test/debtest"
)

// TestMPICH starts a real MPI program of another implementation's PMI-1 client.
func TestMPICH(t *testing.T) {
	cc := debtest.Need(t, "mpicc.mpich", "mpich", "libmpich-dev", "gcc", "libc6-dev")
	prog := filepath.Join(t.TempDir(), "mpi")
	out, err := exec.CommandContext(t.Context(), cc, "-o", prog, "testdata/mpi.c").CombinedOutput()
	require.NoError(t, err, "%s", out)

	t.Run("runs", func(t *testing.T) {
		r := run(t, Spec{N: 4, Argv: []string{prog}})
		require.Zero(t, r.Code, r.err)
		for _, line := range []string{
			"rank 0 of 4: token 4, sum 6\n", "rank 1 of 4: token 2, sum 6\n", "rank 2 of 4: token 3, sum 6\n", "rank 3 of 4: token 4, sum 6\n",
		} {
			require.Contains(t, r.out, line)
		}
	})
	t.Run("aborts", func(t *testing.T) {
		r := run(t, Spec{N: 4, Argv: []string{prog, "abort"}})
		require.Equal(t, 7, r.Code, r.err)
		require.Contains(t, r.Cause, "rank 3 on ")
		require.Contains(t, r.Cause, "aborted the job with code 7")
		require.Less(t, r.took, 10*time.Second)
	})
	t.Run("dies", func(t *testing.T) {
		r := run(t, Spec{N: 4, Argv: []string{prog, "die"}})
		require.Equal(t, 139, r.Code, r.err)
		require.Contains(t, r.Cause, "was killed by SIGSEGV")
	})
}
