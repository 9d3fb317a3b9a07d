package hosts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/test/debtest"
)

// pair is two hosts, h1 and h2.
type pair struct {
	dir string // of keys and configuration
	pid [2]int // of each host's first process, as seen here
}

// start makes the hosts; they end with the test.
func start(t *testing.T) *pair {
	t.Helper()
	for program, pkg := range map[string]string{"ssh": "openssh-client", "ssh-keygen": "openssh-client", "ip": "iproute2", "unshare": "util-linux"} {
		debtest.Need(t, program, pkg)
	}
	if _, err := os.Stat(sshd); err != nil {
		debtest.Install(t, "openssh-server")
	}
	p := &pair{dir: t.TempDir()}
	for _, key := range []string{"user", "stranger", "host"} {
		command(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", p.path(key))
	}
	public, err := os.ReadFile(p.path("host.pub"))
	require.NoError(t, err)
	known := strings.Join(strings.Fields(string(public))[:2], " ")
	user, err := os.ReadFile(p.path("user.pub"))
	require.NoError(t, err)
	for name, text := range map[string]string{
		"authorized": string(user),
		"known":      "h1 " + known + "\nh2 " + known + "\n",
		"none":       "",
		"hosts":      "127.0.0.1 localhost\n10.231.79.1 h1\n10.231.79.2 h2\n",
		"sshd_config": "HostKey " + p.path("host") + "\nPidFile none\nAuthorizedKeysFile " + p.path("authorized") +
			"\nStrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nUsePAM no\n",
	} {
		require.NoError(t, os.WriteFile(p.path(name), []byte(text), 0o600))
	}
	var begin [2]func()
	for i := range p.pid {
		p.pid[i], begin[i] = p.host(t, fmt.Sprintf("h%d", i+1), 5000*i)
	}
	command(t, "ip", "link", "add", "eth0", "netns", fmt.Sprint(p.pid[0]), "type", "veth", "peer", "name", "eth0", "netns", fmt.Sprint(p.pid[1]))
	for i, pid := range p.pid {
		in := []string{"-t", fmt.Sprint(pid), "-n", "ip"}
		command(t, "nsenter", append(in, "addr", "add", fmt.Sprintf("10.231.79.%d/24", i+1), "dev", "eth0")...)
		command(t, "nsenter", append(in, "link", "set", "eth0", "up")...)
		command(t, "nsenter", append(in, "link", "set", "lo", "up")...)
		begin[i]()
	}
	for i := range p.pid {
		require.Eventually(t, func() bool {
			return exec.Command("nsenter", "-t", fmt.Sprint(p.pid[i]), "-n", "bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/10.231.79.%d/2222", i+1)).Run() == nil
		}, time.Minute, 20*time.Millisecond, "sshd of host %d does not answer", i+1)
	}
	return p
}

const sshd = "/usr/sbin/sshd"

func (p *pair) path(name string) string { return filepath.Join(p.dir, name) }

func command(t *testing.T, name string, args ...string) {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	require.NoError(t, err, "%s %v: %s", name, args, out)
}

// host makes a host that waits for begin, which starts its sshd. Its clock is so many seconds ahead of this machine's.
func (p *pair) host(t *testing.T, name string, ahead int) (pid int, begin func()) {
	t.Helper()
	script := `hostname "$1" && mount -t proc proc /proc && mount -t tmpfs -o mode=1777 tmpfs /dev/shm && mount -t tmpfs tmpfs /run && mkdir /run/sshd &&
		mount --bind "$2/hosts" /etc/hosts && read -r go && exec ` + sshd + ` -D -e -p 2222 -f "$2/sshd_config"`
	cmd := exec.Command("unshare", "--time", "--monotonic", fmt.Sprint(ahead), "--net", "--uts", "--ipc", "--pid", "--mount", "--fork", "--kill-child=KILL", "sh", "-c", script, "sh", name, p.dir)
	var said bytes.Buffer
	cmd.Stderr = &said
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	began, quit, ended := make(chan error), make(chan struct{}), make(chan struct{})
	go func() {
		runtime.LockOSThread() // the death signal is sent when the starting thread ends
		defer runtime.UnlockOSThread()
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		err := cmd.Start()
		began <- err
		if err == nil {
			_ = cmd.Wait()
			close(ended)
			<-quit
		}
	}()
	require.NoError(t, <-began)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		close(quit)
		if t.Failed() {
			t.Logf("%s:\n%s", name, &said)
		}
	})
	children := fmt.Sprintf("/proc/%d/task/%d/children", cmd.Process.Pid, cmd.Process.Pid)
	require.Eventually(t, func() bool {
		b, _ := os.ReadFile(children)
		n, _ := fmt.Sscan(string(b), &pid)
		return n == 1
	}, time.Minute, 5*time.Millisecond)
	return pid, func() { _, _ = stdin.Write([]byte("go\n")) }
}

// job is how a call of pgasrun ended.
type job struct {
	out, err string
	code     int
}

// pgasrun runs it on h1.
func (p *pair) pgasrun(t *testing.T, args ...string) job {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := p.command(ctx, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	require.NoError(t, ctx.Err(), "%v does not end\n%s%s", args, &out, &errs)
	if ee := (*exec.ExitError)(nil); !errors.As(err, &ee) {
		require.NoError(t, err)
	}
	return job{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

func (p *pair) command(ctx context.Context, args ...string) *exec.Cmd {
	enter := []string{"-t", fmt.Sprint(p.pid[0]), "-n", "-u", "-i", "-p", "-m", "sh", "-c", `cd "$0" && exec "$@"`, p.dir, filepath.Join(binaries, "pgasrun")}
	cmd := exec.CommandContext(ctx, "nsenter", append(enter, args...)...)
	cmd.WaitDelay = time.Second
	return cmd
}

// ssh is the value of --rsh with this key and these known hosts.
func (p *pair) ssh(key, known string) string {
	return fmt.Sprintf("ssh -F none -p 2222 -i %s -o IdentitiesOnly=yes -o UserKnownHostsFile=%s -o GlobalKnownHostsFile=none -o StrictHostKeyChecking=yes -o LogLevel=ERROR",
		p.path(key), p.path(known))
}

// binaries is where the programs are.
var binaries string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "hosts-test-")
	if err == nil {
		var out []byte
		out, err = exec.Command("go", "build", "-ldflags=-s -w", "-o", dir, "gopgas/cmd/pgasrun", "gopgas/examples/hello",
			"gopgas/examples/ring", "gopgas/examples/heat", "gopgas/examples/kmer").CombinedOutput()
		os.Stderr.Write(out)
	}
	binaries = dir
	code := 1
	if err == nil {
		code = m.Run()
	} else {
		os.Stderr.WriteString(err.Error() + "\n")
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// TestOverSSH: two ranks on each of two hosts, by ssh, tcp between them and shared memory within.
func TestOverSSH(t *testing.T) {
	p := start(t)
	ssh := p.ssh("user", "known")
	genome, err := os.ReadFile("../../examples/kmer/lambda.fa")
	require.NoError(t, err)
	begin := p.path("begin.fa")
	require.NoError(t, os.WriteFile(begin, bytes.Join(bytes.SplitAfter(genome, []byte("\n"))[:41], nil), 0o600))
	on := func(more ...string) job {
		return p.pgasrun(t, append([]string{"-H", "h1:2,h2:2", "--rsh", ssh}, more...)...)
	}
	j := on(filepath.Join(binaries, "hello"))
	require.Zero(t, j.code, "%s%s", j.out, j.err)
	for _, line := range []string{
		"rank 0 of 4 on node 0 (h1), reaches rank 1 over shm", "rank 1 of 4 on node 0 (h1), reaches rank 2 over tcp",
		"rank 2 of 4 on node 1 (h2), reaches rank 3 over shm", "rank 3 of 4 on node 1 (h2), reaches rank 0 over tcp", "all 4 ranks are on the roll",
	} {
		require.Contains(t, j.out, line+"\n")
	}
	for _, argv := range [][]string{{"ring", "-laps", "50"}, {"heat", "-rows", "64", "-steps", "20"}, {"kmer", begin}} {
		argv[0] = filepath.Join(binaries, argv[0])
		j := on(argv...)
		require.Zero(t, j.code, "%v: %s%s", argv, j.out, j.err)
		require.NotContains(t, j.err, "pgasrun:") // a slow machine makes examples tell how far they are
	}

	// A failure there, and nothing left of the others.
	mark := fmt.Sprintf("%d", 100_000+os.Getpid())
	j = on("--prefix", "%h %r: ", "sh", "-c", `echo here; [ $PGAS_RANK = 3 ] && exit 5; exec sleep `+mark)
	require.Equal(t, 5, j.code, "%s%s", j.out, j.err)
	require.Regexp(t, `^pgasrun: rank 3 on h2 exited with 5 after [0-9.]+ s\n$`, j.err)
	require.Contains(t, j.out, "h2 3: here\n")
	require.Empty(t, sleepers(mark))

	// The launcher is killed.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := p.command(ctx, "-H", "h1,h2", "--rsh", ssh, "sleep", mark)
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return len(sleepers(mark)) == 2 }, time.Minute, 10*time.Millisecond)
	var launcher []int
	require.Eventually(t, func() bool { // what it starts looks the same until it is a program of its own
		launcher = running(func(argv string) bool {
			return strings.HasPrefix(argv, filepath.Join(binaries, "pgasrun")+"\x00-H") && strings.Contains(argv, mark)
		})
		return len(launcher) == 1
	}, time.Minute, time.Millisecond)
	require.NoError(t, syscall.Kill(launcher[0], syscall.SIGKILL))
	_ = cmd.Wait()
	require.Eventually(t, func() bool { return len(sleepers(mark)) == 0 }, time.Minute, 10*time.Millisecond)

	// Hosts that cannot be had.
	for text, j := range map[string]job{
		`reach host h2: it refused this user's key`:                 p.pgasrun(t, "-H", "h2", "--rsh", p.ssh("stranger", "known"), "true"),
		`reach host h2: its host key is not known here`:             p.pgasrun(t, "-H", "h2", "--rsh", p.ssh("user", "none"), "true"),
		`reach host h2: there is no pgasrun at that path there`:     p.pgasrun(t, "-H", "h2", "--rsh", ssh, "--agent-path", "/no/pgasrun", "true"),
		`reach host h3: there is no host of that name`:              p.pgasrun(t, "-H", "h3", "--rsh", ssh, "true"),
		`reach host h2: it cannot be reached`:                       p.pgasrun(t, "-H", "h2", "--rsh", strings.Replace(ssh, "2222", "2223", 1), "true"),
		`host h2: working folder of the ranks: stat /no/folder: no`: p.pgasrun(t, "-H", "h2", "--rsh", ssh, "--wdir", "/no/folder", "true"),
	} {
		require.Contains(t, j.err, "pgasrun: "+text)
		require.Equal(t, 1, j.code)
	}
}

// running are the processes, on any host, whose arguments, each with a zero behind it, are such.
func running(such func(argv string) bool) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range all {
		if b, err := os.ReadFile(name); err == nil && such(string(b)) {
			pid, _ := strconv.Atoi(strings.Split(name, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

// sleepers are the ranks that sleep for so long.
func sleepers(mark string) []int {
	return running(func(argv string) bool { return argv == "sleep\x00"+mark+"\x00" })
}
