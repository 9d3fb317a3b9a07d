package crew

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lone has this program end its first thread and live on in the others.
const lone = "CREW_TEST_LONE"

func init() {
	if os.Getenv(lone) != "" { // on the first thread, as all of init
		go func() { time.Sleep(time.Minute) }()
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
	}
}

// TestDescribeWithoutFirstThread: a process is not called ended while a thread of it has not.
func TestDescribeWithoutFirstThread(t *testing.T) {
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), lone+"=1")
	require.NoError(t, c.Start())
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(c.Process.Pid) + "/stat")
		state, _, ok := parseStat(stat)
		return err == nil && ok && state == 'Z'
	}, 10*time.Second, time.Millisecond)
	require.Contains(t, describe(c.Process.Pid), "ended but for a thread, ")
	require.NoError(t, c.Process.Kill())
	_ = c.Wait()
}

func TestParseStat(t *testing.T) {
	state, ticks, ok := parseStat([]byte("12 (a) b ) (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15"))
	require.True(t, ok)
	require.EqualValues(t, 'S', state)
	require.EqualValues(t, 11+12, ticks)
	for _, bad := range []string{"", "12", "12 (a)", "12 (a) S 1 2", "1 (a) SS 1 2 3 4 5 6 7 8 9 10 11 12 13", "1 (a) S 1 2 3 4 5 6 7 8 9 10 x y 13"} {
		_, _, ok := parseStat([]byte(bad))
		require.False(t, ok, bad)
	}
}

func TestCatches(t *testing.T) {
	const status = "Name:\tx\nSigIgn:\t0000000000000004\nSigCgt:\tfffffffd7fc1fefb\n"
	require.False(t, catches([]byte(status), syscall.SIGQUIT))
	require.True(t, catches([]byte(status), syscall.SIGINT))
	require.True(t, catches([]byte("SigCgt:\t0000000000000004\n"), syscall.SIGQUIT))
	require.False(t, catches([]byte("Name:\tx\n"), syscall.SIGQUIT))
	require.False(t, catches([]byte("SigCgt:\t?\n"), syscall.SIGQUIT))
}

func TestShowsStacks(t *testing.T) {
	require.True(t, showsStacks(os.Getpid()))
	require.False(t, showsStacks(0))
}
