package bootstrap

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/test/debtest"
)

// mpiexec runs this test binary in a role under a real Hydra.
func mpiexec(t *testing.T, as string, args ...string) (string, int) {
	t.Helper()
	hydra := debtest.Need(t, "mpiexec.hydra", "mpich")
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), hydra, append(args, self)...)
	cmd.Env = append(os.Environ(), role+"="+as)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	require.NoError(t, err)
	return fmt.Sprintf("%s%s: %v\n", out, hydra, cmd.ProcessState), cmd.ProcessState.ExitCode()
}

func TestUnderHydra(t *testing.T) {
	for name, args := range map[string][]string{
		"inherited socket": {"-n", "4"},
		"port":             {"-pmi-port", "-n", "4"},
		"two proxies":      {"-launcher", "fork", "-hosts", "127.0.0.1:2,127.0.0.2:2", "-n", "4"},
	} {
		t.Run(name, func(t *testing.T) {
			out, code := mpiexec(t, "exchange", args...)
			require.Zero(t, code, out)
			lines := regexp.MustCompile(`(?m)^(\d)/4 pmi-1 (\S+) ([0-9a-f]{64})$`).FindAllStringSubmatch(out, -1)
			require.Len(t, lines, 4, out)
			seen := map[string]bool{}
			for _, l := range lines {
				seen[l[1]] = true
				require.Equal(t, lines[0][2:], l[2:], "name and secret are the job's")
			}
			require.Len(t, seen, 4)
		})
	}
}

func TestAbortUnderHydra(t *testing.T) {
	out, code := mpiexec(t, "abort", "-n", "4")
	require.Equal(t, 7, code, out)
}

func TestChildrenOfARankUnderHydra(t *testing.T) {
	out, code := mpiexec(t, "child", "-n", "2")
	require.Zero(t, code, out)
	require.Equal(t, 2, strings.Count(out, "closed"), out)
}

func TestAloneProcess(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), role+"=alone")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintln(0, 1, "alone"), string(out))
}
