package launch

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/control"
	"gopgas/internal/crew"
)

// agentCommand starts this test binary as an agent: a host that is this machine.
func agentCommand() []string {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return []string{"env", "LAUNCH_TEST_AGENT=1", self}
}

// threeHosts are this machine with one rank, b with two and c with one.
func threeHosts() []Host {
	return []Host{{Ranks: 1}, {Name: "b", Ranks: 2, Agent: agentCommand()}, {Name: "c", Ranks: 1, Agent: agentCommand()}}
}

func TestHelloFromSeveralHosts(t *testing.T) {
	r := run(t, Spec{N: 4, Hosts: threeHosts(), Prefix: "%h:", Stats: true}, "hello")
	require.Zero(t, r.Code, r.err)
	require.Empty(t, r.err)
	own, err := os.Hostname()
	require.NoError(t, err)
	lines := regexp.MustCompile(`(?m)^(\S+):rank (\d) of 4 under pgasrun in (\S+) has 4 cards and ([0-9a-f]{64})$`).FindAllStringSubmatch(r.out, -1)
	require.Len(t, lines, 4, r.out)
	for _, l := range lines {
		require.Equal(t, map[string]string{"0": own, "1": "b", "2": "b", "3": "c"}[l[2]], l[1])
		require.Equal(t, lines[0][3:], l[3:], "one job, one secret")
	}
	for rank, e := range r.Ranks {
		require.Equal(t, []string{own, "b", "b", "c"}[rank], e.Host)
		require.Positive(t, e.MaxRSS)
	}
	require.Len(t, run(t, Spec{N: 4, Hosts: threeHosts(), Stats: true}, "stats").Stats, 4)
}

func TestFailuresOnOtherHosts(t *testing.T) {
	for name, c := range map[string]struct {
		part []string
		code int
		text string
	}{
		"exits with 3":     {[]string{"exit", "2", "3"}, 3, "rank 2 on b exited with 3 after "},
		"killed -9":        {[]string{"die", "3", "9"}, 137, "rank 3 on c was killed by SIGKILL after "},
		"abort":            {[]string{"abort", "1", "7"}, 7, "rank 1 on b aborted the job with code 7 after "},
		"leaves, no adieu": {[]string{"quit", "3"}, 1, "rank 3 on c exited with 0 without leaving the job"},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, Spec{N: 4, Hosts: threeHosts()}, c.part...)
			require.Equal(t, c.code, r.Code, r.err)
			require.Contains(t, r.Cause, c.text)
			require.Equal(t, 1, strings.Count(r.err, "pgasrun: "), r.err)
		})
	}
	r := run(t, Spec{N: 3, Hosts: []Host{{Name: "b", Ranks: 2, Agent: agentCommand()}, {Name: "c", Ranks: 1, Agent: agentCommand()}}, NoKill: true}, "survive")
	require.Equal(t, 5, r.Code, "%s%s", r.out, r.err)
	require.Equal(t, 2, strings.Count(r.out, "told: 1 exited with 5\n"), r.out)
}

func TestInputAndOutputOfOtherHosts(t *testing.T) {
	text := strings.Repeat("a line that is not short\n", 20_000) // several windows
	in := func() *os.File {
		name := t.TempDir() + "/in"
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		f, err := os.Open(name)
		require.NoError(t, err)
		t.Cleanup(func() { f.Close() })
		return f
	}
	r := run(t, Spec{N: 4, Hosts: threeHosts(), Argv: []string{"cat"}, Stdin: in(), StdinTo: StdinAll, Only: []int{1, 3}})
	require.Zero(t, r.Code, r.err)
	require.Equal(t, 2*len(text), len(r.out))
	r = run(t, Spec{N: 4, Hosts: threeHosts(), Argv: []string{"sh", "-c", "wc -c; printf partial"}, Stdin: in(), StdinTo: 3, Label: true})
	require.Zero(t, r.Code, r.err)
	require.Contains(t, r.out, "3: 500000\n")
	require.Equal(t, 3, strings.Count(r.out, ": 0\n"))
	require.Equal(t, 4, strings.Count(r.out, ": partial\n"), "a last line gets its end")
	r = run(t, Spec{N: 4, Hosts: threeHosts(), Argv: []string{"true"}, Stdin: in(), StdinTo: 3}) // nobody reads it
	require.Zero(t, r.Code, r.err)
}

// TestFilesOfOtherHosts: what ranks write to the folder that they are told of is here in the end, and the clocks of their hosts are known.
func TestFilesOfOtherHosts(t *testing.T) {
	dir := t.TempDir()
	r := run(t, Spec{N: 4, Hosts: threeHosts(), Folder: dir, FolderEnv: "LEFT", Argv: []string{"sh", "-c", "echo $PGAS_RANK >$LEFT/of.$PGAS_RANK; echo $LEFT"}})
	require.Zero(t, r.Code, r.err)
	require.Empty(t, r.err)
	require.Equal(t, 1, strings.Count(r.out, dir+"\n"))
	for rank := range 4 {
		b, err := os.ReadFile(dir + "/of." + strconv.Itoa(rank))
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(rank)+"\n", string(b))
		require.Len(t, r.Ranks[rank].Clock.Readings, []int{0, 2, 2, 2}[rank])
	}
	// A host that is lost leaves nothing; the others' files are there. It is lost when a line has come, that is, when all ranks have been started, and
	// the others have written theirs.
	lost, written, in := t.TempDir(), t.TempDir(), t.TempDir()+"/in"
	require.NoError(t, os.WriteFile(in, []byte("now\n"), 0o600))
	line, err := os.Open(in)
	require.NoError(t, err)
	t.Cleanup(func() { line.Close() })
	r = run(t, Spec{
		N: 4, Hosts: threeHosts(), Folder: lost, FolderEnv: "LEFT", Stdin: line, StdinTo: 3,
		Argv: []string{"sh", "-c", `echo x >$LEFT/of.$PGAS_RANK; >$0/$PGAS_RANK; [ $PGAS_RANK != 3 ] || {
			until [ -e $0/0 ] && [ -e $0/1 ] && [ -e $0/2 ]; do sleep 0.01; done; read line && kill -9 $PPID; }`, written},
	})
	require.Equal(t, CodeLost, r.Code, r.err)
	require.Contains(t, r.err, "host c: collect what its ranks have written")
	require.FileExists(t, lost+"/of.2")
	require.NoFileExists(t, lost+"/of.3")
}

// stopping is a Watcher that stops an agent, whose number its ranks print, when as many ranks have ended as there are.
type stopping struct {
	out     *buffer
	ranks   int
	stopped chan struct{} // closed then
}

func (*stopping) Started(int, int)            {}
func (*stopping) Sampled(int, control.Sample) {}

func (s *stopping) Ended(int, string) {
	if s.ranks--; s.ranks > 0 {
		return
	}
	for _, of := range regexp.MustCompile(`(?m)^agent (\d+)$`).FindAllStringSubmatch(s.out.String(), -1) {
		if pid, err := strconv.Atoi(of[1]); err == nil {
			_ = syscall.Kill(pid, syscall.SIGSTOP)
		}
	}
	close(s.stopped)
}

// TestSignalsWhileHostsBringFiles: when all ranks have ended, a host that does not bring what they have left is waited for no longer than who reads the output.
func TestSignalsWhileHostsBringFiles(t *testing.T) {
	for name, c := range map[string]struct {
		grace time.Duration
		sent  []os.Signal
		code  int
	}{
		"grace":  {50 * time.Millisecond, []os.Signal{syscall.SIGTERM}, 128 + 15},
		"second": {time.Minute, []os.Signal{syscall.SIGTERM, syscall.SIGINT}, 128 + 2},
	} {
		t.Run(name, func(t *testing.T) {
			out, log, signals, over := new(buffer), new(buffer), make(chan os.Signal), make(chan struct{})
			defer close(over)
			watch := &stopping{out, 2, make(chan struct{})}
			go func() {
				<-watch.stopped
				for _, s := range c.sent {
					select {
					case signals <- s:
					case <-over:
					}
				}
			}()
			res, err := Run(t.Context(), Spec{
				N: 2, Hosts: threeHosts()[1:2], Env: os.Environ(), Folder: t.TempDir(), FolderEnv: "LEFT", Stdout: out, Stderr: log, Watch: watch,
				Grace: c.grace, Signals: signals, Argv: []string{"sh", "-c", "echo agent $PPID"},
			})
			require.NoError(t, err)
			requireNothingLeft(t, res)
			require.Equal(t, c.code, res.Code, log.String())
			require.Regexp(t, "is lost: SIG(TERM|INT) came before it was (here|read)", res.Cause)
		})
	}
}

func TestHangReportOverHosts(t *testing.T) {
	r := outOfTime(t, Spec{N: 4, Hosts: threeHosts()}, []string{
		`(?m)^0 +\d+ on \S+ +running +nothing: it computes`, `(?m)^3 +\d+ on c +running +barrier +rank 0 +1\.50 s +main\.go:31$`,
		`(?m)^goroutine 1 .*sleep`, // the stacks of the one that waits for nothing
	}, "hang")
	require.Regexp(t, `(?m)^rank  pid on host +state +waits in +for +since +called at$`, r.err)
}

func TestSignalsReachOtherHosts(t *testing.T) {
	l := begin(t, Spec{N: 4, Hosts: threeHosts()}, "stubborn")
	l.out.await(t, "sleeping", 4)
	l.signals <- syscall.SIGINT
	l.signals <- syscall.SIGINT
	require.Equal(t, 130, l.wait(t).Code)
	require.Contains(t, l.err.String(), "second SIGINT: killing all ranks")
}

// TestLostHost: the end of the way to a host is the end of its ranks, and of the job.
func TestLostHost(t *testing.T) {
	for name, harm := range map[string]func(agent string) error{
		"agent killed": func(agent string) error {
			pid, err := strconv.Atoi(agent)
			return errors.Join(err, syscall.Kill(pid, syscall.SIGKILL))
		},
		"stream garbled": func(agent string) error { return os.WriteFile("/proc/"+agent+"/fd/1", []byte("garbage\n"), 0) },
	} {
		t.Run(name, func(t *testing.T) {
			l := begin(t, Spec{N: 4, Hosts: threeHosts(), Argv: []string{"sh", "-c", "echo $PGAS_RANK of $PPID; exec sleep 1000"}})
			l.out.await(t, " of ", 4)
			require.NoError(t, harm(regexp.MustCompile(`(?m)^2 of (\d+)$`).FindStringSubmatch(l.out.String())[1]))
			r := l.wait(t)
			require.Equal(t, CodeLost, r.Code, l.err.String())
			require.Regexp(t, `^rank [12] on b was lost: the connection to b has ended.* after `, r.Cause)
			require.Equal(t, 1, strings.Count(l.err.String(), "was lost"), l.err.String())
			require.NotEmpty(t, r.Ranks[1].Lost+r.Ranks[2].Lost)
		})
	}
}

// TestHostsThatCannotBeReached: nothing is started anywhere, and every host that makes trouble is named.
func TestHostsThatCannotBeReached(t *testing.T) {
	mark := t.TempDir() + "/started"
	argv := []string{"touch", mark}
	bad := func(name, script string) Host { return Host{Name: name, Ranks: 1, Agent: []string{"sh", "-c", script}} }
	_, err := Run(t.Context(), Spec{N: 6, Argv: argv, Hosts: append(threeHosts(), bad("d", "exit 127"), bad("e", "echo Permission denied >&2; exit 255"))})
	require.ErrorContains(t, err, "reach host d: there is no pgasrun at that path there")
	require.ErrorContains(t, err, "reach host e: it refused this user's key")
	var many []Host
	for _, n := range []string{"d", "e", "f", "g", "h"} {
		many = append(many, bad(n, "exit 1"))
	}
	_, err = Run(t.Context(), Spec{N: 5, Argv: argv, Hosts: many})
	require.ErrorContains(t, err, "and 2 hosts more")
	_, err = Run(t.Context(), Spec{N: 2, Argv: argv, Hosts: []Host{{Ranks: 1}, bad("d", "sleep 1000")}, Reach: 50 * time.Millisecond})
	require.ErrorContains(t, err, "reach host d: no agent answered within 0.")
	_, err = Run(t.Context(), Spec{N: 4, Argv: []string{"/no/program"}, Hosts: threeHosts()[1:2], Dir: "/"})
	require.ErrorContains(t, err, "2 ranks on all hosts together: wanted 4")
	_, err = Run(t.Context(), Spec{N: 2, Argv: []string{"/no/program"}, Hosts: threeHosts()[1:2]})
	require.ErrorIs(t, err, crew.ErrNotFound)
	require.ErrorContains(t, err, "host b: no such program: there is no file /no/program")
	_, err = Run(t.Context(), Spec{N: 2, Argv: argv, Hosts: threeHosts()[1:2], Dir: "/no/folder"})
	require.ErrorContains(t, err, "host b: working folder of the ranks: stat /no/folder")
	require.NoFileExists(t, mark)

	l := begin(t, Spec{N: 2, Hosts: []Host{{Ranks: 1}, bad("d", "sleep 1000")}}, "sleep")
	l.signals <- syscall.SIGINT
	require.Equal(t, 130, l.wait(t).Code)
	require.Contains(t, l.err.String(), "stopped by SIGINT before all ranks had started; none is left")
}

func TestEnvironmentOnOtherHosts(t *testing.T) {
	env := append(os.Environ(), "PGAS_OWN=1", "NOT_HANDED=1")
	r := run(t, Spec{N: 2, Hosts: threeHosts()[1:2], Env: env, Set: []string{"X=handed"}, Argv: []string{"sh", "-c", "echo $PGAS_OWN $X ${NOT_HANDED:-none} $PWD"}})
	here, err := os.Getwd()
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("1 handed none "+here+"\n", 2), r.out)
}

func TestNothingIsLeftOnOtherHosts(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	var out buffer
	cmd := exec.Command(self, "sh", "-c", program+" stubborn; true")
	cmd.Env = append(os.Environ(), "LAUNCH_TEST_LAUNCHER=hosts")
	cmd.Stdout = &out
	require.NoError(t, cmd.Start())
	out.await(t, "sleeping", 2)
	pids := pidsIn(t, out.String())
	require.Len(t, pids, 2)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.Eventually(t, func() bool { return !alive(pids[0]) && !alive(pids[1]) }, 30*time.Second, 5*time.Millisecond)
}
