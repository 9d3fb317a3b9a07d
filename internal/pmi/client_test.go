package pmi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// dialog is a server that expects the given requests and gives the given answers, then hangs up. "" answers nothing.
func dialog(t *testing.T, steps ...[2]string) net.Conn {
	t.Helper()
	near, far := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer far.Close()
		rd := bufio.NewReader(far)
		for _, s := range steps {
			line, err := rd.ReadString('\n')
			if err != nil || strings.TrimSuffix(line, "\n") != s[0] {
				t.Errorf("server got %q (%v), wanted %q", line, err, s[0])
				return
			}
			if _, err := far.Write([]byte(s[1])); err != nil {
				t.Errorf("server: %v", err)
				return
			}
		}
	}()
	t.Cleanup(func() { near.Close(); <-done })
	return near
}

var begun = [][2]string{
	{"cmd=init pmi_version=1 pmi_subversion=1", "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n"},
	{"cmd=get_my_kvsname", "cmd=my_kvsname kvsname=7.0\n"},
}

func TestClientTalksAsWrittenDown(t *testing.T) {
	ctx := t.Context()
	c := NewClient(dialog(t, append(begun,
		[2]string{"cmd=put kvsname=7.0 key=a value=b=c", "cmd=put_result rc=0\n"},
		[2]string{"cmd=barrier_in", "cmd=barrier_out\n"},
		[2]string{"cmd=get kvsname=7.0 key=a", "cmd=get_result rc=0 msg=success value=b=c\n"},
		[2]string{"cmd=get kvsname=7.0 key=n", "cmd=get_result rc=1\n"},
		[2]string{"cmd=get_universe_size", "cmd=universe_size size=4\n"},
		[2]string{"cmd=get_appnum", "cmd=appnum appnum=-1\n"},
		[2]string{"cmd=finalize", "cmd=finalize_ack rc=0\n"},
	)...), 0, 1)
	require.NoError(t, c.Init(ctx))
	require.Equal(t, "7.0", c.KVSName())
	require.NoError(t, c.Put(ctx, "a", "b=c"))
	require.NoError(t, c.Barrier(ctx))
	v, err := c.Get(ctx, "a")
	require.NoError(t, err)
	require.Equal(t, "b=c", v)
	_, err = c.Get(ctx, "n")
	require.ErrorIs(t, err, ErrNotFound)
	n, err := c.UniverseSize(ctx)
	require.NoError(t, err)
	require.Equal(t, 4, n)
	n, err = c.Appnum(ctx)
	require.NoError(t, err)
	require.Equal(t, -1, n)
	require.NoError(t, c.Finalize())
	require.NoError(t, c.Finalize(), "a second one does nothing")
	require.ErrorIs(t, c.Barrier(ctx), net.ErrClosed)
}

func TestClientWhenTheServerMisbehaves(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		want   error
		text   string
	}{
		"gone":          {"", ErrServerGone, "launcher has gone"},
		"half a line":   {"cmd=barrier_o", ErrMalformed, "within a line"},
		"other answer":  {"cmd=get_result\n", ErrMalformed, "wanted \"barrier_out\""},
		"bad rc":        {"cmd=barrier_out rc=x\n", ErrMalformed, "wanted a number"},
		"says no":       {"cmd=barrier_out rc=-1 msg=rank_2_has_ended\n", nil, "rank 2 has ended"},
		"endless line":  {"cmd=" + strings.Repeat("x", MaxLine-4), ErrMalformed, "no newline"},
		"not the least": {"\x00\xff\n", ErrMalformed, "byte 0x00"},
	} {
		t.Run(name, func(t *testing.T) {
			cl := NewClient(dialog(t, append(begun, [2]string{"cmd=barrier_in", c.answer})...), 0, 2)
			require.NoError(t, cl.Init(t.Context()))
			err := cl.Barrier(t.Context())
			require.ErrorContains(t, err, c.text)
			if c.want != nil {
				require.ErrorIs(t, err, c.want)
				require.ErrorIs(t, cl.Barrier(t.Context()), c.want, "P4: broken for good, with the cause")
			}
		})
	}
}

func TestEndingTheContextEndsTheWait(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	defer near.Close()
	go bufio.NewReader(far).ReadString('\n') // takes the request, never answers
	c := NewClient(near, 0, 2)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	start := time.Now()
	require.ErrorIs(t, c.Barrier(ctx), context.DeadlineExceeded)
	require.Less(t, time.Since(start), 2*time.Second)
	err := c.Barrier(t.Context())
	require.ErrorContains(t, err, "ended before")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestConnectRefusesAWrongEnvironment(t *testing.T) {
	file, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer file.Close()
	notSocket := strconv.Itoa(int(file.Fd()))
	for _, c := range []struct {
		env  map[string]string
		text string
	}{
		{map[string]string{}, "neither PMI_FD nor PMI_PORT"},
		{map[string]string{"PMI_FD": "x", "PMI_RANK": "0", "PMI_SIZE": "1"}, "PMI_FD=\"x\": wanted a number"},
		{map[string]string{"PMI_FD": "3", "PMI_SIZE": "1"}, "PMI_RANK is not set"},
		{map[string]string{"PMI_FD": "3", "PMI_RANK": "1", "PMI_SIZE": "1"}, "rank 1 of 1"},
		{map[string]string{"PMI_FD": "3", "PMI_RANK": "1", "PMI_SIZE": "1048577"}, "1048577 ranks, which cannot be"},
		{map[string]string{"PMI_FD": "3", "PMI_RANK": "0", "PMI_SIZE": "4611686018427387904"}, "4611686018427387904 ranks, which cannot be"},
		{map[string]string{"PMI_FD": notSocket, "PMI_RANK": "0", "PMI_SIZE": "1"}, "not an open socket"},
		{map[string]string{"PMI_FD": "1000000", "PMI_RANK": "0", "PMI_SIZE": "1"}, "unset PMI_FD"},
		{map[string]string{"PMI_PORT": "127.0.0.1:1"}, "PMI_ID is not set"},
		{map[string]string{"PMI_PORT": "127.0.0.1:1", "PMI_ID": "0"}, "reach the launcher"},
	} {
		_, err := Connect(t.Context(), func(k string) (string, bool) { v, ok := c.env[k]; return v, ok })
		require.ErrorContains(t, err, c.text, "%v", c.env)
	}
	_, err = file.Stat()
	require.NoError(t, err, "a descriptor that is not ours was closed")
}

func TestAdoptSetsCloseOnExec(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	defer unix.Close(fds[1])
	conn, err := Adopt(fds[0])
	require.NoError(t, err)
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		flags, err := unix.FcntlInt(fd, unix.F_GETFD, 0)
		require.NoError(t, err)
		require.NotZero(t, flags&unix.FD_CLOEXEC)
	}))
}

func TestConnectByPort(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		rd := bufio.NewReader(conn)
		for _, answer := range []string{
			"cmd=initack\ncmd=set size=3\ncmd=set rank=1\ncmd=set debug=0\n", begun[0][1], begun[1][1],
		} {
			if _, err := rd.ReadString('\n'); err != nil {
				return
			}
			conn.Write([]byte(answer))
		}
	}()
	env := map[string]string{"PMI_PORT": ln.Addr().String(), "PMI_ID": "1"}
	c, err := Connect(t.Context(), func(k string) (string, bool) { v, ok := env[k]; return v, ok })
	require.NoError(t, err)
	defer c.conn.Close()
	require.Equal(t, []any{1, 3, "7.0"}, []any{c.Rank(), c.Size(), c.KVSName()})
}

// TestContextEndsAGreeting: where the launcher takes long over its words the context's is the reason.
func TestContextEndsAGreeting(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	over := errors.New("the patience is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = conn.Write([]byte("cmd=initack\ncmd=set size=3\n"))
		_, _ = bufio.NewReader(conn).ReadString('\n')
		time.Sleep(10 * time.Millisecond) // the answer is read meanwhile, mostly
		cancel(over)
		_, _ = conn.Read(make([]byte, 1)) // until the other end closes
	}()
	env := map[string]string{"PMI_PORT": ln.Addr().String(), "PMI_ID": "1"}
	_, err = Connect(ctx, func(k string) (string, bool) { v, ok := env[k]; return v, ok })
	require.ErrorIs(t, err, over)
}

func TestFinalizeDuringABarrierEndsIt(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	c := NewClient(near, 0, 2)
	done := make(chan error, 1)
	go func() { done <- c.Barrier(t.Context()) }()
	_, err := bufio.NewReader(far).ReadString('\n') // now it waits
	require.NoError(t, err)
	require.ErrorIs(t, c.Finalize(), errBusy)
	require.Error(t, <-done)
}

// TestFinalizeOfASilentLauncher: a launcher that answers no more, as behind a network that is cut, does not keep a rank that leaves.
func TestFinalizeOfASilentLauncher(t *testing.T) {
	for name, reads := range map[string]bool{"it reads": true, "it does not read": false} {
		t.Run(name, func(t *testing.T) {
			near, far := net.Pipe()
			defer far.Close()
			if reads {
				go func() { _, _ = io.Copy(io.Discard, far) }() // until it is closed
			}
			err := NewClient(near, 0, 2).finalize(time.Millisecond)
			require.ErrorContains(t, err, "it has not answered for 2ms")
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			_, err = near.Write([]byte{0})
			require.ErrorIs(t, err, io.ErrClosedPipe)
		})
	}
}

// late is a connection whose first read finds its time over, as that of a process that was stopped and goes on.
type late struct {
	net.Conn
	over bool
}

func (l *late) Read(b []byte) (int, error) {
	if !l.over {
		l.over = true
		return 0, os.ErrDeadlineExceeded
	}
	return l.Conn.Read(b)
}

// TestFinalizeOfAProcessThatWasStopped: the answer that has come meanwhile is read all the same.
func TestFinalizeOfAProcessThatWasStopped(t *testing.T) {
	conn := dialog(t, [2]string{"cmd=finalize", "cmd=finalize_ack rc=0\n"})
	require.NoError(t, NewClient(&late{Conn: conn}, 0, 2).Finalize())
}
