package slurm

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/test/debtest"
)

// cluster is a running Slurm.
type cluster struct{ conf string }

const nodes = 2

// start brings a cluster up; it ends with the test.
func start(t *testing.T) *cluster {
	t.Helper()
	for program, packages := range map[string][]string{
		"slurmctld": {"slurmctld", "slurm-wlm-basic-plugins"},
		"slurmd":    {"slurmd", "slurm-wlm-basic-plugins"},
		"srun":      {"slurm-client"},
		"munged":    {"munge"},
	} {
		debtest.Need(t, program, packages...)
	}
	host, err := os.Hostname()
	require.NoError(t, err)
	host, _, _ = strings.Cut(host, ".")
	// The path of munge's socket must fit a socket's address, and its daemons want a folder that nobody else may write.
	dir, err := os.MkdirTemp("", "slurm")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	key := make([]byte, 128)
	_, _ = rand.Read(key)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "munge"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "munge/key"), key, 0o400))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "state"), 0o700))
	c := &cluster{conf: filepath.Join(dir, "slurm.conf")}
	require.NoError(t, os.WriteFile(c.conf, []byte(configuration(dir, host, ports(t, 1+nodes))), 0o600))
	// Named, because looking for it fails where /sys/fs/cgroup is not mounted; nothing here uses it.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cgroup.conf"), []byte("CgroupPlugin=cgroup/v1\n"), 0o600))

	daemon(t, c, "munged", "--foreground", "--force", "--socket="+dir+"/munge/socket", "--key-file="+dir+"/munge/key",
		"--pid-file="+dir+"/munge/pid", "--seed-file="+dir+"/munge/seed", "--log-file="+dir+"/munge/log")
	require.Eventually(t, func() bool { _, err := os.Stat(dir + "/munge/socket"); return err == nil }, 30*time.Second, 10*time.Millisecond)
	daemon(t, c, "slurmctld", "-D", "-c", "-f", c.conf)
	// A node that finds nobody to report to tries again much later.
	require.Eventually(t, func() bool {
		out, _ := c.command(t.Context(), "scontrol", "ping").Output()
		return strings.Contains(string(out), "is UP")
	}, time.Minute, 50*time.Millisecond, "the controller does not come up")
	for n := range nodes {
		for _, name := range []string{"spool", "tmp"} {
			require.NoError(t, os.Mkdir(fmt.Sprintf("%s/%s.n%d", dir, name, n+1), 0o755))
		}
		daemon(t, c, "slurmd", "-D", "-N", fmt.Sprintf("n%d", n+1), "-f", c.conf)
	}
	require.Eventually(t, func() bool {
		out, _ := c.command(t.Context(), "sinfo", "--noheader", "--Node", "--format=%t").Output()
		return strings.Count(string(out), "idle") == nodes
	}, 2*time.Minute, 50*time.Millisecond, "the nodes do not come up")
	return c
}

// configuration is slurm.conf(5): no accounting, no cgroups, no task binding, on the loopback interface, and nodes that
// claim more processors than this machine may have.
func configuration(dir, host string, port []int) string {
	lines := []string{
		"ClusterName=test", "SlurmctldHost=" + host + "(127.0.0.1)", fmt.Sprint("SlurmctldPort=", port[0]),
		"SlurmUser=root", "SlurmdUser=root", "CommunicationParameters=NoInAddrAny,NoCtldInAddrAny",
		"AuthType=auth/munge", "CredType=cred/munge", "AuthInfo=socket=" + dir + "/munge/socket",
		"StateSaveLocation=" + dir + "/state", "SlurmdSpoolDir=" + dir + "/spool.%n", "TmpFS=" + dir + "/tmp.%n",
		"SlurmctldPidFile=" + dir + "/slurmctld.pid", "SlurmdPidFile=" + dir + "/slurmd.%n.pid",
		"ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none", "SwitchType=switch/none", "MpiDefault=none",
		"SelectType=select/cons_tres", "SelectTypeParameters=CR_Core", "SchedulerType=sched/builtin",
		"SchedulerParameters=batch_sched_delay=0,sched_min_interval=100000",
		"SlurmdParameters=config_overrides", "ReturnToService=2", "KillWait=2", "InactiveLimit=0",
		"JobAcctGatherType=jobacct_gather/none", "AccountingStorageType=accounting_storage/none",
	}
	for n := range nodes {
		lines = append(lines, fmt.Sprintf("NodeName=n%d NodeHostname=%s NodeAddr=127.0.0.1 Port=%d CPUs=4 State=UNKNOWN", n+1, host, port[1+n]))
	}
	return strings.Join(append(lines, "PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=YES", ""), "\n")
}

// ports are n ports of the loopback interface that nobody has at the moment.
func ports(t *testing.T, n int) (free []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		free = append(free, l.Addr().(*net.TCPAddr).Port)
	}
	return free
}

// daemon starts a program that ends with the test, and shows what it has said if the test fails.
func daemon(t *testing.T, c *cluster, name string, args ...string) {
	t.Helper()
	cmd := c.command(context.Background(), name, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	ended := make(chan error, 1)
	began := make(chan error)
	quit := make(chan struct{})
	go func() {
		runtime.LockOSThread() // the death signal is sent when the starting thread ends
		defer runtime.UnlockOSThread()
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
		err := cmd.Start()
		began <- err
		if err == nil {
			ended <- cmd.Wait()
			<-quit
		}
	}()
	require.NoError(t, <-began)
	t.Cleanup(func() {
		defer close(quit)
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Logf("%s:\n%s", name, &out)
		}
	})
}

// command is a program of Slurm's, or a daemon, for this cluster.
func (c *cluster) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	path, err := exec.LookPath(name)
	if err != nil {
		path = filepath.Join("/usr/sbin", name)
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = []string{"SLURM_CONF=" + c.conf, "PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin", "HOME=" + os.Getenv("HOME")}
	return cmd
}

// srun runs a step and returns what its ranks printed, and its code.
func (c *cluster) srun(t *testing.T, env []string, args ...string) (out, errOut string, code int) {
	t.Helper()
	return c.run(t, env, "srun", args...)
}

// run runs a program of Slurm's to its end.
func (c *cluster) run(t *testing.T, env []string, program string, args ...string) (out, errOut string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := c.command(ctx, program, args...)
	cmd.Env = append(cmd.Env, env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	require.NoError(t, ctx.Err(), "%v does not end\n%s%s", args, &stdout, &stderr)
	if ee := (*exec.ExitError)(nil); !errors.As(err, &ee) {
		require.NoError(t, err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}
