package main

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSuspend: Ctrl-Z, which the terminal tells pgasrun alone, stops the ranks of all hosts and then pgasrun; what continues it continues them.
func TestSuspend(t *testing.T) {
	for name, flags := range map[string][]string{
		"one host":  {"-n", "2"},
		"two hosts": {"-H", "a,b", "--launcher", "fork"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs locked
			cmd := exec.Command(pgasrun, append(flags, "sh", "-c", `echo "up $$"; exec sleep 100`)...)
			cmd.Stdout, cmd.Stderr = &out, &errs
			require.NoError(t, cmd.Start())
			up := regexp.MustCompile(`up (\d+)\n`)
			require.Eventually(t, func() bool { return len(up.FindAllString(out.String(), -1)) == 2 }, 30*time.Second, time.Millisecond, &errs)
			all := []int{cmd.Process.Pid}
			for _, m := range up.FindAllStringSubmatch(out.String(), -1) {
				pid, err := strconv.Atoi(m[1])
				require.NoError(t, err)
				all = append(all, pid)
			}
			for range 2 {
				require.NoError(t, cmd.Process.Signal(syscall.SIGTSTP))
				require.Eventually(t, func() bool { return stopped(t, all) == len(all) }, 30*time.Second, time.Millisecond, "all stop")
				require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
				require.Eventually(t, func() bool { return stopped(t, all) == 0 }, 30*time.Second, time.Millisecond, "all go on")
			}
			require.NoError(t, cmd.Process.Signal(os.Interrupt))
			_ = cmd.Wait()
			require.Equal(t, 130, cmd.ProcessState.ExitCode(), errs.String())
		})
	}
}

// TestInterruptOfInfo: only jobs have something to tidy up. All else is ended by Ctrl-C as any program.
func TestInterruptOfInfo(t *testing.T) {
	r, w, err := os.Pipe() // which nobody reads, and which is full: it does not end by itself
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	require.NoError(t, w.SetWriteDeadline(time.Now().Add(10*time.Millisecond)))
	for err == nil {
		_, err = w.Write(make([]byte, 1))
	}
	cmd := exec.Command(pgasrun, "info")
	cmd.Stdout = w
	require.NoError(t, cmd.Start())
	time.Sleep(100 * time.Millisecond) // wherever it is by then
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-time.After(10 * time.Second):
		_ = cmd.Process.Kill()
		t.Fatal("pgasrun info goes on")
	}
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.Equal(t, syscall.SIGINT, status.Signal(), "%v", err)
}

// stopped counts the processes that a signal has stopped.
func stopped(t *testing.T, pids []int) (n int) {
	t.Helper()
	for _, pid := range pids {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		require.NoError(t, err)
		_, after, _ := strings.Cut(string(stat), ") ")
		if strings.HasPrefix(after, "T") {
			n++
		}
	}
	return n
}
