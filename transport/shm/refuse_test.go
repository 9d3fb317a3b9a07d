//go:build linux

package shm

import (
	"encoding/binary"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/transport"
)

const (
	waitFor = 10 * time.Second
	tick    = 10 * time.Millisecond
)

// childUndumpable is an owner into whose folder in /proc even its own user may not look.
func childUndumpable(l *line) {
	l.must(unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
	ways, err := ParseWays(l.hear())
	l.must(err)
	m, err := Open(Config{What: "child", Ways: ways})
	l.must(err)
	own, tok, err := m.Alloc(1 << 20)
	l.must(err)
	copy(own.Data(), "hidden")
	l.sayToken(tok)
	l.check(l.hear() == "mapped", "no end")
	l.check(string(own.Data()[100:105]) == "hello", "read %q", own.Data()[100:105])
	l.must(m.Close())
}

// childMapOne maps what the parent names and says how it was reached, or why it was not.
func childMapOne(l *line) {
	m, err := Open(Config{What: "child"})
	l.must(err)
	r, err := m.Map(l.hearToken())
	if err != nil {
		l.say("error %s", strings.ReplaceAll(err.Error(), "\n", " "))
		return
	}
	l.check(string(r.Data()[:6]) == "hidden", "read %q", r.Data()[:6])
	copy(r.Data()[100:], "hello")
	l.say("proc %d socket %d", m.Stats().ByProc, m.Stats().BySocket)
	l.must(m.Close())
}

// TestProcRefused: two processes of an ordinary user, of which one may not be looked into.
func TestProcRefused(t *testing.T) {
	nobody := asNobody(t)
	owner := start(t, "undumpable", nobody)
	owner.say("%s", makers|reachers)
	tok := owner.hearToken()
	peer := start(t, "mapone", nobody)
	peer.sayToken(tok)
	require.Equal(t, "proc 0 socket 1", peer.hear())
	peer.end()
	owner.say("mapped")
	owner.end()
}

// TestProcRefusedAndNoSocket: the error tells of both ways.
func TestProcRefusedAndNoSocket(t *testing.T) {
	nobody := asNobody(t)
	owner := start(t, "undumpable", nobody)
	owner.say("%s", makers|WayProc)
	tok := owner.hearToken()
	peer := start(t, "mapone", nobody)
	peer.sayToken(tok)
	said := peer.hear()
	require.Contains(t, said, "error ")
	require.Contains(t, said, transport.ErrUnsupported.Error())
	require.Contains(t, said, "proc: open /proc/")
	require.Contains(t, said, "permission denied")
	require.Contains(t, said, "socket: not offered by the owner")
	peer.end()
	owner.kill9()
}

// TestAnotherUser: memory of root is neither found in /proc nor given out to nobody.
func TestAnotherUser(t *testing.T) {
	m := open(t, Config{What: "test"})
	_, tok, err := m.Alloc(4096)
	require.NoError(t, err)
	peer := start(t, "mapone", asNobody(t))
	peer.sayToken(tok)
	said := peer.hear()
	require.Contains(t, said, "permission denied")
	require.Contains(t, said, "the peer is user 0, this process is user 65534")
	peer.end()
	require.Zero(t, m.Stats().Served)
}

// childStranger is another user who knows the whole token and asks the owner's socket, without the checks that
// ask makes of the other end.
func childStranger(l *line) {
	tok, err := parseToken(l.hearToken())
	l.must(err)
	conn, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	l.must(err)
	l.must(unix.Connect(conn, &unix.SockaddrUnix{Name: socketName(tok.sock)}))
	_ = unix.Send(conn, request(tok), unix.MSG_NOSIGNAL) // it may have hung up already
	fd, err := receiveFile(conn, "the owner")
	l.check(err != nil, "got descriptor %d", fd)
}

func request(tok token) []byte {
	b := binary.LittleEndian.AppendUint64(nil, tokenVersion)
	return append(binary.LittleEndian.AppendUint64(b, tok.ino), tok.nonce[:]...)
}

func TestServerRefusesAnotherUser(t *testing.T) {
	m := open(t, Config{What: "test"})
	_, tok, err := m.Alloc(4096)
	require.NoError(t, err)
	c := start(t, "stranger", asNobody(t))
	c.sayToken(tok)
	c.end()
	require.Zero(t, m.Stats().Served)
}

// TestNamespaces: what separates processes of one user, and which way leads around it.
func TestNamespaces(t *testing.T) {
	for name, c := range map[string]struct {
		flags uintptr
		want  string
		also  string
	}{
		"user namespace":            {syscall.CLONE_NEWUSER, "proc 0 socket 1", ""},
		"pid namespace":             {syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID, "proc 0 socket 1", ""},
		"network namespace":         {syscall.CLONE_NEWNET, "proc 1 socket 0", ""},
		"pid and network namespace": {syscall.CLONE_NEWPID | syscall.CLONE_NEWNET, "proc: process ", "in another network namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.flags&syscall.CLONE_NEWUSER == 0 {
				needRoot(t)
			}
			m := open(t, Config{What: "test"})
			own, tok, err := m.Alloc(1 << 20)
			require.NoError(t, err)
			copy(own.Data(), "hidden")
			peer := start(t, "mapone", inNamespaces(c.flags))
			peer.sayToken(tok)
			said := peer.hear()
			require.Contains(t, said, c.want)
			require.Contains(t, said, c.also)
			peer.end()
			if c.also == "" {
				require.Equal(t, "hello", string(own.Data()[100:105]))
			}
		})
	}
}

// childSeccomp forbids itself memfd_create, as some containers do, and shares memory all the same.
func childSeccomp(l *line) {
	runtime.LockOSThread()
	l.must(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	deny := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the call's number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_MEMFD_CREATE, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(deny)), Filter: &deny[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	l.check(errno == 0, "seccomp: %v", errno)
	m, err := Open(Config{What: "child"})
	l.must(err)
	own, tok, err := m.Alloc(1 << 20)
	l.must(err)
	l.check(m.Stats().ByFile == 1, "made by %+v", m.Stats())
	copy(own.Data(), "by file")
	only, err := Open(Config{What: "child", Ways: WayMemfd})
	l.must(err)
	_, _, err = only.Alloc(4096)
	l.check(err != nil && strings.Contains(err.Error(), "memfd_create: operation not permitted"), "error %v", err)
	l.sayToken(tok)
	l.hear()
}

func TestMemfdRefused(t *testing.T) {
	c := start(t, "seccomp", nil)
	m := open(t, Config{What: "test"})
	r, err := m.Map(c.hearToken())
	require.NoError(t, err)
	require.Equal(t, "by file", string(r.Data()[:7]))
	c.say("end")
	c.end()
}

// TestNothingMakesMemory: every way is refused; the error tells of each.
func TestNothingMakesMemory(t *testing.T) {
	m := open(t, Config{What: "test", Ways: WayFile, Roots: Roots{Shm: "/nowhere"}})
	_, _, err := m.Alloc(4096)
	require.ErrorIs(t, err, transport.ErrUnsupported)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "/nowhere")
	require.Zero(t, m.Stats().Allocs)
}

// TestServerRefuses: the secret is asked for, requests are of one form, a silent peer delays nobody for long.
func TestServerRefuses(t *testing.T) {
	m := open(t, Config{What: "test", Ways: WaySocket})
	_, tok, err := m.Alloc(4096)
	require.NoError(t, err)
	good, err := parseToken(tok)
	require.NoError(t, err)

	wrong := good
	wrong.nonce[3]++
	_, err = ask(wrong)
	require.ErrorContains(t, err, "freed")
	wrong = good
	wrong.ino++
	_, err = ask(wrong)
	require.ErrorContains(t, err, "freed")
	wrong = good
	wrong.sock++
	_, err = ask(wrong)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)

	req := request(good)
	require.Len(t, req, requestLen)
	for _, bad := range [][]byte{{}, {1}, req[:31], append(req[:32:32], 0), append([]byte{2}, req[1:]...)} {
		conn := dial(t, good)
		require.NoError(t, unix.Send(conn, bad, 0))
		var answer [8]byte
		n, _, err := recv(conn, answer[:], nil)
		require.True(t, n == 0 || err != nil, "answered %x to %x", answer[:n], bad)
	}
	require.Zero(t, m.Stats().Served)

	dial(t, good) // says nothing
	begin := time.Now()
	fd, err := ask(good)
	require.NoError(t, err)
	require.NoError(t, unix.Close(fd))
	require.Less(t, time.Since(begin), 4*time.Second)
	require.EqualValues(t, 1, m.Stats().Served)

	last := dial(t, good) // is being served when the mapper closes
	require.NoError(t, m.Close())
	require.NoError(t, unix.SetNonblock(last, false))
}

// TestSocketOfAStranger: somebody else's answer under the owner's name is not believed.
func TestSocketOfAStranger(t *testing.T) {
	m, stranger := open(t, Config{Ways: WaySocket}), open(t, Config{Ways: WaySocket})
	_, tok, err := m.Alloc(4096)
	require.NoError(t, err)
	_, other, err := stranger.Alloc(4096)
	require.NoError(t, err)
	good, err := parseToken(tok)
	require.NoError(t, err)
	bad, err := parseToken(other)
	require.NoError(t, err)
	swapped, err := listen(1, func(uint64, []byte) (int, byte) { return stranger.lend(bad.ino, bad.nonce[:]) })
	require.NoError(t, err)
	defer swapped.close()
	good.sock = 1
	_, err = m.Map(good.encode())
	require.ErrorIs(t, err, transport.ErrUnsupported)
	require.ErrorContains(t, err, "not the memory meant")

	silent, err := listen(2, func(uint64, []byte) (int, byte) { return -1, answerFiles })
	require.NoError(t, err)
	defer silent.close()
	good.sock = 2
	_, err = m.Map(good.encode())
	require.ErrorContains(t, err, "the owner has no file descriptor left")
}

func dial(t *testing.T, tok token) int {
	conn, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(conn) })
	require.NoError(t, setTimeouts(conn, 5))
	require.NoError(t, unix.Connect(conn, &unix.SockaddrUnix{Name: socketName(tok.sock)}))
	return conn
}
