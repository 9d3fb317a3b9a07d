package launch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/control"
	"gopgas/internal/crew"
)

func TestHello(t *testing.T) {
	for _, n := range []int{1, 2, 8} {
		r := run(t, Spec{N: n}, "hello")
		require.Zero(t, r.Code, r.err)
		require.Empty(t, r.err)
		lines := regexp.MustCompile(fmt.Sprintf(`(?m)^rank \d of %d under pgasrun in (\S+) has %d cards and ([0-9a-f]{64})$`, n, n)).FindAllStringSubmatch(r.out, -1)
		require.Len(t, lines, n, r.out)
		for _, l := range lines {
			require.Equal(t, []string{r.Job, lines[0][2]}, l[1:])
		}
		other := run(t, Spec{N: 1}, "hello")
		require.NotEqual(t, r.Job, other.Job)
		require.NotContains(t, other.out, lines[0][2], "every job has a secret of its own")
	}
}

func TestFirstFailureDecides(t *testing.T) {
	host, err := os.Hostname()
	require.NoError(t, err)
	for name, c := range map[string]struct {
		argv []string
		code int
		text string
	}{
		"exits with 3":      {[]string{program, "exit", "1", "3"}, 3, "rank 1 on " + host + " exited with 3 after "},
		"killed -9":         {[]string{program, "die", "2", "9"}, 137, "rank 2 on " + host + " was killed by SIGKILL after "},
		"segmentation":      {[]string{"sh", "-c", `[ $PGAS_RANK = 2 ] && kill -SEGV $$; sleep 100`}, 139, "rank 2 on " + host + " was killed by SIGSEGV after "},
		"abort":             {[]string{program, "abort", "0", "7"}, 7, "rank 0 on " + host + " aborted the job with code 7 after "},
		"abort's reason":    {[]string{program, "abort", "0", "7"}, 7, " s: out of luck"},
		"abort with 256":    {[]string{program, "abort", "0", "256"}, 1, "aborted the job with code 1 "},
		"leaves in between": {[]string{program, "quit", "1"}, 1, "rank 1 on " + host + " exited with 0 without leaving the job (no PMI finalize: the program calls World.Close"},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, Spec{N: 3, Argv: c.argv, Grace: time.Minute})
			require.Equal(t, c.code, r.Code, r.err)
			require.Contains(t, r.Cause, c.text)
			require.Equal(t, 1, strings.Count(r.err, "pgasrun: "), r.err)
			require.Contains(t, r.err, "pgasrun: "+r.Cause+"\n")
			require.Less(t, r.took, 30*time.Second, "the others were not ended at once, but after the grace")
		})
	}
}

func TestExitWithoutPMIIsFine(t *testing.T) {
	r := run(t, Spec{N: 2}, "exit", "0", "0")
	require.Zero(t, r.Code)
	require.Empty(t, r.Cause)
	require.Empty(t, r.err)
}

// TestWhatIsNoPMI: a rank that writes to its PMI connection what is no PMI has not ended well, whatever its exit code says; the job ends, says which
// rank it was and what may be the matter, and is none the worse for any bytes.
func TestWhatIsNoPMI(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	lines := []string{"cmd=bogus garbage", "cmd=init", "cmd=get", "=", "cmd=barrier_in", "mcmd=spawn", strings.Repeat("x", 5000)}
	for range 30 {
		b := make([]byte, 1+rng.IntN(60))
		for i := range b {
			b[i] = byte(1 + rng.IntN(255)) // an argument holds no zero
		}
		lines = append(lines, strings.NewReplacer("\n", " ", "\\", "/", "%", "=").Replace(string(b)))
	}
	for _, line := range lines {
		r := run(t, Spec{N: 2, Argv: []string{"sh", "-c", `[ $PMI_RANK = 0 ] && exit 0; printf '%s\n' "$1" >&$PMI_FD; sleep 0.02; exit 0`, "sh", line}})
		require.Equal(t, 1, r.Code, "%q: %s", line, r.err)
		require.Contains(t, r.Cause, "rank 1 on ", "%q", line)
		require.Contains(t, r.Cause, "PMI", "%q", line)
	}
}

// TestMalformedLines: 10 000 lines that are PMI but for a random change, over which the launcher listens to their rank no more, end the job as
// they should. Then each of many ranks says its own, and the launcher must judge each and go on: 50 with -short, else 2000.
func TestMalformedLines(t *testing.T) {
	seed := strconv.FormatInt(time.Now().UnixNano(), 10)
	t.Logf("seed %s", seed)
	const wrong = "exited with 0, but what it wrote to PMI_FD is not PMI-1 (its MPI library is for another launcher, or something else writes to that file)"
	r := run(t, Spec{N: 3, Grace: time.Minute}, "garble", "1", seed, "10000")
	require.Equal(t, 1, r.Code, r.err)
	require.Regexp(t, "^rank 1 on .* "+regexp.QuoteMeta(wrong)+" after ", r.Cause)
	require.Less(t, r.took, 30*time.Second, "the others were not ended at once, but after the grace")

	jobs, ranks := 20, 100
	if testing.Short() {
		jobs, ranks = 1, 50
	}
	for i := range jobs {
		seed := fmt.Sprintf("%s%02d", seed[3:], i)
		r := run(t, Spec{N: ranks, NoKill: true}, "garble", "all", seed, "5")
		require.Equal(t, 1, r.Code, "seed %s: %s", seed, r.err)
		for _, e := range r.Ranks {
			require.Zero(t, e.Exit, "seed %s: rank %d: %s", seed, e.Rank, r.err)
			require.Zero(t, e.Signal, "seed %s: rank %d: %s", seed, e.Rank, r.err)
			require.Regexp(t, fmt.Sprintf(`(?m)^pgasrun: rank %d on its PMI connection: `, e.Rank), r.err, "seed %s", seed)
		}
		require.Equal(t, ranks, strings.Count(r.err, wrong), "seed %s: %s", seed, r.err)
	}
}

// TestBrokenConnection: a rank that speaks PMI-1 and reads no answers is not told that it does not.
func TestBrokenConnection(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes the second that an answer may take")
	}
	r := run(t, Spec{N: 2, Argv: []string{"sh", "-c", `[ $PMI_RANK = 0 ] && exit 0
		trap "" PIPE; { echo cmd=init pmi_version=1 pmi_subversion=1; yes cmd=get_maxes; } 2>/dev/null >&$PMI_FD; exit 0`}})
	require.Equal(t, 1, r.Code, r.err)
	require.Contains(t, r.err, "rank 1 on its PMI connection: it has not read the launcher's answers for 1s")
	require.Regexp(t, `^rank 1 on .* exited with 0, but its PMI connection failed before it left the job \(a line above says how\) after `, r.Cause)
	require.NotContains(t, r.err, "not PMI-1")
}

func TestStubbornRanksAreKilledAfterTheGrace(t *testing.T) {
	r := run(t, Spec{N: 3, Grace: 300 * time.Millisecond, Set: []string{"READY=" + t.TempDir()}, Argv: []string{
		"sh", "-c",
		`trap "" TERM
		if [ $PGAS_RANK = 0 ]; then until [ -e $READY/1 ] && [ -e $READY/2 ]; do sleep 0.01; done; exit 3; fi
		>$READY/$PGAS_RANK; sleep 100 & wait; sleep 100`,
	}})
	require.Equal(t, 3, r.Code)
	require.Greater(t, r.took, 300*time.Millisecond)
	require.Less(t, r.took, 30*time.Second)
	for limit := 100 * time.Millisecond; !strings.Contains(r.out, "sleeping"); limit *= 2 { // until it has had the time to begin
		require.Less(t, limit, 30*time.Second)
		r = run(t, Spec{N: 1, Grace: 200 * time.Millisecond, Timeout: limit}, "immovable") // nor does it print its stacks
		require.Equal(t, CodeTimeout, r.Code)
	}
	require.EqualValues(t, 9, r.Ranks[0].Signal)
}

func TestNoKill(t *testing.T) {
	r := run(t, Spec{N: 3, NoKill: true}, "survive")
	require.Equal(t, 5, r.Code, "%s%s", r.out, r.err)
	require.Equal(t, 2, strings.Count(r.out, "told: 1 exited with 5\n"), r.out)
	for _, rank := range []int{0, 2} {
		require.Zero(t, r.Ranks[rank].Exit)
		require.Zero(t, r.Ranks[rank].Signal)
	}
}

func TestContextEndsTheJob(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out buffer
	done := make(chan error, 1)
	var res Result
	go func() {
		var err error
		res, err = Run(ctx, Spec{N: 2, Argv: []string{program, "sleep"}, Env: os.Environ(), Stdout: &out})
		done <- err
	}()
	out.await(t, "sleeping", 2)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.Equal(t, CodeStopped, res.Code)
	requireNothingLeft(t, res)
}

func TestWrongSpecs(t *testing.T) {
	dir := t.TempDir()
	plain := dir + "/plain"
	require.NoError(t, os.WriteFile(plain, []byte("hello"), 0o644))
	garbage := dir + "/garbage"
	require.NoError(t, os.WriteFile(garbage, []byte("\x01\x02hello"), 0o755))
	orphan := dir + "/orphan"
	require.NoError(t, os.WriteFile(orphan, []byte("#!/no/such/interpreter\n"), 0o755))
	ok := []string{"true"}
	for _, c := range []struct {
		s    Spec
		want error
		text string
	}{
		{Spec{N: 0, Argv: ok}, nil, "0 ranks: wanted 1 to 4096"},
		{Spec{N: MaxRanks + 1, Argv: ok}, nil, "4097 ranks"},
		{Spec{N: 1}, nil, "no program"},
		{Spec{N: 2, Argv: ok, StdinTo: 2}, nil, "wanted a rank from 0 to 1"},
		{Spec{N: 1, Argv: ok, Set: []string{"=x"}}, nil, "wanted NAME=value"},
		{Spec{N: 1, Argv: ok, Set: []string{"GOMAXPROCS=x"}}, nil, `GOMAXPROCS="x": wanted the number of threads`},
		{Spec{N: 1, Argv: ok, Env: []string{"GOMAXPROCS=0"}}, nil, `GOMAXPROCS="0"`},
		{Spec{N: 1, Argv: ok, Env: []string{"GOMAXPROCS=4", "GOMAXPROCS=-1"}, Set: []string{"A=b"}}, nil, `GOMAXPROCS="-1"`},
		{Spec{N: 1, Argv: ok, Env: []string{"GOMAXPROCS=x"}, Set: []string{"GOMAXPROCS="}, Timeout: -1}, nil, "time limit"},
		{Spec{N: 1, Argv: ok, Dir: dir + "/none"}, os.ErrNotExist, "working folder"},
		{Spec{N: 1, Argv: ok, Dir: plain}, nil, "is not a folder"},
		{Spec{N: 1, Argv: ok, Timeout: -1}, nil, "time limit"},
		{Spec{N: 1, Argv: []string{"no-such-program"}}, crew.ErrNotFound, "in no folder of PATH"},
		{Spec{N: 1, Argv: []string{dir + "/none"}}, crew.ErrNotFound, "there is no file"},
		{Spec{N: 1, Argv: []string{plain + "/x"}}, crew.ErrNotFound, "there is no file"},
		{Spec{N: 1, Argv: []string{dir}}, crew.ErrNotExecutable, "is a folder"},
		{Spec{N: 1, Argv: []string{plain}}, crew.ErrNotExecutable, "chmod +x"},
		{Spec{N: 2, Argv: []string{garbage}}, crew.ErrNotExecutable, "exec format error: it is no binary for this machine, and no script whose first line"},
		{Spec{N: 2, Argv: []string{orphan}}, crew.ErrNotExecutable, "interpreter"},
	} {
		_, err := Run(t.Context(), c.s)
		require.ErrorContains(t, err, c.text)
		if c.want != nil {
			require.ErrorIs(t, err, c.want)
		}
	}
}

func TestWorkingFolder(t *testing.T) {
	dir := t.TempDir()
	r := run(t, Spec{N: 2, Dir: dir, Argv: []string{"pwd"}})
	require.Equal(t, dir+"\n"+dir+"\n", r.out)
}

func TestVerbose(t *testing.T) {
	r := run(t, Spec{N: 2, Verbose: true}, "exit", "0", "0")
	require.Regexp(t, `pgasrun: rank 1 is process \d+\n`, r.err)
	require.Regexp(t, `pgasrun: rank 1 exited with 0 after 0\.\d\d s, .* of CPU, at most [1-9]\S* MiB\n`, r.err)
}

func TestStats(t *testing.T) {
	r := run(t, Spec{N: 3, Stats: true}, "stats")
	require.Zero(t, r.Code, r.err)
	require.Len(t, r.Stats, 3)
	for rank, s := range r.Stats {
		require.Equal(t, rank, s.Rank)
		require.EqualValues(t, rank+1, s.Transports["shm"]["mapped"].Ops)
	}
	require.Empty(t, run(t, Spec{N: 2}, "stats").Stats, "nobody asked")
}

// onlooker takes down what a job shows.
type onlooker struct {
	mu      sync.Mutex
	started map[int]int
	seen    map[int]control.Sample
	ended   map[int]string
}

func (o *onlooker) Started(rank, pid int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.started[rank] = pid
}

func (o *onlooker) Sampled(rank int, s control.Sample) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen[rank] = s
}

func (o *onlooker) Ended(rank int, how string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended[rank] = how
}

func (o *onlooker) sawAll(n int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.seen) == n
}

func TestWatch(t *testing.T) {
	o := &onlooker{started: map[int]int{}, seen: map[int]control.Sample{}, ended: map[int]string{}}
	l := begin(t, Spec{N: 3, Watch: o, WatchEvery: time.Millisecond, Grace: time.Minute}, "hang")
	require.Eventually(t, func() bool { return o.sawAll(3) }, 30*time.Second, time.Millisecond)
	l.signals <- syscall.SIGTERM
	r := l.wait(t)
	for rank, e := range r.Ranks {
		require.Equal(t, e.PID, o.started[rank])
		// The first that ends may break another's barrier before that one hears the signal.
		require.Regexp(t, "^(was killed by SIGTERM|exited with 1) after ", o.ended[rank])
	}
	require.Equal(t, []control.Flow{{With: -1, Via: "shm", Ops: 3, Bytes: 8}}, o.seen[2].Flows)
	require.Equal(t, "barrier", o.seen[1].Waits[0].Op)

	o = &onlooker{started: map[int]int{}, seen: map[int]control.Sample{}, ended: map[int]string{}}
	plain := run(t, Spec{N: 2, Watch: o, WatchEvery: time.Millisecond}, "exit", "1", "0")
	require.Zero(t, plain.Code, "a program that knows nothing of questions: %s", plain.err)
	require.Empty(t, o.seen)
	require.Len(t, o.ended, 2)
}

func TestRunLeaksNothing(t *testing.T) {
	open := func() int {
		fds, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(fds)
	}
	once := func() {
		run(t, Spec{N: 3}, "hello")
		run(t, Spec{N: 3}, "exit", "1", "3")
		_, err := Run(t.Context(), Spec{N: 1, Argv: []string{"no-such-program"}})
		require.Error(t, err)
	}
	once()
	fds, goroutines := open(), runtime.NumGoroutine()
	for range 5 {
		once()
	}
	for range 200 {
		if open() <= fds && runtime.NumGoroutine() <= goroutines {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%d descriptors and %d goroutines before, %d and %d after", fds, goroutines, open(), runtime.NumGoroutine())
}

// TestManyRanksAtOnce runs several jobs at the same time, one of them large.
func TestManyRanksAtOnce(t *testing.T) {
	t.Run("group", func(t *testing.T) {
		for _, n := range []int{2, 3, 40} {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				r := run(t, Spec{N: n}, "hello")
				require.Zero(t, r.Code, r.err)
				require.Equal(t, n, strings.Count(r.out, "\n"))
			})
		}
	})
}
