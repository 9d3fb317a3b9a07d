package tcp_test

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/transport"
)

// What a child's limit of open files is set to.
const (
	filesNone  = -2 // nothing more can be opened, whatever is closed
	filesTight = -1 // what is open fills the limit
	filesMany  = 1
)

// limitFiles sets this process's limit of open files.
func limitFiles(to int) error {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil || to == 0 {
		return err
	}
	switch l.Cur = l.Max; to {
	case filesNone:
		l.Cur = 3
	case filesTight:
		f, err := os.Open(os.DevNull)
		if err != nil {
			return err
		}
		l.Cur = uint64(f.Fd()) // the lowest number that is free
		if err := f.Close(); err != nil {
			return err
		}
	}
	return unix.Setrlimit(unix.RLIMIT_NOFILE, &l)
}

// plugIn brings the loop-back interface of this process's network up.
func plugIn() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
}

func (c *child) answer(t *testing.T, command map[string]any) (text string) {
	t.Helper()
	require.NoError(t, c.in.Encode(command))
	require.NoError(t, c.out.Decode(&text))
	return text
}

// TestNoDescriptors: a rank that has no file descriptor left says so itself, and its peers learn it from its answer. Nobody
// takes it for dead, and with descriptors all goes on.
func TestNoDescriptors(t *testing.T) {
	me, children := job(t, 3, 3*time.Second)
	c := children[1]
	text := c.answer(t, map[string]any{"With": []int{0}, "Times": 1, "Files": filesNone})
	require.Contains(t, text, "a connection with rank 0: found all of this process's")
	require.Contains(t, text, "to change it: ulimit -n")
	require.NotContains(t, text, transport.ErrPeerGone.Error())

	c = children[2]
	require.Equal(t, "ok", c.answer(t, map[string]any{"Files": filesTight}))
	_, err := me.d.Connect(noContext(), 2, me.cards[2].Address)
	var limit *transport.LimitError
	require.ErrorAs(t, err, &limit)
	require.NotErrorIs(t, err, transport.ErrPeerGone)
	require.Contains(t, err.Error(), "a connection with rank 2: found no file descriptor left in that rank's process")
	require.Contains(t, limit.Setting, "ulimit -n")

	require.Equal(t, "ok", c.answer(t, map[string]any{"With": []int{0}, "Times": 1, "Files": filesMany}))
	require.NoError(t, me.exchange([]int{2}, 1))
}

// TestUnplugged: a network that comes back within the failure timeout is waited for; one that does not is told as what it is,
// with address and cause.
func TestUnplugged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a network namespace of its own")
	}
	c, k := start(t, role{Rank: 1, Size: 2, Timeout: 4 * time.Second, Unplugged: true})
	me, err := openPeer(role{Size: 2})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, me.d.Close()) })
	require.NoError(t, c.in.Encode(map[string]any{"Cards": []card{me.card(), k}}))
	require.Equal(t, "ok", c.answer(t, map[string]any{"With": []int{1}, "Times": 1}))

	const timeout = 100 * time.Millisecond
	c, k = start(t, role{Rank: 1, Size: 2, Timeout: timeout, Unplugged: true})
	require.NoError(t, c.in.Encode(map[string]any{"Cards": []card{{Address: unreachable(t, me.d.Address())}, k}}))
	text := c.answer(t, map[string]any{"With": []int{0}, "Times": 1})
	require.Contains(t, text, "peer is gone: no connection within 100ms")
	require.Contains(t, text, "dial tcp 192.0.2.1:")
	require.Contains(t, text, "network is unreachable")
}

// unreachable returns an address with another place in it, of a network that no machine has a way to (RFC 5737).
func unreachable(t *testing.T, addr []byte) []byte {
	here := []byte{127, 0, 0, 1}
	require.Equal(t, 1, bytes.Count(addr, here))
	return bytes.Replace(addr, here, []byte{192, 0, 2, 1}, 1)
}
