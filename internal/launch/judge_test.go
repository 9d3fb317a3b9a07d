package launch

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/control"
	"gopgas/internal/pmiserver"
)

// hosts of the ranks in these tests.
var hosts = []string{"h", "h", "h", "h", "h"}

func deeds(acts []action) (d []deed) {
	for _, a := range acts {
		d = append(d, a.do)
	}
	return d
}

func TestJudgeOfEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end    RankEnd
		state  pmiserver.State
		noKill bool
		code   int
		want   []deed
	}{
		"well, no PMI":      {RankEnd{}, pmiserver.Silent, false, 0, nil},
		"well, finalized":   {RankEnd{}, pmiserver.Finalized, false, 0, nil},
		"without finalize":  {RankEnd{}, pmiserver.Begun, false, 1, []deed{tellGone, say, endAll}},
		"code":              {RankEnd{Exit: 3}, pmiserver.Silent, false, 3, []deed{tellGone, say, endAll}},
		"code, finalized":   {RankEnd{Exit: 3}, pmiserver.Finalized, false, 3, []deed{tellGone, say, endAll}},
		"garbled":           {RankEnd{}, pmiserver.Garbled, false, 1, []deed{tellGone, say, endAll}},
		"garbled, killed":   {RankEnd{Signal: syscall.SIGKILL}, pmiserver.Garbled, false, 137, []deed{tellGone, say, endAll}},
		"broken":            {RankEnd{}, pmiserver.Broken, false, 1, []deed{tellGone, say, endAll}},
		"signal":            {RankEnd{Signal: syscall.SIGSEGV}, pmiserver.Begun, false, 139, []deed{tellGone, say, endAll}},
		"code, let be":      {RankEnd{Exit: 3}, pmiserver.Begun, true, 3, []deed{tellGone, say}},
		"signal, let be":    {RankEnd{Signal: 9}, pmiserver.Begun, true, 137, []deed{tellGone, say}},
		"no final., let be": {RankEnd{}, pmiserver.Begun, true, 1, []deed{tellGone, say}},
	} {
		t.Run(name, func(t *testing.T) {
			j := judge{hosts: hosts, noKill: c.noKill}
			require.Equal(t, c.want, deeds(j.rankEnded(c.end, c.state)))
			require.Equal(t, c.code, j.code)
			require.Equal(t, c.code != 0, j.cause != "")
		})
	}
}

func TestJudgeKeepsTheFirst(t *testing.T) {
	j := judge{hosts: hosts}
	j.rankEnded(RankEnd{Rank: 2, Exit: 3}, pmiserver.Silent)
	require.Equal(t, []deed{tellGone}, deeds(j.rankEnded(RankEnd{Rank: 1, Signal: syscall.SIGTERM}, pmiserver.Begun)))
	require.Empty(t, deeds(j.aborted(0, 7, "", 0)))
	require.Empty(t, deeds(j.timedOut([]int{0})))
	require.Empty(t, deeds(j.stopped(errors.New("x"))))
	require.Equal(t, []deed{killAll}, deeds(j.graceOver()))
	require.Empty(t, deeds(j.graceOver()), "once")
	require.Equal(t, 3, j.code)
	require.Equal(t, "rank 2 on h exited with 3 after 0.00 s", j.cause)
}

func TestJudgeOfAbortAndSignals(t *testing.T) {
	j := judge{hosts: hosts, noKill: true}
	require.Equal(t, []deed{say, endAll}, deeds(j.aborted(1, 300, " bad\x1b[31m\nluck", time.Second)), "abort ends also what noKill lets be")
	require.Equal(t, "rank 1 on h aborted the job with code 44 after 1.00 s: bad [31m luck", j.cause)
	require.Equal(t, "bad 31m, caf\u00e9, \ufffd", printable("bad\u009b31m, caf\u00e9, \x9b\u0085"))

	j = judge{hosts: hosts}
	require.Equal(t, []action{{do: forward, sig: syscall.SIGUSR1}}, j.signalled(syscall.SIGUSR1))
	require.Equal(t, []action{{do: forward, sig: syscall.SIGSTOP}, {do: suspendSoon}}, j.signalled(syscall.SIGTSTP))
	require.Equal(t, []action{{do: stayAwake}, {do: forward, sig: syscall.SIGCONT}}, j.signalled(syscall.SIGCONT))
	require.Equal(t, []deed{report}, deeds(j.signalled(syscall.SIGQUIT)))
	require.Equal(t, []action{{do: forward, sig: syscall.SIGQUIT}}, j.signalled(syscall.SIGQUIT))
	require.Equal(t, []deed{forward, remindSoon}, deeds(j.signalled(syscall.SIGINT)))
	require.Equal(t, []deed{say, killAll}, deeds(j.signalled(syscall.SIGTERM)))
	require.Equal(t, 143, j.code)

	j = judge{hosts: hosts, wrapped: map[int]bool{1: true}}
	require.Equal(t, []deed{interrupt}, deeds(j.signalled(syscall.SIGINT)))
	require.Equal(t, []deed{interrupt}, deeds(j.signalled(syscall.SIGINT)), "as often as one likes")
	require.Empty(t, j.rankEnded(RankEnd{Rank: 1}, pmiserver.Silent))
	require.Equal(t, []deed{forward, remindSoon}, deeds(j.signalled(syscall.SIGINT)), "nobody is debugged any more")

	j = judge{hosts: hosts, grace: 2 * time.Second}
	j.signalled(syscall.SIGINT)
	require.Equal(t, []action{{do: say, text: "ranks still run 2.00 s after SIGINT; another one (Ctrl-C) kills them"}}, j.stillRunning())
	require.Equal(t, []deed{tellGone, say, endAll}, deeds(j.rankEnded(RankEnd{Exit: 130}, pmiserver.Begun)))
	require.Equal(t, "ended by SIGINT, which the launcher received and forwarded", j.cause, "of a program that says so by its code")
	require.Equal(t, 130, j.code)
	require.Empty(t, j.stillRunning(), "they are being ended")

	j = judge{hosts: hosts, grace: time.Second}
	require.Equal(t, []action{{do: forward, sig: syscall.SIGTERM}, {do: startGrace}}, j.signalled(syscall.SIGTERM))
	require.Equal(t, []deed{say, killAll}, deeds(j.graceOver()))
	require.Equal(t, 143, j.code)
	require.Contains(t, j.cause, "within 1.00 s of SIGTERM")
	require.Empty(t, deeds(j.graceOver()), "once")

	j = judge{hosts: hosts, grace: time.Second}
	j.signalled(syscall.SIGTERM)
	require.Equal(t, []action{{do: forward, sig: syscall.SIGCONT}}, j.rankEnded(RankEnd{Exit: 143}, pmiserver.Begun)[2:], "the others have had theirs, and the grace runs")
	require.Empty(t, deeds(j.timedOut([]int{1})), "nor are they asked for stacks")
	require.Equal(t, []deed{killAll}, deeds(j.graceOver()))
	require.Equal(t, 143, j.code)

	j = judge{hosts: hosts}
	j.rankEnded(RankEnd{Exit: 3}, pmiserver.Silent)
	require.Equal(t, []deed{forward}, deeds(j.signalled(syscall.SIGTERM)), "the grace of a job that ends already has begun")
	require.Equal(t, []deed{killAll}, deeds(j.graceOver()))
	require.Equal(t, 3, j.code)
}

func TestJudgeOfOutputThatNobodyReads(t *testing.T) {
	j := judge{hosts: hosts, noKill: true}
	require.Equal(t, []deed{say, endAll}, deeds(j.unread()), "whatever becomes of failures")
	require.Empty(t, j.unread(), "once, of both streams")
	require.Equal(t, 141, j.code)

	j = judge{hosts: hosts}
	j.rankEnded(RankEnd{Exit: 3}, pmiserver.Silent)
	require.Empty(t, j.unread())
	require.Equal(t, 3, j.code)
}

func TestJudgeOfTheTimeLimit(t *testing.T) {
	j := judge{hosts: hosts, timeout: time.Second}
	require.Equal(t, []deed{say, endAll}, deeds(j.timedOut(nil)))
	require.Equal(t, []deed{killAll}, deeds(j.graceOver()))

	j = judge{hosts: hosts, timeout: time.Second, wrapped: map[int]bool{2: true}}
	acts := j.timedOut([]int{1, 2, 3})
	require.Equal(t, []deed{say, endAll, askStacks, askStacks}, deeds(acts), "not of a rank under a debugger")
	require.Equal(t, []int{1, 3}, []int{acts[2].rank, acts[3].rank})
	require.Equal(t, map[int]bool{1: true, 3: true}, j.asked)
	require.Equal(t, []deed{tellGone}, deeds(j.rankEnded(RankEnd{Rank: 1, Exit: 2}, pmiserver.Begun)))
	require.Equal(t, []deed{endAll}, deeds(j.graceOver()), "rank 3 did not end of QUIT")
	require.Empty(t, j.asked, "SIGTERM goes to all now")
	require.Equal(t, []deed{killAll}, deeds(j.graceOver()))
	require.Equal(t, CodeTimeout, j.code)

	j = judge{hosts: hosts, timeout: time.Second}
	j.timedOut([]int{1})
	j.rankEnded(RankEnd{Rank: 1, Exit: 2}, pmiserver.Begun)
	require.Equal(t, []deed{killAll}, deeds(j.graceOver()), "all that were asked have ended")
}

func TestHangReportTable(t *testing.T) {
	got := hangReport("why", 12345*time.Millisecond, []suspect{
		{rank: 0, pid: 100, answered: true, waits: []control.Wait{
			{Op: "lock", Peer: 3, Since: 11 * time.Second, Where: "a.go:7", Detail: "held by rank 1"},
			{Op: "barrier", Peer: -1, Since: time.Second},
			{Op: "wait-until", Peer: -2, Since: time.Second},
		}},
		{rank: 1, pid: 101, ended: "exited with 0 after 1.00 s"},
		{rank: 2, pid: 102, answered: true},
		{rank: 10, pid: 110, seen: "stopped, 0.10 s of CPU used"},
	})
	require.Equal(t, `pgasrun: hang report after 12.3 s (why): 3 of 4 ranks run
rank  pid  state    waits in               for     since   called at
0     100  running  lock (held by rank 1)  rank 3  11.0 s  a.go:7
                    barrier                all     1.00 s
                    wait-until             anyone  1.00 s
1     101  ended    exited with 0 after 1.00 s
2     102  running  nothing: it computes, or waits outside of the library
10    110  running  no answer: stopped, 0.10 s of CPU used
`, got)
}
