package crew

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Variables of a starter: its scratch folder, and whether it lives as long as it likes.
const (
	envScratch = "CREW_TEST_SCRATCH"
	envHow     = "CREW_TEST_HOW"
)

// What becomes of a starter.
const (
	killed  = "killed"
	untold  = "untold" // killed before the guard has learned of the last rank's group
	content = "content"
)

// stubborn is a rank whose child outlives it, and takes no hint; it prints the child's number.
const stubborn = `trap '' TERM INT HUP; sh -c 'trap "" TERM INT HUP; echo child $$; while :; do sleep 1; done' & wait`

// TestGuard: who is killed as soon as ranks run, before he has told anybody of them, leaves nothing: no children of ranks, no folder. A guard that is
// dismissed does nothing.
func TestGuard(t *testing.T) {
	if how := os.Getenv(envHow); how != "" {
		starter(os.Getenv(envScratch), how)
		return
	}
	for _, how := range []string{killed, untold, content} {
		scratch := filepath.Join(t.TempDir(), "scratch")
		require.NoError(t, os.MkdirAll(filepath.Join(scratch, "full"), 0o755))
		cmd := exec.Command(os.Args[0], "-test.run=^TestGuard$")
		cmd.Env = append(os.Environ(), envScratch+"="+scratch, envHow+"="+how)
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		var children []int
		for lines := bufio.NewScanner(out); len(children) < 2 && lines.Scan(); {
			if text, ok := strings.CutPrefix(lines.Text(), "child "); ok {
				pid, err := strconv.Atoi(text)
				require.NoError(t, err)
				children = append(children, pid)
			}
		}
		require.Len(t, children, 2)
		if how == content {
			require.NoError(t, in.Close())
		} else {
			require.NoError(t, cmd.Process.Kill())
		}
		_ = cmd.Wait()
		require.Eventually(t, func() bool { return gone(children[0]) && gone(children[1]) }, 30*time.Second, time.Millisecond, how)
		if how == content {
			time.Sleep(50 * time.Millisecond)
			require.DirExists(t, scratch)
		} else {
			require.Eventually(t, func() bool { _, err := os.Stat(scratch); return os.IsNotExist(err) }, 30*time.Second, time.Millisecond)
		}
	}
	(*Guard)(nil).Watch(1)
	(*Guard)(nil).Dismiss()
}

// gone reports whether a process has ended.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	state, _, ok := parseStat(stat)
	return err != nil || ok && state == 'Z'
}

// starter starts two ranks, says nothing of them to anybody, and waits until its input ends. Then it dismisses the guard, kills for itself, and ends.
func starter(scratch, how string) {
	job := "guarded-" + strconv.Itoa(os.Getpid())
	var both []*Crew
	guard, err := StartGuard(scratch, job)
	for rank := 0; rank < 2 && err == nil; rank++ {
		tell := guard
		if how == untold && rank == 1 {
			guard.begin(rank)
			tell = nil
		}
		var c *Crew
		p := Plan{Job: job, Size: 2, First: rank, Count: 1, Argv: []string{"/bin/sh", "-c", stubborn}, Env: os.Environ()}
		if c, err = Start(p, func(int) Streams { return Streams{Out: os.Stdout, Err: os.Stderr} }, tell); err == nil {
			both = append(both, c)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = os.Stdin.Read(make([]byte, 1))
	guard.Dismiss()
	for _, c := range both {
		c.Processes()[0].Signal(syscall.SIGKILL)
		c.Reap(func(int) bool { return true })
	}
}
