package launch

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestJobsThatLackDescriptors: whatever a job has no descriptor for, it keeps none, and says what is short.
func TestJobsThatLackDescriptors(t *testing.T) {
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(entries)
	}
	var most unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &most))
	in, err := os.Open("/dev/zero")
	require.NoError(t, err)
	defer in.Close()
	for name, hosts := range map[string][]Host{"here": nil, "there": {{Name: "a", Ranks: 2, Agent: agentCommand()}}} {
		before, started := open(), false
		for more := 0; !started; more++ {
			var out, errs buffer
			few := most
			few.Cur = uint64(before + more)
			require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &few))
			_, err := Run(t.Context(), Spec{
				N: 2, Hosts: hosts, Argv: []string{"true"}, Env: os.Environ(), Output: t.TempDir() + "/%r", Stdin: in, StdinTo: StdinAll, Stdout: &out, Stderr: &errs,
			})
			require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &most))
			if started = err == nil; !started {
				require.Regexp(t, "(output of rank|ranks' standard input|raise the limit)", err.Error(), "%s, %d more", name, more)
			}
			require.Eventually(t, func() bool { return open() <= before }, 20*time.Second, time.Millisecond, "%s, %d more: %v", name, more, err)
		}
	}
}
