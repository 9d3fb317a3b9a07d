package agent

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/crew"
)

// dial reaches an agent that is this test binary.
func dial(t *testing.T) *Host {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h, err := Dial(ctx, Config{Name: "b", Version: version, Command: []string{"sh", "-c", "echo a talkative shell; AGENT_TEST_SERVE=" + version + ` exec "$0"`, self}})
	require.NoError(t, err)
	return h
}

func plan(argv ...string) crew.Plan {
	return crew.Plan{Job: "job", Size: 4, First: 2, Count: 2, Argv: argv, Env: []string{"PGAS_X=1"}}
}

func TestRanksOfAnAgent(t *testing.T) {
	h := dial(t)
	p := plan("sh", "-c", `read line; echo "rank $PGAS_RANK ($MPI_LOCALRANKID) $PGAS_X $line"; echo oops >&2; printf ask >&3; exit $PGAS_RANK`)
	require.NoError(t, h.Start(t.Context(), p, []int{1}, ""))
	require.Len(t, h.Bound(), 2)
	ranks := h.Processes()
	_, err := io.WriteString(h.Stdin(1), "input\n")
	require.NoError(t, err)
	for i, want := range []string{"rank 2 (0) 1 \n", "rank 3 (1) 1 input\n"} {
		stdout, stderr := ranks[i].Output()
		var all sync.WaitGroup
		var errs []byte
		all.Go(func() { errs, _ = io.ReadAll(stderr) })
		out, err := io.ReadAll(stdout)
		require.NoError(t, err)
		all.Wait()
		require.Equal(t, want, string(out))
		require.Equal(t, "oops\n", string(errs))
		pmi, ctl := ranks[i].Talk()
		said, err := io.ReadAll(pmi)
		require.NoError(t, err)
		require.Equal(t, "ask", string(said))
		e, err := ranks[i].Wait()
		require.NoError(t, err)
		require.Equal(t, crew.End{Exit: 2 + i, After: e.After}, e)
		pmi.Close()
		ctl.Close()
	}
	use := h.Finish(t.Context())
	require.Len(t, use, 2)
	require.Positive(t, use[0].MaxRSS)
}

// TestBytesOfAPlan: arguments, environment and folders are bytes, which need not be text.
func TestBytesOfAPlan(t *testing.T) {
	odd := "caf\xe9 \x80\xff"
	h := dial(t)
	p := plan("sh", "-c", `printf "%s" "$1,$PGAS_X,$SET,${PWD##*/},$WRAPPED"`, "sh", odd)
	p.Dir = filepath.Join(t.TempDir(), odd)
	require.NoError(t, os.Mkdir(p.Dir, 0o700))
	p.Env, p.Set, p.Wrap = []string{"PGAS_X=" + odd}, []string{"SET=" + odd}, map[int][]string{2: {"env", "WRAPPED=" + odd}}
	require.NoError(t, h.Start(t.Context(), p, nil, ""))
	stdout, _ := h.Processes()[0].Output()
	out, err := io.ReadAll(stdout)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat(odd+",", 4)+odd, string(out))
	h.Finish(t.Context())
}

// TestCloseWhileSomebodyElseHoldsTheInput: what is still to be written to a carrier that has ended is not kept for a process that it left behind, which never reads it.
func TestCloseWhileSomebodyElseHoldsTheInput(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	script := `exec 3<&0; setsid sh -c 'echo $$ > "$1"; exec sleep 1000' sh "$0" <&3 >/dev/null 2>&1 & while [ ! -s "$0" ]; do sleep 0.01; done; echo "` +
		greeting + strconv.Itoa(Protocol) + " " + version + `"; exec sleep 1000`
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h, err := Dial(ctx, Config{Name: "b", Version: version, Command: []string{"sh", "-c", script, pid}})
	require.NoError(t, err)
	t.Cleanup(func() {
		text, err := os.ReadFile(pid)
		require.NoError(t, err)
		left, err := strconv.Atoi(strings.TrimSpace(string(text)))
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(left, syscall.SIGKILL))
	})
	soon, enough := context.WithTimeout(ctx, time.Second)
	defer enough()
	require.ErrorIs(t, h.Start(soon, plan("true", strings.Repeat("x", 1<<20)), nil, ""), context.DeadlineExceeded) // more than a pipe holds
	h.Close()
	select {
	case <-h.stream.written:
	case <-time.After(time.Second):
		t.Error("a goroutine writes to the pipe, which stays open")
	}
}

func TestSignalsAndLooks(t *testing.T) {
	h := dial(t)
	require.NoError(t, h.Start(t.Context(), plan("sleep", "1000"), nil, ""))
	ranks := h.Processes()
	stop := make(chan struct{})
	require.Eventually(t, func() bool { return strings.Contains(ranks[1].Look(stop).Text, "sleeping") }, 30*time.Second, time.Millisecond)
	require.GreaterOrEqual(t, ranks[0].Used(), time.Duration(0))
	ranks[1].Signal(syscall.SIGTERM)
	e, err := ranks[1].Wait()
	require.NoError(t, err)
	require.Equal(t, syscall.SIGTERM, e.Signal)
	pid := ranks[0].PID()
	require.NoError(t, syscall.Kill(pid, 0))
	h.Close() // without a word: the agent kills what is left
	require.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil }, 30*time.Second, time.Millisecond)
	e, err = ranks[0].Wait()
	require.NoError(t, err)
	require.True(t, e.Signal == syscall.SIGKILL || strings.Contains(e.Lost, "the connection to b has ended"), "%+v", e)
}

// TestARankThatReadsNothing: its end is told though more was said to it than it has room for, and a child of it has its sockets.
func TestARankThatReadsNothing(t *testing.T) {
	h := dial(t)
	p := plan("sh", "-c", "sleep 1000 & read line")
	p.Count = 1
	require.NoError(t, h.Start(t.Context(), p, []int{0}, ""))
	rank := h.Processes()[0]
	pmi, ctl := rank.Talk()
	var said sync.WaitGroup
	for _, c := range []net.Conn{pmi, ctl} {
		require.NoError(t, c.SetWriteDeadline(time.Now().Add(time.Second)))
		said.Go(func() {
			_, err := c.Write(make([]byte, 16<<20))
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		})
	}
	said.Wait()
	require.NoError(t, h.Stdin(0).Close())
	ended := make(chan crew.End, 1)
	go func() {
		e, _ := rank.Wait()
		ended <- e
	}()
	select {
	case e := <-ended:
		require.Equal(t, crew.End{Exit: 1, After: e.After}, e)
	case <-time.After(20 * time.Second):
		t.Error("the end of the rank is not told")
	}
	pmi.Close()
	ctl.Close()
	h.Finish(t.Context())
}

// TestLostAgent: when the agent itself is killed its ranks are too, and are told as lost.
func TestLostAgent(t *testing.T) {
	h := dial(t)
	require.NoError(t, h.Start(t.Context(), plan("sh", "-c", "sleep 1000 & wait"), nil, ""))
	ranks := h.Processes()
	require.NoError(t, syscall.Kill(h.Group(), syscall.SIGKILL))
	for _, r := range ranks {
		e, err := r.Wait()
		require.NoError(t, err)
		require.Contains(t, e.Lost, "the connection to b has ended")
		require.Eventually(t, func() bool { return syscall.Kill(-r.PID(), 0) != nil }, 30*time.Second, time.Millisecond)
	}
	require.Nil(t, h.Finish(t.Context()))
}

// TestNumberOfACarrier: that of one which has ended is taken until Close, since Close and the launcher's guard kill the group of that number.
func TestNumberOfACarrier(t *testing.T) {
	h := dial(t)
	require.NoError(t, syscall.Kill(h.Group(), syscall.SIGKILL))
	<-h.exited
	require.NoError(t, syscall.Kill(h.Group(), 0))
	h.Close()
	require.ErrorIs(t, syscall.Kill(h.Group(), 0), syscall.ESRCH)
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		edit func(*crew.Plan)
		text string
		is   error
	}{
		{func(p *crew.Plan) { p.Argv = []string{"/no/such"} }, "host b: no such program: there is no file /no/such", crew.ErrNotFound},
		{func(p *crew.Plan) { p.Dir = "/no/folder" }, "host b: working folder of the ranks: stat /no/folder: no such file or directory; make it there", nil},
		{func(p *crew.Plan) { p.Argv = []string{"/dev/null"} }, "not an executable program", crew.ErrNotExecutable},
	} {
		h := dial(t)
		p := plan("true")
		c.edit(&p)
		err := h.Start(t.Context(), p, nil, "")
		require.ErrorContains(t, err, c.text)
		if c.is != nil {
			require.ErrorIs(t, err, c.is)
		}
		h.Close()
	}
}

func TestShippedProgram(t *testing.T) {
	local := filepath.Join(t.TempDir(), "tool")
	script := "#!/bin/sh\necho $0 " + strings.Repeat("# as long as several windows\n", Window/7)
	require.NoError(t, os.WriteFile(local, []byte(script), 0o700))
	h := dial(t)
	require.NoError(t, h.Start(t.Context(), plan(local, "x"), nil, local))
	stdout, _ := h.Processes()[0].Output()
	out, err := io.ReadAll(stdout)
	require.NoError(t, err)
	there := strings.TrimSpace(string(out))
	require.NotEqual(t, local, there)
	require.Equal(t, "tool", filepath.Base(there))
	h.Finish(t.Context())
	require.NoFileExists(t, there, "it goes with the job")
}

// TestProgramThatCannotBeRead: the error says so, and the agent does not run what it has of it.
func TestProgramThatCannotBeRead(t *testing.T) {
	folder := t.TempDir() // which is opened like a file, and gives an error when it is read
	for name, text := range map[string]string{"/no/such": "no such file", folder: "is a directory"} {
		h := dial(t)
		err := h.Start(t.Context(), plan(name), nil, name)
		h.Close()
		require.ErrorContains(t, err, "start ranks on host b: read the program that is to be sent there")
		require.ErrorContains(t, err, text)
	}
}

// TestAgentThatIsKilledEarly leaves nothing of a program that it was being sent.
func TestAgentThatIsKilledEarly(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	tmp := t.TempDir()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "AGENT_TEST_SERVE=v0", "TMPDIR="+tmp)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer in.Close()
	require.NoError(t, cmd.Start())
	_, err = in.Write(frame{remark, 0, []byte(`{"do":"start","plan":{"job":"j","size":1,"count":1,"argv":["dG9vbA=="]},"ship":true}`)}.append(nil))
	require.NoError(t, err)
	_, err = in.Write(frame{data, channelOf(0, program), []byte("#!/bin/sh\n")}.append(nil))
	require.NoError(t, err)
	left := func(pattern string) []string {
		names, err := filepath.Glob(filepath.Join(tmp, pattern))
		require.NoError(t, err)
		return names
	}
	require.Eventually(t, func() bool { return len(left("pgasrun-*/tool")) == 1 }, time.Minute, time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.Eventually(t, func() bool { return len(left("*")) == 0 }, 20*time.Second, time.Millisecond)
}

// TestAgentAmongStrangers: what is not a launcher gets an error, in words, and the agent ends.
func TestAgentAmongStrangers(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for name, c := range map[string]struct {
		in   []byte
		text string
	}{
		"silence":     {nil, "the launcher has gone"},
		"noise":       {[]byte("GET / HTTP/1.1\r\n\r\n"), "malformed frame"},
		"finish":      {frame{remark, 0, []byte(`{"do":"finish"}`)}.append(nil), "finishes what has not started"},
		"own words":   {frame{remark, 0, []byte(`{"do":"reaped"}`)}.append(nil), `the launcher says "reaped"`},
		"no channel":  {frame{data, 99, []byte("x")}.append(nil), "there is no channel 99"},
		"wrong input": {frame{remark, 0, []byte(`{"do":"start","plan":{"size":1,"count":1,"argv":["dHJ1ZQ=="]},"stdin":[1]}`)}.append(nil), "standard input for rank 1 of 1"},
	} {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), "AGENT_TEST_SERVE=v0")
		cmd.Stdin = strings.NewReader(string(c.in))
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		require.Error(t, err, name)
		require.Equal(t, "\n"+greeting+strconv.Itoa(Protocol)+" v0\n", string(out), name)
		require.Contains(t, errs.String(), c.text, name)
	}
}
