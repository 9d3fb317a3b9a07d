package main

import (
	"bufio"
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

// TestRanksSaveWhatTheyHave: of a signal that goes to all ranks the first to end does not cut short what the others do at their end.
func TestRanksSaveWhatTheyHave(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			var out, errs locked
			cmd := exec.Command(pgasrun, "-n", "3", "--grace", "30s", traffic, "save")
			cmd.Stdout, cmd.Stderr = &out, &errs
			require.NoError(t, cmd.Start())
			require.Eventually(t, func() bool { return strings.Count(out.String(), "up") == 3 }, 30*time.Second, time.Millisecond)
			require.NoError(t, cmd.Process.Signal(sig))
			_ = cmd.Wait()
			require.Equal(t, 128+int(sig), cmd.ProcessState.ExitCode(), errs.String())
			require.Equal(t, 3, strings.Count(out.String(), "saved"), "%s%s", out.String(), errs.String())
		})
	}
}

// TestToldToEnd: a signal that goes to all ranks has ended the job, whoever is first to end of it: that the others lose it is no failure of theirs.
func TestToldToEnd(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		for _, hosts := range [][]string{{"-n", "3"}, {"-H", "a,b,c", "--launcher", "fork"}, {"-x", "PGAS_LOCAL=off", "-n", "3"}} {
			t.Run(sig.String()+" "+hosts[0], func(t *testing.T) {
				var out, errs locked
				cmd := exec.Command(pgasrun, append(hosts, "--grace", "30s", traffic, "reach")...)
				cmd.Stdout, cmd.Stderr = &out, &errs
				require.NoError(t, cmd.Start())
				require.Eventually(t, func() bool { return strings.Count(out.String(), "up") == 3 }, 30*time.Second, time.Millisecond)
				require.NoError(t, cmd.Process.Signal(sig))
				_ = cmd.Wait()
				require.Equal(t, 128+int(sig), cmd.ProcessState.ExitCode(), errs.String())
				require.NotContains(t, errs.String(), "peer is gone")
			})
		}
	}
}

// TestInTheBackground: a job whose shell has put it into the background runs, although its standard input is the terminal, and reads when it is in front.
func TestInTheBackground(t *testing.T) {
	cmd := exec.Command("script", "-qec", `sh -c 'set -m; "$0" -n 2 "$1" stdin & read -r go; fg >/dev/null' `+pgasrun+" "+rank, "/dev/null")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	var out locked
	cmd.Stdout = &out
	require.NoError(t, cmd.Start())
	defer in.Close() // which ends all
	require.Eventually(t, func() bool { return strings.Contains(out.String(), `1 read ""`) }, 10*time.Second, 5*time.Millisecond, "it was stopped")
	_, err = in.Write([]byte("go\ntyped\n\x04"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return strings.Contains(out.String(), `0 read "typed\n"`) }, 10*time.Second, 5*time.Millisecond, &out)
	require.NoError(t, cmd.Wait())
}

// TestReaderGoes: when who reads the output has gone, as head does, the ranks of all hosts are told to end, and what was asked for besides is written.
func TestReaderGoes(t *testing.T) {
	dir := t.TempDir()
	const script = `trap 'echo saved >"$0/$PGAS_RANK"; exit 0' TERM; while :; do echo line of $PGAS_RANK; sleep 0.01; done`
	cmd := exec.Command(pgasrun, "-H", "a,b,c", "--launcher", "fork", "--grace", "30s", "--stats=json:"+dir+"/stats", "sh", "-c", script, dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var errs locked
	cmd.Stderr = &errs
	require.NoError(t, cmd.Start())
	begun := map[string]bool{} // until then a rank saves nothing
	for lines := bufio.NewScanner(out); len(begun) < 3; begun[lines.Text()] = true {
		require.True(t, lines.Scan(), "%v: %s", begun, &errs)
	}
	require.NoError(t, out.Close())
	_ = cmd.Wait()
	require.Equal(t, 141, cmd.ProcessState.ExitCode(), "%s: %s", cmd.ProcessState, errs.String())
	require.Contains(t, errs.String(), "pgasrun: nobody reads the output any more: ending the job\n")
	for rank := range 3 {
		require.FileExists(t, filepath.Join(dir, strconv.Itoa(rank)))
	}
	stats, err := os.ReadFile(filepath.Join(dir, "stats"))
	require.NoError(t, err)
	require.Contains(t, string(stats), `"rank":2`)
}

// TestFilesOfTheLauncher: a launcher that may not open enough files for the ranks of other hosts says so, and does not call the hosts lost.
func TestFilesOfTheLauncher(t *testing.T) {
	for limit, want := range map[string]string{
		"12":  `reach host a: make pipes: .*too many open files; for 48 ranks pgasrun needs about 260 open files: raise the limit`,
		"40":  `host [abc]: start .*too many open files; for 16 ranks pgasrun needs about 100 open files: raise the limit`,
		"130": `host [abc]: channels of the launcher to rank \d+ there: .*too many open files; for 48 ranks pgasrun needs about 260 open files: raise the limit`,
	} {
		out, err := exec.Command("sh", "-c", `ulimit -n "$2"; exec "$0" -H a,b,c -n 48 --launcher fork "$1" exit 0 0`, pgasrun, rank, limit).CombinedOutput()
		require.Error(t, err)
		require.Regexp(t, want, string(out))
		require.NotContains(t, string(out), "was lost")
		require.NotContains(t, string(out), "has gone")
	}
}
