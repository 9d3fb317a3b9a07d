package vm

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gopgas/test/debtest"
)

// NICs says which RDMA devices a machine has.
type NICs string

// The devices there can be.
const (
	One  NICs = "one"  // rxe0 at 10.9.0.1
	Pair NICs = "pair" // rxe0 at 10.9.0.1 and rxe1 at 10.9.0.2, joined by a wire
	None NICs = "none"
)

// Machine describes a virtual machine. The zero Machine has one device, two processors and 2 GiB.
type Machine struct {
	NICs    NICs          // "": One
	CPUs    int           // 0: 2
	Memory  int           // MiB; 0: 2048
	Count   bool          // one processor, on which every instruction takes a nanosecond of the machine's own clock
	Share   string        // a folder of this machine that the guest may write; "": none
	Env     []string      // names of variables to hand on
	LSM     string        // security modules of its kernel; "": none
	Timeout time.Duration // 0: two minutes
	Live    io.Writer     // what the command prints goes there too, as it comes; nil: nowhere

	// Link makes this one of two machines that are joined by sockets in the folder Link. Node is 0 or 1; the
	// device rxe0 of machine 0 is at 10.9.1.1, that of machine 1 at 10.9.1.2.
	Link string
	Node int
}

// Result is what a command left.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// Statuses of run.sh that are not the command's.
const (
	codeTimeout = 124
	codeBroken  = 125
)

//go:embed run.sh prepare.sh init.sh guest.sh
var scripts embed.FS

// Run boots m and runs the command in the test's folder. It fails the test when the machine does not work or the
// command does not end in time, and skips it where the machine cannot be had. It blocks until the machine is off.
func Run(t testing.TB, m Machine, command ...string) Result {
	t.Helper()
	need(t)
	limit := m.Timeout
	if limit == 0 {
		limit = 2 * time.Minute
	}
	args := append([]string{filepath.Join(unpack(t), "run.sh")}, m.options(limit)...)
	args = append(append(args, "--"), command...)
	var out, err bytes.Buffer
	to := io.Writer(&out)
	if m.Live != nil {
		to = io.MultiWriter(&out, m.Live)
	}
	code, runErr := run(t.Context(), to, &err, args)
	r := Result{Stdout: out.String(), Stderr: err.String(), Code: code}
	switch {
	case runErr != nil:
		t.Fatalf("%v: %v\n%s%s", args, runErr, last(r.Stdout), last(r.Stderr))
	case code == codeTimeout || code == codeBroken:
		t.Fatalf("%v ended with %d\n%s%s", args, code, last(r.Stdout), last(r.Stderr))
	}
	return r
}

// last is the end of what was printed, where a hang or a failure is: reports that show all of it are cut off before.
func last(text string) string {
	lines := strings.SplitAfter(text, "\n")
	if n := len(lines) - 50; n > 0 {
		return fmt.Sprintf("(%d lines, and then)\n%s", n, strings.Join(lines[n:], ""))
	}
	return text
}

func (m Machine) options(limit time.Duration) []string {
	options := []string{"--timeout", strconv.Itoa(max(1, int(limit.Seconds())))}
	add := func(name, value string) {
		if value != "" && value != "0" {
			options = append(options, name, value)
		}
	}
	add("--nics", string(m.NICs))
	add("--cpus", strconv.Itoa(m.CPUs))
	add("--mem", strconv.Itoa(m.Memory))
	add("--share", m.Share)
	add("--lsm", m.LSM)
	if m.Link != "" {
		options = append(options, "--link", m.Link, "--node", strconv.Itoa(m.Node))
	}
	if m.Count {
		options = append(options, "--count")
	}
	for _, name := range m.Env {
		add("--env", name)
	}
	if m.Live != nil {
		options = append(options, "--live")
	}
	return options
}

// run starts the script so that it ends, and the machine with it, when ctx or this process does.
func run(ctx context.Context, out, err io.Writer, args []string) (int, error) {
	runtime.LockOSThread() // the death signal is sent when the starting thread ends
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, "bash", args...)
	cmd.Stdout, cmd.Stderr = out, err
	cmd.SysProcAttr = dieTogether()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	e := cmd.Run()
	var exit *exec.ExitError
	if errors.As(e, &exit) && ctx.Err() == nil {
		return exit.ExitCode(), nil
	}
	return 0, e
}

// unpack writes the scripts to a folder of the test's.
func unpack(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"run.sh", "prepare.sh", "init.sh", "guest.sh"} {
		text, err := scripts.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// programs are what a run takes, by the Debian package that has them; libibverbs is looked for by its drivers.
var programs = [][2]string{
	{"qemu-system-x86_64", "qemu-system-x86"},
	{"busybox", "busybox-static"},
	{"cpio", "cpio"},
	{"modinfo", "kmod"},
	{"xz", "xz-utils"},
	{"strip", "binutils"},
	{"rdma", "iproute2"},
}

// drivers is the folder that says which drivers libibverbs has.
const drivers = "/etc/libibverbs.d/rxe.driver"

// need installs what a run takes, or skips the test where that cannot be done (V4).
func need(t testing.TB) {
	t.Helper()
	var missing []string
	for _, p := range programs {
		if !has(p[0]) {
			missing = append(missing, p[1])
		}
	}
	if _, err := os.Stat(drivers); err != nil {
		missing = append(missing, "libibverbs1", "ibverbs-providers")
	}
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skipf("the virtual machine runs this machine's programs on an emulated x86-64 under Linux; this is %s on %s",
			runtime.GOOS, runtime.GOARCH)
	}
	if len(missing) == 0 {
		return
	}
	if !has("apt-get") || os.Geteuid() != 0 {
		t.Skipf("no virtual machine without these packages; as root: apt-get install %s", strings.Join(missing, " "))
	}
	debtest.Install(t, missing...)
}

func has(program string) bool {
	if _, err := exec.LookPath(program); err == nil {
		return true
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if _, err := os.Stat(filepath.Join(dir, program)); err == nil {
			return true
		}
	}
	return false
}
