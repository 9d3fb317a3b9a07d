package shm

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/internal/mem"
	"gopgas/transport"
)

const shownBytes = 3*peekChunk + 1234

// childShown has memory of the Go heap that others peek at, and tells a token and where it is.
func childShown(l *line) {
	m, err := Open(Config{What: "child"})
	l.must(err)
	_, tok, err := m.Alloc(4096)
	l.must(err)
	shown := make([]byte, shownBytes)
	for i := range shown {
		shown[i] = shownAt(i)
	}
	l.sayToken(tok)
	l.say("%d", mem.Of(shown).Addr())
	l.check(l.hear() == "end", "no end")
	runtime.KeepAlive(shown)
	l.must(m.Close())
}

func shownAt(i int) byte { return byte(i ^ i>>8 ^ i>>16) }

// shown starts such a child.
func shown(t *testing.T, set func(*exec.Cmd)) (c *child, tok transport.Token, addr uint64) {
	t.Helper()
	c = start(t, "shown", set)
	tok = c.hearToken()
	addr, err := strconv.ParseUint(c.hear(), 10, 64)
	require.NoError(t, err)
	return c, tok, addr
}

// TestPeek: what a process has not exposed is read as it is, at any place and of any length.
func TestPeek(t *testing.T) {
	c, tok, addr := shown(t, nil)
	m := open(t, Config{What: "test"})
	want := make([]byte, shownBytes)
	for i := range want {
		want[i] = shownAt(i)
	}
	for range 200 {
		from := rand.IntN(shownBytes)
		n := rand.IntN(shownBytes - from + 1)
		around := make([]byte, n+2)
		around[0], around[n+1] = 0xa5, 0x5a
		require.NoError(t, m.Peek(tok, addr+uint64(from), mem.Of(around[1:n+1])))
		require.True(t, bytes.Equal(want[from:from+n], around[1:n+1]), "%d bytes at %d", n, from)
		require.True(t, around[0] == 0xa5 && around[n+1] == 0x5a, "%d bytes at %d", n, from)
	}
	into := make([]byte, 2*peekChunk)
	require.ErrorIs(t, m.Peek(tok, 4096, mem.Of(into)), unix.EFAULT, "nothing is there")
	require.Error(t, m.Peek(tok[:10], addr, mem.Of(into)))
	c.say("end")
	c.end()
	err := m.Peek(tok, addr, mem.Of(into))
	require.ErrorIs(t, err, transport.ErrPeerGone)
}

// TestPeekRefused: memory of a process of another user, or with other process numbers, is not read.
func TestPeekRefused(t *testing.T) {
	into := make([]byte, 100)
	t.Run("process numbers", func(t *testing.T) {
		c, tok, addr := shown(t, inNamespaces(syscall.CLONE_NEWPID))
		require.ErrorIs(t, open(t, Config{What: "test"}).Peek(tok, addr, mem.Of(into)), transport.ErrUnsupported)
		c.say("end")
		c.end()
	})
	t.Run("user", func(t *testing.T) {
		c, tok, addr := shown(t, nil)
		peer := start(t, "peeker", asNobody(t))
		peer.sayToken(tok)
		peer.say("%d", addr)
		require.Equal(t, "unsupported", peer.hear())
		peer.end()
		c.say("end")
		c.end()
	})
}

// childPeeker peeks at what it is told of.
func childPeeker(l *line) {
	m, err := Open(Config{What: "child"})
	l.must(err)
	tok := l.hearToken()
	addr, err := strconv.ParseUint(l.hear(), 10, 64)
	l.must(err)
	if err := m.Peek(tok, addr, mem.Of(make([]byte, 100))); errors.Is(err, transport.ErrUnsupported) {
		l.say("unsupported")
	} else {
		l.say("%v", err)
	}
	l.must(m.Close())
}
