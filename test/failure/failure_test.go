// Package failure proves how jobs end that go wrong: with the right exit code, a sentence, nothing left behind, and the
// surviving ranks told.
package failure

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// programs are the launcher and the failing program, built once, and what had been left behind before they ran.
var programs struct {
	pgasrun, rank string
	before        []string
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "failure")
	if err != nil {
		panic(err)
	}
	programs.pgasrun, programs.rank = filepath.Join(dir, "pgasrun"), filepath.Join(dir, "rank")
	build := []string{"build", "-ldflags=-s -w", "-o", dir}
	if raceEnabled { // what goes wrong then goes wrong in these programs, not in this one
		build = append(build, "-race")
	}
	if out, err := exec.Command("go", append(build, "gopgas/cmd/pgasrun", "gopgas/test/failure/testdata/rank")...).CombinedOutput(); err != nil {
		panic(string(out))
	}
	programs.before = named(memoryNames)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// outcome is how a job ended.
type outcome struct {
	code        int
	out, errOut string
	took        time.Duration
}

// scene keeps what a job prints, and lets the survivors of a death leave once all of them have come to the end, which their last words show, and the
// launcher has named the dead: which end it learns of first is not theirs to disturb.
type scene struct {
	mu          sync.Mutex
	out, errOut bytes.Buffer
	words       []byte // what each of the three survivors prints at the end
	file        string // made to let them leave; "": nobody asks
}

// stream is one of the two.
type stream struct {
	*scene
	to *bytes.Buffer
}

var dead = regexp.MustCompile(`(?m)^pgasrun: rank 2 `)

func (s stream) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to.Write(b)
	if s.file != "" && bytes.Count(s.out.Bytes(), s.words) >= 3 && dead.Match(s.errOut.Bytes()) {
		if err := os.WriteFile(s.file, nil, 0o600); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// survive runs 4 ranks of which one ends and the others go on until each has printed words.
func survive(t *testing.T, words string, flags []string, args ...string) outcome {
	t.Helper()
	file := filepath.Join(t.TempDir(), "leave")
	return play(t, &scene{words: []byte(words), file: file}, append([]string{"--no-kill", "-x", "LEAVE_FILE=" + file}, flags...), args...)
}

// run starts 4 ranks and waits for the end; a job that does not end in time fails the test.
func run(t *testing.T, flags []string, args ...string) outcome {
	t.Helper()
	return play(t, &scene{}, flags, args...)
}

func play(t *testing.T, s *scene, flags []string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	argv := append(append([]string{"-n", "4"}, flags...), programs.rank)
	cmd := exec.CommandContext(ctx, programs.pgasrun, append(argv, args...)...)
	out, errOut := &s.out, &s.errOut
	cmd.Stdout, cmd.Stderr = stream{s, out}, stream{s, errOut}
	start := time.Now()
	err := cmd.Run()
	require.NoError(t, ctx.Err(), "the job hangs\n%s%s", out.String(), errOut.String())
	if ee := (*exec.ExitError)(nil); err != nil {
		require.True(t, errors.As(err, &ee), "%v", err)
	}
	return outcome{cmd.ProcessState.ExitCode(), out.String(), errOut.String(), time.Since(start)}
}

// left lists processes of the failing program and memory that has kept its name. Where memory is a file its name is there between two system calls:
// that of another job is soon gone, so only what stays counts, and not what stayed of a job before this test.
func left(t *testing.T) []string {
	t.Helper()
	for try := 0; ; try++ {
		var found []string
		for _, n := range named("/proc/[0-9]*/exe") {
			if to, _ := os.Readlink(n); strings.HasPrefix(to, programs.rank) {
				found = append(found, n)
			}
		}
		memory := slices.DeleteFunc(named(memoryNames), func(n string) bool { return slices.Contains(programs.before, n) })
		if len(memory) == 0 || try == 100 {
			return append(found, memory...)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// memoryNames are those of memory that is a file.
const memoryNames = "/dev/shm/gopgas-*"

func named(pattern string) []string {
	names, err := filepath.Glob(pattern)
	if err != nil {
		panic(err)
	}
	return names
}

// TestSurvivorsAreTold lets one rank end in every way while the others wait in every way.
func TestSurvivorsAreTold(t *testing.T) {
	// The Go runtime turns a segmentation violation into a panic, which ends with 2.
	how := map[string]int{"exit": 3, "error": 1, "goexit": 1, "panic": 2, "segv": 2, "kill": 137}
	for _, wait := range []string{"barrier", "lock", "signal", "broadcast", "fence", "allocate"} {
		for how, code := range how {
			if testing.Short() && how != "kill" && wait != "barrier" {
				continue
			}
			t.Run(wait+"/"+how, func(t *testing.T) {
				o := survive(t, "was told", nil, how, wait)
				require.Equal(t, code, o.code, "%s%s", o.out, o.errOut)
				require.Equal(t, 3, strings.Count(o.out, "was told"), "%s%s", o.out, o.errOut)
				for line := range strings.SplitSeq(strings.TrimSpace(o.out), "\n") {
					require.Contains(t, line, "rank 2", "the error names the rank that is gone")
				}
				require.Contains(t, o.errOut, "rank 2")
				require.Empty(t, left(t))
			})
		}
	}
}

// TestSurvivorsAreToldByNICs is the same with ranks that map nothing: how one ends matters less, the path more.
func TestSurvivorsAreToldByNICs(t *testing.T) {
	for _, nic := range []string{"soft", "tcp"} {
		for _, wait := range []string{"barrier", "lock", "signal", "broadcast", "fence", "allocate"} {
			for how, code := range map[string]int{"kill": 137, "error": 1} {
				if testing.Short() && how != "kill" {
					continue
				}
				t.Run(nic+"/"+wait+"/"+how, func(t *testing.T) {
					o := survive(t, "was told", []string{"-x", "PGAS_LOCAL=off", "-x", "PGAS_TRANSPORT=" + nic}, how, wait)
					require.Equal(t, code, o.code, "%s%s", o.out, o.errOut)
					require.Equal(t, 3, strings.Count(o.out, "peer is gone: rank 2 "), "all others are told, and of whom\n%s%s", o.out, o.errOut)
					require.Empty(t, left(t))
				})
			}
		}
	}
}

// TestLargeTransfersEnd has a rank die, or leave, in the middle of large transfers to it and from it, over NICs and through pipes and leases. The
// others are told in time and go on with each other through the same workspace. Before that they stop waiting for a transfer that goes on.
func TestLargeTransfersEnd(t *testing.T) {
	for _, nic := range []string{"soft", "tcp"} {
		for _, bulk := range []string{"superpipe", "lease"} { // the names of the paths, too
			for how, code := range map[string]int{"kill": 137, "leave": 1} {
				if testing.Short() && (nic == "soft") != (bulk == "lease") || testing.Short() && how == "leave" {
					continue
				}
				t.Run(nic+"/"+bulk+"/"+how, func(t *testing.T) {
					stamp := filepath.Join(t.TempDir(), "stamp")
					o := survive(t, "goes on", []string{
						"-x", "PGAS_LOCAL=off", "-x", "PGAS_TRANSPORT=" + nic, "-x", "PGAS_BULK=" + bulk, "-x", "PGAS_SOFT_BANDWIDTH=400M",
						"-x", "PGAS_MAX_PINNED=256M", // else the memory may be registered in buckets, of which pipes know nothing
					}, how, bulk, stamp)
					require.Equal(t, code, o.code, "%s%s", o.out, o.errOut)
					told := regexp.MustCompile(`(?m)was told: .*\(rank 2\): .*peer is gone: rank 2 `).FindAllString(o.out, -1)
					require.Len(t, told, 3, "all others are told, and of whom\n%s%s", o.out, o.errOut)
					require.Equal(t, 3, strings.Count(o.out, "goes on"), "%s%s", o.out, o.errOut)
					if how == "leave" {
						require.Contains(t, o.out, "rank 2 ended its transfers", "%s", o.errOut)
					}
					require.Empty(t, left(t))
				})
			}
		}
	}
}

// TestJobEndsWithItsRank is the same without --no-kill: the job ends, and soon.
func TestJobEndsWithItsRank(t *testing.T) {
	for how, code := range map[string]int{"exit": 3, "error": 1, "goexit": 1, "panic": 2, "segv": 2, "kill": 137, "abort": 7} {
		t.Run(how, func(t *testing.T) {
			o := run(t, []string{"--grace", "1m"}, how, "barrier")
			require.Equal(t, code, o.code, "%s%s", o.out, o.errOut)
			require.Contains(t, o.errOut, "rank 2")
			require.Less(t, o.took, 25*time.Second, "the others were not ended at once, but after the grace")
			require.Empty(t, left(t))
		})
	}
}

// TestHangReport: a rank that never reaches the barrier is found by the time limit, and the report tells who waits, and the rank where it is.
func TestHangReport(t *testing.T) {
	o := run(t, []string{"--timeout", "2s"}, "hang", "barrier")
	require.Equal(t, 124, o.code, "%s%s", o.out, o.errOut)
	report, stacks, _ := strings.Cut(o.errOut, "its time limit: ending it")
	require.Equal(t, 3, strings.Count(report, "rank/main.go:"), "every waiting rank's source line\n%s", o.errOut)
	require.GreaterOrEqual(t, strings.Count(report, "barrier"), 3, o.errOut)
	require.Contains(t, stacks, "goroutine 1 ", "where the rank computes that waits for nobody")
	require.Empty(t, left(t))
}
