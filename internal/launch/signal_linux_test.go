package launch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// live is a job that runs while the test sends it signals.
type live struct {
	signals  chan os.Signal
	out, err buffer
	done     chan struct{}
	res      Result
}

func begin(t *testing.T, s Spec, part ...string) *live {
	t.Helper()
	l := &live{signals: make(chan os.Signal, 4), done: make(chan struct{})}
	s.Signals, s.Stdout, s.Stderr = l.signals, &l.out, &l.err
	if s.Argv == nil {
		s.Argv = append([]string{program}, part...)
	}
	if s.Env == nil {
		s.Env = os.Environ()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	go func() {
		defer close(l.done)
		defer cancel()
		var err error
		if l.res, err = Run(ctx, s); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-l.done })
	return l
}

func (l *live) wait(t *testing.T) Result {
	t.Helper()
	select {
	case <-l.done:
	case <-time.After(20 * time.Second):
		t.Fatalf("the job does not end:\n%s%s", l.out.String(), l.err.String())
	}
	requireNothingLeft(t, l.res)
	return l.res
}

func TestSignalsAreForwarded(t *testing.T) {
	l := begin(t, Spec{N: 2, Grace: time.Minute}, "signals")
	l.out.await(t, "ready", 2)
	for _, sig := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGHUP, syscall.SIGINT} {
		l.signals <- sig
		l.out.await(t, sig.String(), 2)
	}
	l.signals <- syscall.SIGTERM // the second of INT and TERM kills
	require.Equal(t, 128+15, l.wait(t).Code)
	require.Contains(t, l.err.String(), "second SIGTERM: killing all ranks")

	l = begin(t, Spec{N: 2, Grace: time.Minute}, "signals")
	l.out.await(t, "ready", 2)
	l.signals <- syscall.SIGTERM
	require.Zero(t, l.wait(t).Code, "ranks that end well on TERM ended well")
}

func TestInterrupt(t *testing.T) {
	l := begin(t, Spec{N: 2}, "sleep")
	l.out.await(t, "sleeping", 2)
	l.signals <- syscall.SIGINT
	// A Go program dies of SIGINT by the signal itself.
	require.Equal(t, 130, l.wait(t).Code)
	require.Equal(t, 1, strings.Count(l.err.String(), "pgasrun: "), l.err.String())
	require.Contains(t, l.err.String(), "SIGINT, which the launcher received")
}

func TestSecondInterruptKills(t *testing.T) {
	l := begin(t, Spec{N: 2, Grace: time.Hour}, "stubborn")
	l.out.await(t, "sleeping", 2)
	l.signals <- syscall.SIGINT
	l.signals <- syscall.SIGINT
	require.Equal(t, 130, l.wait(t).Code)
}

func TestTermKillsAfterTheGrace(t *testing.T) {
	l := begin(t, Spec{N: 2, Grace: 200 * time.Millisecond}, "stubborn")
	l.out.await(t, "sleeping", 2)
	l.signals <- syscall.SIGTERM // one is enough
	r := l.wait(t)
	require.Equal(t, 143, r.Code)
	for _, e := range r.Ranks {
		require.EqualValues(t, syscall.SIGKILL, e.Signal)
	}
	require.Contains(t, l.err.String(), "did not end within 0.20 s of SIGTERM")
}

// outOfTime runs a job that never ends, with a limit that doubles until its ranks have had the time to begin: until all these patterns are in its report.
func outOfTime(t *testing.T, s Spec, begun []string, part ...string) outcome {
	t.Helper()
	s.Grace = time.Minute // to print stacks
	for s.Timeout = 300 * time.Millisecond; ; s.Timeout *= 2 {
		r := run(t, s, part...)
		require.Equal(t, CodeTimeout, r.Code, r.err)
		if !slices.ContainsFunc(begun, func(p string) bool { return !regexp.MustCompile(p).MatchString(r.err) }) {
			require.Contains(t, r.err, fmt.Sprintf("pgasrun: the job still ran after %.2f s, its time limit: ending it\n", s.Timeout.Seconds()))
			return r
		}
		require.Less(t, s.Timeout, 30*time.Second, "%v: not all have begun, or are not told of\n%s", begun, r.err)
	}
}

func TestHangReportOnTimeout(t *testing.T) {
	r := outOfTime(t, Spec{N: 3}, []string{
		`(?m)^0 +\d+ +running +nothing: it computes`, `(?m)^goroutine 1 .*sleep`,
		`(?m)^1 +\d+ +running +barrier +rank 0 +1\.50 s +main\.go:31$`, `(?m)^2 +\d+ +running +barrier +rank 0 +1\.50 s +main\.go:31$`,
	}, "hang")
	require.Contains(t, r.err, "(the time limit): 3 of 3 ranks run\n")
	require.Regexp(t, `(?m)^rank  pid +state +waits in +for +since +called at$`, r.err)
}

// TestStacksOnTimeout: a Go rank that told of no wait prints its stacks before it ends; one that waits, and what is not Go, hears TERM as ever.
func TestStacksOnTimeout(t *testing.T) {
	const script = `case $PGAS_RANK in
		0|1) exec "$0" spin;;
		2) trap 'echo saved; exit 0' TERM;;
		3) trap 'echo saved; exit 0' TERM; trap 'echo asked' QUIT;;
		4) "$0" sleep & trap 'echo saved; exit 0' TERM;;
	esac
	echo ready
	sleep 1000 & wait`
	var r outcome
	waits := regexp.MustCompile(`(?m)^1 +\d+ +running +barrier`)
	for limit := 300 * time.Millisecond; !strings.Contains(r.out, "spinning") || strings.Count(r.out, "ready") < 3 || !waits.MatchString(r.err); limit *= 2 {
		require.Less(t, limit, time.Minute, "not all had the time to begin")
		r = run(t, Spec{N: 5, Timeout: limit, Prefix: "%r: ", Grace: time.Minute, Argv: []string{"sh", "-c", script, program}})
		require.Equal(t, CodeTimeout, r.Code)
	}
	require.Regexp(t, `(?m)^0: SIGQUIT: quit$`, r.err)
	require.Regexp(t, `(?m)^0: main\.spin\(`, r.err)
	require.Equal(t, 2, r.Ranks[0].Exit, "as Go ends after its stacks")
	require.Equal(t, 1, strings.Count(r.err, "SIGQUIT"), "rank 1 told of its wait, the others are not Go")
	require.Equal(t, 3, strings.Count(r.out, "saved\n"))
	require.NotContains(t, r.out, "asked")
}

// TestWarningOfAStandstill: when all ranks wait, and have waited long enough, one line says so, and the job goes on.
func TestWarningOfAStandstill(t *testing.T) {
	l := begin(t, Spec{N: 3, WarnAfter: 200 * time.Millisecond}, "wait")
	l.err.await(t, "all ranks have waited for 200ms: rank 0 in signal for rank 1 at main.go:7; ranks 1-2 in barrier for rank 0 at main.go:31\n", 1)
	l.signals <- syscall.SIGQUIT // the job goes on
	l.err.await(t, "hang report", 1)
	l.signals <- syscall.SIGTERM
	require.Equal(t, 143, l.wait(t).Code)
	require.Equal(t, 1, strings.Count(l.err.String(), "all ranks"))
}

func TestHangReportOnQuit(t *testing.T) {
	l := begin(t, Spec{N: 2}, "deaf")
	l.out.await(t, "deaf", 2)
	l.signals <- syscall.SIGQUIT
	l.err.await(t, "hang report", 1)
	require.Regexp(t, `(?m)^1 +\d+ +running +no answer: (sleeping|computing).* s of CPU used$`, l.err.String())
	select {
	case <-l.done:
		t.Fatal("the first QUIT ended the job")
	default:
	}
	l.signals <- syscall.SIGQUIT
	require.Equal(t, 2, l.wait(t).Code, "a Go program ends with 2 after its stacks")
	require.Contains(t, l.err.String(), "SIGQUIT: quit")
	require.Contains(t, l.err.String(), "goroutine ")
}

func TestHangReportOfEndedRanks(t *testing.T) {
	l := begin(t, Spec{N: 2, NoKill: true}, "die", "1", "9")
	l.err.await(t, "SIGKILL", 1)
	l.signals <- syscall.SIGQUIT
	l.err.await(t, "hang report", 1)
	require.Regexp(t, `(?m)^1 +\d+ +ended +was killed by SIGKILL after `, l.err.String())
	require.Contains(t, l.err.String(), "1 of 2 ranks run")
	l.signals <- syscall.SIGTERM
	require.Equal(t, 137, l.wait(t).Code, "the first failure decides")
}

// TestNothingIsLeftWhenTheLauncherIsKilled starts a launcher as a process of its own, whose ranks are once programs and once
// shells with a child, kills it with -9, and looks for the processes.
func TestNothingIsLeftWhenTheLauncherIsKilled(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for name, argv := range map[string][]string{
		"programs": {program, "stubborn"},
		"shells":   {"sh", "-c", program + " stubborn; true"},
	} {
		t.Run(name, func(t *testing.T) {
			scratch := t.TempDir() + "/scratch"
			require.NoError(t, os.Mkdir(scratch, 0o700))
			var out buffer
			cmd := exec.Command(self, argv...)
			cmd.Env = append(os.Environ(), "LAUNCH_TEST_LAUNCHER=1", "LAUNCH_TEST_SCRATCH="+scratch)
			cmd.Stdout = &out
			require.NoError(t, cmd.Start())
			out.await(t, "sleeping", 2)
			pids := pidsIn(t, out.String())
			require.Len(t, pids, 2)
			for _, pid := range pids {
				require.True(t, alive(pid))
			}
			require.NoError(t, cmd.Process.Kill())
			_ = cmd.Wait()
			require.Eventually(t, func() bool { return !alive(pids[0]) && !alive(pids[1]) }, 30*time.Second, 5*time.Millisecond)
			require.Eventually(t, func() bool { _, err := os.Stat(scratch); return os.IsNotExist(err) }, 30*time.Second, 5*time.Millisecond)
		})
	}
}

func TestChildrenLeftBehindAreEnded(t *testing.T) {
	for name, script := range map[string]string{
		"with our pipes":    `sleep 1000 & echo left`,
		"without our pipes": `sleep 1000 >/dev/null 2>&1 </dev/null & echo left`,
		"that ignore TERM":  `trap "" TERM; sleep 1000 & echo left`,
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, Spec{N: 2, Grace: 200 * time.Millisecond, Argv: []string{"sh", "-c", script}})
			require.Zero(t, r.Code)
			require.Equal(t, "left\nleft\n", r.out)
			require.Less(t, r.took, 30*time.Second, "who was left behind was waited for")
		})
	}
}
