package launch

import (
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/internal/control"
)

// unreadPipe is the writing end of a pipe with little room that nobody reads.
func unreadPipe(t *testing.T) *os.File {
	t.Helper()
	rd, wr, err := os.Pipe()
	require.NoError(t, err)
	_, err = unix.FcntlInt(rd.Fd(), unix.F_SETPIPE_SZ, os.Getpagesize())
	require.NoError(t, err)
	t.Cleanup(func() { wr.Close(); rd.Close() })
	return wr
}

// ends runs a job, and fails the test if it does not end.
func ends(t *testing.T, s Spec) Result {
	t.Helper()
	s.Env = os.Environ()
	ended := make(chan Result, 1)
	go func() {
		res, err := Run(t.Context(), s)
		if err != nil {
			t.Error(err)
		}
		ended <- res
	}()
	select {
	case res := <-ended:
		requireNothingLeft(t, res)
		return res
	case <-time.After(40 * time.Second):
		require.FailNow(t, "the job does not end")
	}
	return Result{}
}

// TestNobodyReadsWhileRanksRun: the time limit, the grace and a second TERM hold, and what is told elsewhere is told, though the ranks' output is stuck.
func TestNobodyReadsWhileRanksRun(t *testing.T) {
	rd, wr, err := os.Pipe()
	require.NoError(t, err)
	var log buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&log, rd)
	}()
	signals, over := make(chan os.Signal), make(chan struct{})
	defer close(over)
	go func() {
		log.await(t, "its time limit: ending it", 1)
		for {
			select {
			case signals <- syscall.SIGTERM:
				time.Sleep(200 * time.Millisecond)
			case <-over:
				return
			}
		}
	}()
	res := ends(t, Spec{
		N: 2, Timeout: time.Second, Grace: time.Minute, Signals: signals, Stdout: unreadPipe(t), Stderr: wr,
		Argv: []string{"sh", "-c", `trap '' TERM; [ $PGAS_RANK = 0 ] && exec yes; while :; do sleep 0.1; done`},
	})
	require.Equal(t, CodeTimeout, res.Code)
	wr.Close()
	<-read
	rd.Close()
	require.Contains(t, log.String(), "hang report after")
	require.Contains(t, log.String(), "second SIGTERM: killing all ranks")
	require.Contains(t, log.String(), "the end of the ranks' output is lost: SIGTERM came before it was read")
}

// endings is a Watcher that looks at the ends of ranks only.
type endings chan string

func (endings) Started(int, int)            {}
func (endings) Sampled(int, control.Sample) {}
func (e endings) Ended(_ int, how string)   { e <- how }

// TestNobodyReadsWhatIsLeft: when the ranks have ended, a TERM leaves the grace time to who reads, and a second signal nothing.
func TestNobodyReadsWhatIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		grace time.Duration
		sent  []os.Signal
		code  int
	}{
		"grace":  {100 * time.Millisecond, []os.Signal{syscall.SIGTERM}, 128 + 15},
		"second": {time.Minute, []os.Signal{syscall.SIGTERM, syscall.SIGINT}, 128 + 2},
	} {
		t.Run(name, func(t *testing.T) {
			signals := make(chan os.Signal, len(c.sent))
			watch := endings(make(chan string, 1))
			go func() {
				<-watch
				time.Sleep(200 * time.Millisecond)
				for _, s := range c.sent {
					signals <- s
				}
			}()
			both := unreadPipe(t)
			res := ends(t, Spec{
				N: 1, Grace: c.grace, Signals: signals, Stdout: both, Stderr: both, Watch: watch,
				Argv: []string{"sh", "-c", "head -c 40000 /dev/zero | tr '\\0' '\\n'"},
			})
			require.Equal(t, c.code, res.Code)
			require.Contains(t, res.Cause, "the end of the ranks' output is lost")
		})
	}
}
