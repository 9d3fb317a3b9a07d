//go:build linux

package shm

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
)

// childVar names the body that a re-executed test binary runs instead of the tests.
const childVar = "GOPGAS_SHM_TEST_CHILD"

func TestMain(m *testing.M) {
	if name := os.Getenv(childVar); name != "" {
		body := children[name]
		if body == nil {
			fmt.Fprintln(os.Stderr, "no child is called", name)
			os.Exit(2)
		}
		body(&line{in: bufio.NewReader(os.Stdin), out: os.Stdout, fail: func(err error) {
			fmt.Fprintf(os.Stderr, "child %s: %v\n", name, err)
			os.Exit(1)
		}})
		os.Exit(0)
	}
	code := m.Run()
	if left := leftovers(); len(left) > 0 && code == 0 {
		fmt.Fprintln(os.Stderr, "left behind by the tests:", strings.Join(left, "\n"))
		code = 1
	}
	os.Exit(code)
}

// leftovers lists descriptors, mappings and servers of this package that this process holds.
func leftovers() []string {
	var left []string
	fds, _ := os.ReadDir("/proc/self/fd")
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && (strings.Contains(to, "gopgas-") || strings.Contains(to, "/#")) {
			left = append(left, "descriptor "+to)
		}
	}
	maps, _ := os.ReadFile("/proc/self/maps")
	for l := range strings.Lines(string(maps)) {
		if strings.Contains(l, "gopgas-") || strings.Contains(l, "/dev/shm") {
			left = append(left, "mapping "+strings.TrimSpace(l))
		}
	}
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	if strings.Contains(string(stacks), "shm.(*server)") {
		left = append(left, "a server")
	}
	return left
}

// line is one end of a conversation in lines between a test and its child.
type line struct {
	in   *bufio.Reader
	out  io.Writer
	fail func(error)
}

func (l *line) say(format string, args ...any) {
	if _, err := fmt.Fprintf(l.out, format+"\n", args...); err != nil {
		l.fail(err)
	}
}

func (l *line) hear() string {
	s, err := l.in.ReadString('\n')
	if err != nil {
		l.fail(fmt.Errorf("no answer: %w", err))
	}
	return strings.TrimSuffix(s, "\n")
}

func (l *line) sayToken(t transport.Token) { l.say("%x", []byte(t)) }

func (l *line) hearToken() transport.Token {
	b, err := hex.DecodeString(l.hear())
	l.must(err)
	return b
}

func (l *line) must(err error) {
	if err != nil {
		l.fail(err)
	}
}

// check fails the child, whose parent sees the text.
func (l *line) check(ok bool, format string, args ...any) {
	if !ok {
		l.fail(fmt.Errorf(format, args...))
	}
}

// child is a running child.
type child struct {
	line
	t   *testing.T
	cmd *exec.Cmd
}

// start runs the child of that name. set may change the command before it starts.
func start(t *testing.T, name string, set func(*exec.Cmd)) *child {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	// The race detector's runtime else sleeps for a second at the end of each child.
	cmd.Env = append(os.Environ(), childVar+"="+name, "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if set != nil {
		set(cmd)
	}
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	c := &child{t: t, cmd: cmd}
	c.line = line{in: bufio.NewReader(out), out: in, fail: func(err error) {
		t.Helper()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("child %s: %v\n%s", name, err, stderr.String())
	}}
	watchdog := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		watchdog.Stop()
		_ = in.Close()
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return c
}

// end waits for a child that has said all, and fails the test unless it ended well.
func (c *child) end() {
	c.t.Helper()
	rest, _ := io.ReadAll(c.in)
	if err := c.cmd.Wait(); err != nil {
		c.fail(fmt.Errorf("%w (%s)", err, rest))
	}
}

// kill9 ends the child as nothing can be cleaned up.
func (c *child) kill9() {
	require.NoError(c.t, c.cmd.Process.Signal(syscall.SIGKILL))
	_ = c.cmd.Wait() // says "killed"
}

// asNobody runs the child as user and group 65534. The user changes before exec, so that the child owns its
// own files in /proc.
func asNobody(t *testing.T) func(*exec.Cmd) {
	needRoot(t)
	dir, err := os.MkdirTemp("", "shmtest")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	exe, err := os.Executable()
	require.NoError(t, err)
	text, err := os.ReadFile(exe)
	require.NoError(t, err)
	copied := filepath.Join(dir, "shm.test") // the test binary's own folder is closed to others
	require.NoError(t, os.WriteFile(copied, text, 0o755))
	return func(cmd *exec.Cmd) {
		cmd.Path, cmd.Args[0], cmd.Dir = copied, copied, "/"
		attr(cmd).Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
}

// inNamespaces runs the child in new namespaces of its own, where it is root.
func inNamespaces(flags uintptr) func(*exec.Cmd) {
	return func(cmd *exec.Cmd) {
		a := attr(cmd)
		a.Cloneflags = flags
		if flags&syscall.CLONE_NEWUSER != 0 {
			a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
			a.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
		}
	}
}

func attr(cmd *exec.Cmd) *syscall.SysProcAttr {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	return cmd.SysProcAttr
}

// needRoot ends a test that only root can run. It says so where it is not run as root, in the one way there is.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: it changes user or mounts")
	}
}
