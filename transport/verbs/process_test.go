package verbs

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// childVariable makes this test program a rank of its own: "rank size address-of-rank-0".
const childVariable = "VERBS_TEST_CHILD"

// TestMain is a rank's program where childVariable says so.
func TestMain(m *testing.M) {
	if job := os.Getenv(childVariable); job != "" {
		if err := child(job); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// tight has a child leave itself no descriptor when it has said its address.
const tight = "tight"

// child opens a rank, says its address and key, writes to nobody, and waits to be killed.
func child(job string) error {
	var n, size int
	if _, err := fmt.Sscan(job, &n, &size); err != nil {
		return err
	}
	d, err := Provider{}.Open(context.Background(), jobConfig(n, size))
	if err != nil {
		return err
	}
	m := mem.Of(make([]uint64, 1<<17))
	g, err := d.Register(m, transport.AllAccess)
	if err != nil {
		return err
	}
	var taken []*os.File
	if strings.HasSuffix(job, tight) {
		if taken, err = useUp(); err != nil {
			return err
		}
	}
	fmt.Println(hex.EncodeToString(d.Address()), m.Addr(), g.RKey)
	_, err = bufio.NewReader(os.Stdin).ReadString('\n') // until the parent goes
	runtime.KeepAlive(taken)
	return err
}

// useUp takes all descriptors up to the greatest in use, also those that others of this process have for a moment and then give back, and sets the limit behind it. So whichever of
// these the rank gives back is one that it can use.
func useUp() (taken []*os.File, err error) {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, err
	}
	most := 0
	for _, f := range open {
		n, err := strconv.Atoi(f.Name())
		if err != nil {
			return nil, err
		}
		most = max(most, n+1)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: uint64(most), Max: uint64(most)}); err != nil {
		return nil, err
	}
	const moment = 200 * time.Millisecond
	for until := time.Now().Add(moment); time.Now().Before(until); {
		if f, err := os.Open(os.DevNull); err == nil {
			taken = append(taken, f)
		} else {
			time.Sleep(time.Millisecond)
		}
	}
	return taken, nil
}

// spawn starts a rank in a process of its own and returns it with its address, memory and key.
func spawn(t *testing.T, n, size int, more ...string) (p *os.Process, address []byte, raddr, rkey uint64) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+strings.Join(append([]string{strconv.Itoa(n), strconv.Itoa(size)}, more...), " "))
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	words := strings.Fields(line)
	require.Len(t, words, 3, line)
	address, err = hex.DecodeString(words[0])
	require.NoError(t, err)
	raddr, err = strconv.ParseUint(words[1], 10, 64)
	require.NoError(t, err)
	rkey, err = strconv.ParseUint(words[2], 10, 64)
	require.NoError(t, err)
	return cmd.Process, address, raddr, rkey
}

// TestKilled kills a rank's process in the middle of a stream of writes to it: the death is reported within the
// failure timeout, everything posted is reported once, and the other peer is as good as before.
func TestKilled(t *testing.T) {
	a := open(t, 0, 3)
	victim, address, raddr, rkey := spawn(t, 1, 3)
	_, friendAddress, friendAddr, friendKey := spawn(t, 2, 3)
	ep, err := a.Connect(t.Context(), 1, address)
	require.NoError(t, err)
	friend, err := a.Connect(t.Context(), 2, friendAddress)
	require.NoError(t, err)
	require.Equal(t, transport.StatusOK, a.do(a.write(friend, friendAddr, friendKey)).Status)

	posted, reported, statuses := 0, map[uint64]int{}, map[transport.Status]int{}
	var cq [64]transport.Completion
	var killed, told time.Time
	down := 0
	stream := time.Now()
	for told.IsZero() || len(reported) < posted {
		if killed.IsZero() && time.Since(stream) > 50*time.Millisecond {
			require.NoError(t, victim.Kill())
			killed = time.Now()
		}
		if told.IsZero() {
			op := a.write(ep, raddr, rkey)
			op.Cookie, op.SGE[0].Mem = uint64(posted), a.mem.Slice(0, 4096)
			n, err := a.Post([]transport.Op{op})
			require.NoError(t, err)
			posted += n
		}
		n, err := a.Poll(cq[:])
		require.NoError(t, err)
		for _, c := range cq[:n] {
			if c.Kind == transport.OpPeerDown {
				require.Equal(t, ep, c.EP)
				down++
				told = time.Now()
				continue
			}
			reported[c.Cookie]++
			statuses[c.Status]++
		}
		require.False(t, !killed.IsZero() && time.Since(killed) > 10*time.Second, "%d posted, %d reported, down %d", posted, len(reported), down)
	}
	require.Equal(t, 1, down)
	require.Less(t, told.Sub(killed), 5*time.Second)
	require.Positive(t, statuses[transport.StatusOK])
	for cookie, times := range reported {
		require.Equal(t, 1, times, "operation %d of %d", cookie, posted)
	}
	t.Logf("told after %v; %v", told.Sub(killed), statuses)
	_, err = a.Connect(t.Context(), 1, address)
	require.ErrorIs(t, err, transport.ErrPeerGone)
	require.Equal(t, transport.StatusOK, a.do(a.write(friend, friendAddr, friendKey)).Status, "another peer was harmed")
}
