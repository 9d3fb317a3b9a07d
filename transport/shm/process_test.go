//go:build linux

package shm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// everyWay is each way to make memory with each way to reach it.
var everyWay = []Ways{WayMemfd | WayProc, WayMemfd | WaySocket, WayFile | WayProc, WayFile | WaySocket}

// children are the bodies that the test binary runs when it is started again.
var children = map[string]func(*line){
	"peer": childPeer, "holder": childHolder, "undumpable": childUndumpable, "seccomp": childSeccomp,
	"fsize": childFileSize, "as": childAddressSpace, "nofile": childFiles, "tmpfs": childTmpfs, "maps": childMaps,
	"notmpfile": childNoTmpfile, "huge": childHuge, "mapone": childMapOne, "stranger": childStranger,
	"shown": childShown, "peeker": childPeeker,
}

func TestProcesses(t *testing.T) {
	for _, ways := range append([]Ways{0}, everyWay...) {
		t.Run("ways "+ways.String(), func(t *testing.T) {
			runMapperSuite(t, func(n int) []transport.Mapper {
				all := make([]transport.Mapper, n)
				for i := range all {
					m, err := Open(Config{What: "test", Ways: ways})
					require.NoError(t, err)
					all[i] = m
				}
				return all
			})
		})
	}
}

func open(t *testing.T, c Config) *Mapper {
	t.Helper()
	m, err := Open(c)
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.Close() })
	return m
}

const rounds = 100_000

// childPeer maps what the parent made, offers memory of its own, and works on both.
func childPeer(l *line) {
	ways, err := ParseWays(l.hear())
	l.must(err)
	m, err := Open(Config{What: "child", Ways: ways})
	l.must(err)
	theirs, err := m.Map(l.hearToken())
	l.must(err)
	l.check(string(theirs.Data()[:5]) == "hello", "read %q", theirs.Data()[:5])
	copy(theirs.Data()[theirs.Bytes-5:], "world")
	own, tok, err := m.Alloc(1 << 20)
	l.must(err)
	copy(own.Data(), "from child")
	l.sayToken(tok)
	l.check(l.hear() == "count", "no start")
	count(theirs)
	s := m.Stats()
	l.say("%d %d %d %d", s.ByMemfd, s.ByFile, s.ByProc, s.BySocket)
	l.check(string(own.Data()[1000:1011]) == "from parent", "read %q", own.Data()[1000:1011])
	l.must(m.Close())
	l.check(len(leftovers()) == 0, "left: %v", leftovers())
}

func count(r mem.Range) {
	for range rounds {
		r.Word64(64).Add(1)
		for {
			v := r.Word32(128).Load()
			if r.Word32(128).CompareAndSwap(v, v+3) {
				break
			}
		}
	}
}

func TestTwoProcesses(t *testing.T) {
	for _, ways := range everyWay {
		t.Run(ways.String(), func(t *testing.T) {
			m := open(t, Config{What: "test", Ways: ways})
			own, tok, err := m.Alloc(3<<20 + 17)
			require.NoError(t, err)
			copy(own.Data(), "hello")
			c := start(t, "peer", nil)
			c.say("%s", ways)
			c.sayToken(tok)
			theirs, err := m.Map(c.hearToken())
			require.NoError(t, err)
			require.Equal(t, "world", string(own.Data()[own.Bytes-5:]))
			require.Equal(t, "from child", string(theirs.Data()[:10]))
			copy(theirs.Data()[1000:], "from parent")
			c.say("count")
			count(own)
			var memfds, files, procs, sockets int
			_, err = fmt.Sscanf(c.hear(), "%d %d %d %d", &memfds, &files, &procs, &sockets)
			require.NoError(t, err)
			c.end()
			require.EqualValues(t, 2*rounds, own.Word64(64).Load())
			require.EqualValues(t, 6*rounds, own.Word32(128).Load())
			want := func(w Ways) int { return int(ways&w) / int(w) }
			require.Equal(t, []int{want(WayMemfd), want(WayFile), want(WayProc), want(WaySocket)}, []int{memfds, files, procs, sockets})
			s := m.Stats()
			require.Equal(t, []int{want(WayMemfd), want(WayFile), want(WayProc), want(WaySocket)}, []int{s.ByMemfd, s.ByFile, s.ByProc, s.BySocket})
			require.EqualValues(t, want(WaySocket), s.Served)
			require.Equal(t, "from child", string(theirs.Data()[:10]), "memory outlives its owner where it is mapped")
		})
	}
}

// childHolder allocates, says its tokens, and waits to be killed.
func childHolder(l *line) {
	ways, err := ParseWays(l.hear())
	l.must(err)
	m, err := Open(Config{What: "child", Ways: ways, Roots: Roots{Shm: l.hear()}})
	l.must(err)
	for range 3 {
		r, tok, err := m.Alloc(32 << 20)
		l.must(err)
		copy(r.Data(), "alive")
		l.sayToken(tok)
	}
	l.hear()
	l.check(false, "nobody killed me")
}

func TestKill9LeavesNothing(t *testing.T) {
	for _, ways := range everyWay {
		t.Run(ways.String(), func(t *testing.T) {
			dir, err := os.MkdirTemp("/dev/shm", "shmtest")
			require.NoError(t, err)
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			m := open(t, Config{What: "test"})
			c := start(t, "holder", nil)
			c.say("%s", ways)
			c.say("%s", dir)
			tokens := []transport.Token{c.hearToken(), c.hearToken(), c.hearToken()}
			mapped, err := m.Map(tokens[0])
			require.NoError(t, err)
			names, err := filepath.Glob(dir + "/*")
			require.NoError(t, err)
			require.Empty(t, names, "it has a name while it lives")
			tok, err := parseToken(tokens[0])
			require.NoError(t, err)
			sockets, err := os.ReadFile("/proc/net/unix")
			require.NoError(t, err)
			require.Equal(t, ways&WaySocket != 0, strings.Contains(string(sockets), socketName(tok.sock)))
			before := shmemKiB(t)

			c.kill9()

			names, err = filepath.Glob(dir + "/*")
			require.NoError(t, err)
			require.Empty(t, names)
			sockets, err = os.ReadFile("/proc/net/unix")
			require.NoError(t, err)
			require.NotContains(t, string(sockets), socketName(tok.sock))
			require.Equal(t, "alive", string(mapped.Data()[:5]), "what is mapped stays")
			_, err = m.Map(tokens[1])
			require.ErrorIs(t, err, transport.ErrUnsupported)
			require.Contains(t, err.Error(), "proc: ")
			require.Contains(t, err.Error(), "socket: ")
			// Two of the three objects, 64 MiB, were the dead process's alone. Others use the machine too.
			require.Eventually(t, func() bool { return before-shmemKiB(t) >= 32<<10 }, waitFor, tick, "memory is not given back")
		})
	}
}

// shmemKiB is the shared memory of the whole machine.
func shmemKiB(t *testing.T) int64 {
	info, err := os.ReadFile("/proc/meminfo")
	require.NoError(t, err)
	return fieldOf(info, "Shmem:")
}

// TestOneDescriptor: a peer holds none per mapping, an owner one per allocation and one for its socket.
func TestOneDescriptor(t *testing.T) {
	for _, ways := range everyWay {
		owner, peer := open(t, Config{Ways: ways}), open(t, Config{Ways: ways})
		var tokens []transport.Token
		for range 10 {
			_, tok, err := owner.Alloc(4096)
			require.NoError(t, err)
			tokens = append(tokens, tok)
		}
		before := countFiles(Roots{Proc: "/proc"})
		for _, tok := range tokens {
			_, err := peer.Map(tok)
			require.NoError(t, err)
		}
		// The owner's end of the last connection is closed by whoever served it, a moment after Map has its answer.
		held := func(n int64) func() bool { return func() bool { return countFiles(Roots{Proc: "/proc"}) == n } }
		require.Eventually(t, held(before), waitFor, tick, "%d descriptors before", before)
		require.NoError(t, owner.Close())
		gone := 10
		if ways&WaySocket != 0 {
			gone++
		}
		require.Eventually(t, held(before-int64(gone)), waitFor, tick, "%d descriptors before, %d fewer expected", before, gone)
		require.NoError(t, peer.Close())
	}
}

// TestCyclesLeaveNothing: descriptors, mappings and memory are where they were after 10 000 turns.
func TestCyclesLeaveNothing(t *testing.T) {
	for _, ways := range []Ways{WayMemfd | WayProc, WayFile | WaySocket} {
		t.Run(ways.String(), func(t *testing.T) {
			owner, peer := open(t, Config{Ways: ways}), open(t, Config{Ways: ways})
			cycle := func() { require.NoError(t, roundTrip(owner, peer, 64<<10, 7)) }
			first, _, err := owner.Alloc(4096) // with it the owner has its socket
			require.NoError(t, err)
			require.NoError(t, owner.Free(first))
			roots := Roots{Proc: "/proc"}
			files := countFiles(roots) // before anybody is served: the server lets go of a descriptor after its peer has it
			for range 100 {
				cycle()
			}
			maps, size := countMaps(roots), addressUsed(roots)
			cycles := 10_000
			if testing.Short() {
				cycles /= 2
			}
			for range cycles {
				cycle()
			}
			require.Eventually(t, func() bool { return files == countFiles(roots) }, waitFor, tick, "descriptors: %d before", files)
			// The Go runtime maps a little of its own meanwhile; 5 000 mappings or 320 MB would show.
			require.InDelta(t, maps, countMaps(roots), 50)
			require.InDelta(t, size, addressUsed(roots), 256*mib)
			require.Equal(t, Stats{Served: owner.Stats().Served}, owner.Stats())
			require.Equal(t, Stats{}, peer.Stats())
		})
	}
}

// TestRecycledDescriptor puts other things where a token points to.
func TestRecycledDescriptor(t *testing.T) {
	m := open(t, Config{Ways: WayProc})
	_, tok, err := m.Alloc(8192)
	require.NoError(t, err)
	_, otherTok, err := m.Alloc(8192)
	require.NoError(t, err)
	good, err := parseToken(tok)
	require.NoError(t, err)
	other, err := parseToken(otherTok)
	require.NoError(t, err)
	sleeper := exec.Command("sleep", "100")
	require.NoError(t, sleeper.Start())
	defer func() {
		_ = sleeper.Process.Kill()
		_ = sleeper.Wait()
	}()
	for name, c := range map[string]struct {
		change func(*token)
		say    string
	}{
		"another descriptor":  {func(s *token) { s.fd = other.fd }, "not the memory meant"},
		"standard input":      {func(s *token) { s.fd = 0 }, "not the memory meant"},
		"closed descriptor":   {func(s *token) { s.fd = 1 << 20 }, "no such file"},
		"another process":     {func(s *token) { s.pid, s.fd = uint32(sleeper.Process.Pid), 0 }, "not the memory meant"},
		"no process":          {func(s *token) { s.pid = 1<<31 - 1 }, "no such file"},
		"another device":      {func(s *token) { s.dev++ }, "not the memory meant"},
		"another inode":       {func(s *token) { s.ino++ }, "not the memory meant"},
		"another size":        {func(s *token) { s.bytes += 4096 }, "not the memory meant"},
		"another name":        {func(s *token) { s.id++ }, "not the memory meant"},
		"another boot":        {func(s *token) { s.boot[5]++ }, "another machine"},
		"another pid numbers": {func(s *token) { s.pidNS++ }, "another pid namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := good
			c.change(&bad)
			_, err := m.Map(bad.encode())
			require.ErrorIs(t, err, transport.ErrUnsupported)
			require.ErrorContains(t, err, c.say)
		})
	}
	require.Equal(t, 2, m.Stats().Allocs)
	require.Zero(t, m.Stats().Maps)
}

// TestSealed: a peer that maps a memfd cannot shrink it under the owner.
func TestSealed(t *testing.T) {
	m := open(t, Config{Ways: WayMemfd})
	r, tok, err := m.Alloc(1 << 20)
	require.NoError(t, err)
	s, err := parseToken(tok)
	require.NoError(t, err)
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", s.fd), unix.O_RDWR|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	require.ErrorIs(t, unix.Ftruncate(fd, 4096), syscall.EPERM)
	require.ErrorIs(t, unix.Ftruncate(fd, 2<<20), syscall.EPERM)
	require.Zero(t, r.Data()[1<<20-1])
}
