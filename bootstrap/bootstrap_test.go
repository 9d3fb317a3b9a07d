package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/internal/pmi"
	"gopgas/internal/pmiserver"
)

func TestDetectionOrder(t *testing.T) {
	srun := map[string]string{"SLURM_STEP_ID": "0", "SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4"}
	with := func(base map[string]string, more ...string) map[string]string {
		out := map[string]string{}
		maps.Copy(out, base)
		for _, k := range more {
			out[k] = "0"
		}
		return out
	}
	for _, c := range []struct {
		env  map[string]string
		want source
	}{
		{nil, fromNothing},
		{with(nil, "PMI_FD"), fromPMI},
		{with(nil, "PMI_PORT"), fromPMI},
		{with(srun, "PMI_FD"), fromPMI},
		{with(srun, "OMPI_COMM_WORLD_RANK", "PMIX_RANK"), fromOpenMPI}, // mpirun inside an allocation
		{with(srun, "PMIX_RANK"), fromSlurm},                           // srun --mpi=pmix
		{srun, fromSlurm},
		{with(nil, "PMIX_RANK"), fromOpenMPI},
		{map[string]string{"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}, fromNothing},
		{with(nil, "SLURM_PROCID", "SLURM_NTASKS"), fromNothing}, // a batch script
		{map[string]string{"PMI_RANK": "1", "PMI_SIZE": "4"}, fromBarePMI},
		{map[string]string{"PMI_SIZE": "4"}, fromBarePMI},
		{map[string]string{"PMI_RANK": "0", "PMI_SIZE": "1"}, fromNothing},
		{map[string]string{"PMI_SIZE": "1"}, fromNothing},
		{map[string]string{"PMI_RANK": "0"}, fromBarePMI},
		{map[string]string{"PMI_RANK": "3"}, fromBarePMI},
		{map[string]string{"PMI_RANK": "x"}, fromBarePMI},
		{map[string]string{"PMI_RANK": "1", "PMI_SIZE": "1"}, fromBarePMI},
		{map[string]string{"PMI_RANK": "", "PMI_SIZE": "1"}, fromBarePMI},
		{map[string]string{"PMI_SIZE": "abc"}, fromBarePMI},
		{map[string]string{"PMI_SIZE": "0"}, fromBarePMI},
		{map[string]string{"PMI_SIZE": "-1"}, fromBarePMI},
		{map[string]string{"PMI_SIZE": ""}, fromBarePMI},
		{map[string]string{"PMI_ID": "2"}, fromBarePMI},
		{map[string]string{"PMI_RANK": "x", "PMIX_RANK": "1"}, fromOpenMPI}, // its cure is the better one
	} {
		require.Equal(t, c.want, detect(c.env), "%v", c.env)
	}
}

func TestOpenWithoutRendezvousNamesTheCure(t *testing.T) {
	for _, env := range [][]string{
		{"OMPI_COMM_WORLD_RANK=2"},
		{"SLURM_STEP_ID=0", "SLURM_PROCID=3", "SLURM_STEP_NUM_TASKS=4"},
		{"PMI_RANK=1", "PMI_SIZE=4"},
	} {
		_, err := Open(t.Context(), env)
		require.ErrorIs(t, err, ErrNoRendezvous)
		require.ErrorContains(t, err, "srun --mpi=pmi2")
	}
}

// TestOpenNamesAWrongEnvironment: what was found, what is needed and the cure, whatever of PMI's variables is wrong.
func TestOpenNamesAWrongEnvironment(t *testing.T) {
	for _, c := range []struct {
		env  []string
		text string
	}{
		{[]string{"PMI_RANK=x"}, `PMI_RANK="x" without PMI_FD or PMI_PORT`},
		{[]string{"PMI_RANK=1", "PMI_SIZE=abc"}, `PMI_RANK="1", PMI_SIZE="abc" without`},
		{[]string{"PMI_FD=zz", "PMI_RANK=0", "PMI_SIZE=1"}, `PMI_FD="zz": wanted a number`},
		{[]string{"PMI_FD=1000000", "PMI_RANK=x", "PMI_SIZE=1"}, `PMI_RANK="x": wanted a number`},
		{[]string{"PMI_FD=1000000", "PMI_RANK=0", "PMI_SIZE=0"}, "rank 0 of 0, which cannot be"},
		{[]string{"PMI_FD=1000000", "PMI_RANK=0", "PMI_SIZE=1"}, "descriptor 1000000"},
		{[]string{"PMI_PORT=127.0.0.1:1"}, "PMI_ID is not set"},
	} {
		_, err := Open(t.Context(), c.env)
		require.ErrorContains(t, err, c.text, "%v", c.env)
		require.ErrorContains(t, err, "start ")
		require.ErrorContains(t, err, "unset PMI_FD, PMI_PORT, PMI_ID, PMI_RANK and PMI_SIZE to run it alone")
	}
}

func TestAlone(t *testing.T) {
	j, err := Open(t.Context(), []string{"HOME=/", "PGAS_JOB=left-over"})
	require.NoError(t, err)
	require.Equal(t, []any{0, 1, LauncherAlone}, []any{j.Rank(), j.Size(), j.Launcher()})
	cards, err := j.Exchange(t.Context(), []byte("me"))
	require.NoError(t, err)
	require.Equal(t, [][]byte{[]byte("me")}, cards)
	require.NoError(t, j.Barrier(t.Context()))
	secret, err := Secret(t.Context(), j)
	require.NoError(t, err)
	require.Len(t, secret, pmi.SecretSize)
	other, err := Open(t.Context(), nil)
	require.NoError(t, err)
	require.NotEqual(t, j.Name(), other.Name())
	require.NoError(t, j.Abort(3, ""))
	require.NoError(t, j.Close())
	require.NoError(t, j.Close())
}

func TestChunks(t *testing.T) {
	for _, limit := range []int{11, 64, pmi.PortableValue} {
		for n := range 300 {
			card := make([]byte, n*7%1700)
			for i := range card {
				card[i] = byte(i * n)
			}
			parts := chunks(card, limit)
			for _, p := range parts {
				require.NotEmpty(t, p)
				require.LessOrEqual(t, len(p), limit)
				require.NoError(t, pmi.CheckValue(p))
			}
			back, err := collect(func(i int) (string, error) { return parts[i], nil })
			require.NoError(t, err)
			require.Equal(t, card, back)
		}
	}
	for _, bad := range []string{"", "x", "0,", "-1,", "a,b", "1,!!"} {
		_, err := collect(func(int) (string, error) { return bad, nil })
		require.Error(t, err, "%q", bad)
	}
	missing := errors.New("missing")
	_, err := collect(func(i int) (string, error) {
		if i == 3 {
			return "", missing
		}
		return "2000000000,QUJD", nil
	})
	require.ErrorIs(t, err, missing)
}

func FuzzCollect(f *testing.F) {
	f.Add("1,QUJD", "x")
	f.Add("2,QUJD", "QUJD")
	f.Fuzz(func(t *testing.T, head, rest string) {
		calls := 0
		card, err := collect(func(i int) (string, error) {
			if calls++; calls > 100 {
				return "", errors.New("enough")
			}
			if i == 0 {
				return head, nil
			}
			return rest, nil
		})
		if err == nil {
			_, err = collect(func(i int) (string, error) { return chunks(card, 1<<20)[i], nil })
			require.NoError(t, err)
		}
	})
}

// serve starts a PMI server for n ranks and returns what Open needs for each.
func serve(t *testing.T, n int, c pmiserver.Config) (envs [][]string, near []net.Conn) {
	t.Helper()
	c.Size, c.KVSName = n, "job-1"
	s, err := pmiserver.New(c)
	require.NoError(t, err)
	for r := range n {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		require.NoError(t, err)
		conn, err := pmi.Adopt(fds[0])
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		go s.Serve(r, conn)
		near = append(near, conn)
		envs = append(envs, []string{"PMI_FD=" + strconv.Itoa(fds[1]), "PMI_RANK=" + strconv.Itoa(r), "PMI_SIZE=" + strconv.Itoa(n)})
	}
	return envs, near
}

func TestJobsOfALauncher(t *testing.T) {
	for _, launcher := range []string{LauncherPgasrun, LauncherPMI1} {
		t.Run(launcher, func(t *testing.T) {
			want := strings.Repeat("ab", pmi.SecretSize)
			envs, _ := serve(t, 3, pmiserver.Config{Preset: map[string]string{pmi.SecretKey: want}})
			var wg sync.WaitGroup
			for _, env := range envs {
				name := "PGAS_JOB=job-1"
				if launcher != LauncherPgasrun {
					name = "PGAS_JOB=an-outer-job"
				}
				j, err := Open(t.Context(), append(env, name))
				require.NoError(t, err)
				require.Equal(t, launcher, j.Launcher())
				wg.Go(func() {
					if err := playExchange(t.Context(), j); err != nil {
						t.Error(err)
					}
					secret, err := Secret(t.Context(), j)
					if err != nil || (fmt.Sprintf("%x", secret) == want) != (launcher == LauncherPgasrun) {
						t.Error("secret", err)
					}
					if err := j.Close(); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		})
	}
}

// TestOpenAfterItsContext: who comes with a context that has ended has not spoken with the launcher, and may come again.
func TestOpenAfterItsContext(t *testing.T) {
	envs, _ := serve(t, 1, pmiserver.Config{})
	cause := errors.New("too late")
	ended, end := context.WithCancelCause(t.Context())
	end(cause)
	_, err := Open(ended, envs[0])
	require.ErrorIs(t, err, cause)
	require.NotErrorIs(t, err, ErrSpent)
	j, err := Open(t.Context(), envs[0])
	require.NoError(t, err)
	require.NoError(t, j.Close())
}

func TestLauncherGone(t *testing.T) {
	envs, near := serve(t, 2, pmiserver.Config{})
	j, err := Open(t.Context(), envs[0])
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- j.Barrier(t.Context()) }()
	near[0].Close()
	require.ErrorIs(t, <-done, ErrLauncherGone)
	_, err = j.Exchange(t.Context(), nil)
	require.ErrorIs(t, err, ErrLauncherGone)
	require.Error(t, j.Close())
}

func TestContextEndsAWaitAndAbortStillWorks(t *testing.T) {
	aborted := make(chan int, 1)
	envs, _ := serve(t, 2, pmiserver.Config{OnAbort: func(_, code int, _ string) { aborted <- code }})
	j, err := Open(t.Context(), envs[0])
	require.NoError(t, err)
	requireContextEndsWaits(t, j)
	require.NoError(t, j.Abort(9, "x"))
	require.Equal(t, 9, <-aborted)
	require.Error(t, j.Close())
}

// ending is a context that has ended when it has been asked so often.
type ending struct {
	context.Context
	asks int
}

func (e *ending) Err() error {
	if e.asks--; e.asks < 0 {
		return context.Canceled
	}
	return nil
}

// TestContextEndsBetweenRequests: an exchange that ends before it has begun leaves the job as it was, one that ends in its midst does not, since the others
// would take its next one for this.
func TestContextEndsBetweenRequests(t *testing.T) {
	card := make([]byte, 2*pmi.PortableValue) // of more than one request
	envs, _ := serve(t, 2, pmiserver.Config{})
	var jobs []Job
	for _, env := range envs {
		j, err := Open(t.Context(), env)
		require.NoError(t, err)
		jobs = append(jobs, j)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		_, err := jobs[0].Exchange(over, card)
		require.ErrorIs(t, err, context.Canceled)
	}
	done := make(chan error, 1)
	go func() {
		_, err := jobs[1].Exchange(t.Context(), card)
		done <- err
	}()
	cards, err := jobs[0].Exchange(t.Context(), card)
	require.NoError(t, err)
	require.NoError(t, <-done)
	require.Equal(t, [][]byte{card, card}, cards)

	for rank, asks := range []int{3, 4} { // between two requests with parts of the card, and between the last of them and the barrier
		_, err = jobs[rank].Exchange(&ending{t.Context(), asks}, card)
		require.ErrorIs(t, err, context.Canceled)
		limit, enough := context.WithTimeout(t.Context(), 10*time.Second)
		_, err = jobs[rank].Exchange(limit, card)
		require.ErrorIs(t, err, context.Canceled, "later calls say so")
		require.ErrorIs(t, jobs[rank].Barrier(limit), context.Canceled)
		enough()
	}
}

// requireContextEndsWaits checks B1 on a rank whose peers never come.
func requireContextEndsWaits(t *testing.T, j Job) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	queued := make(chan error, 1)
	go func() { queued <- j.Barrier(ctx) }()
	_, err := j.Exchange(ctx, []byte("x"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, <-queued, context.DeadlineExceeded)
	require.ErrorIs(t, j.Barrier(t.Context()), context.DeadlineExceeded, "later calls say so")
}

func TestInProcess(t *testing.T) {
	jobs := InProcess(5)
	var wg sync.WaitGroup
	for r, j := range jobs {
		require.Equal(t, []any{r, 5, LauncherInProcess, jobs[0].Name()}, []any{j.Rank(), j.Size(), j.Launcher(), j.Name()})
		wg.Go(func() {
			for range 20 {
				if err := playExchange(t.Context(), j); err != nil {
					t.Error(err)
				}
			}
			if err := j.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.NotEqual(t, jobs[0].Name(), InProcess(1)[0].Name())
	require.Panics(t, func() { InProcess(0) })
}

func TestInProcessFailures(t *testing.T) {
	t.Run("context", func(t *testing.T) { requireContextEndsWaits(t, InProcess(2)[0]) })
	for name, c := range map[string]struct {
		end  func(Job)
		want error
		text string
	}{
		"abort": {func(j Job) { _ = j.Abort(7, "no luck") }, ErrAborted, "rank 1 with code 7 (no luck)"},
		"close": {func(j Job) { _ = j.Close() }, ErrRankLeft, "rank 1"},
	} {
		for _, before := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/before=%t", name, before), func(t *testing.T) {
				jobs := InProcess(3)
				done := make(chan error, 2)
				if before {
					c.end(jobs[1])
				}
				for _, j := range []Job{jobs[0], jobs[2]} {
					go func() { done <- j.Barrier(t.Context()) }()
				}
				if !before {
					c.end(jobs[1])
				}
				for range 2 {
					err := <-done
					require.ErrorIs(t, err, c.want)
					require.ErrorContains(t, err, c.text)
				}
			})
		}
	}
}

func TestHost(t *testing.T) {
	h := ThisHost()
	require.Equal(t, os.Getpid(), h.PID)
	require.NotEmpty(t, h.Name)
	require.NotEmpty(t, h.BootID)
	require.NotZero(t, h.PIDNamespace)
	require.NotZero(t, h.IPCNamespace)
	require.NotZero(t, h.MountNamespace)
	require.True(t, SameNode(h, ThisHost()))
	for name, change := range map[string]func(*Host){
		"kernel":    func(h *Host) { h.BootID = "other" },
		"processes": func(h *Host) { h.PIDNamespace++ },
		"ipc":       func(h *Host) { h.IPCNamespace++ },
		"files":     func(h *Host) { h.MountNamespace++ },
	} {
		other := h
		change(&other)
		require.False(t, SameNode(h, other), name)
	}
	other := h
	other.PID, other.Name = 1, "alias"
	require.True(t, SameNode(h, other))
	h.BootID, other.BootID = "", ""
	require.False(t, SameNode(h, other), "without a boot id the name decides")
}
