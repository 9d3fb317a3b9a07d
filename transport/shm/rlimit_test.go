//go:build linux

package shm

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// lowered sets one limit of this process.
func (l *line) lowered(which int, to int64) {
	var lim unix.Rlimit
	l.must(unix.Getrlimit(which, &lim))
	lim.Cur = uint64(to)
	l.must(unix.Setrlimit(which, &lim))
}

// limited checks that err is a limit that names setting, and says it to the parent.
func (l *line) limited(err error, found, setting string) {
	var limit *transport.LimitError
	l.check(errors.As(err, &limit), "not a limit: %v", err)
	l.check(strings.Contains(limit.Found, found), "found %q, want %q", limit.Found, found)
	l.check(strings.Contains(limit.Setting, setting), "setting %q, want %q", limit.Setting, setting)
}

func (l *line) mapper(c Config) *Mapper {
	c.What = "child"
	m, err := Open(c)
	l.must(err)
	return m
}

// works checks that a little memory can still be had, used and given back.
func (l *line) works(m *Mapper) { l.must(roundTrip(m, m, 64<<10, 3)) }

func TestProcessLimits(t *testing.T) {
	for _, name := range []string{"fsize", "as", "nofile", "maps"} {
		t.Run(name, func(t *testing.T) { start(t, name, nil).end() })
	}
}

func childFileSize(l *line) {
	l.lowered(unix.RLIMIT_FSIZE, 1*mib)
	for _, ways := range []Ways{WayMemfd, WayFile} {
		m := l.mapper(Config{Ways: ways})
		_, _, err := m.Alloc(1*mib + 1) // SIGXFSZ would end this process
		l.limited(err, "1.0 MiB as the largest file", "ulimit -f")
		_, _, err = m.Alloc(1 * mib)
		l.must(err)
		l.works(m)
		l.must(m.Close())
	}
}

func childAddressSpace(l *line) {
	m := l.mapper(Config{})
	own, tok, err := m.Alloc(100 * mib)
	l.must(err)
	l.lowered(unix.RLIMIT_AS, addressUsed(Roots{Proc: "/proc"})+64*mib)
	_, _, err = m.Alloc(128 * mib)
	l.limited(err, "of address space left", "ulimit -v")
	_, err = m.Map(tok)
	l.limited(err, "of address space left", "ulimit -v")
	_, _, err = NewGroup(1, Config{})[0].Alloc(128 * mib) // the Go runtime would end this process
	l.limited(err, "of address space left", "ulimit -v")
	l.works(m)
	l.must(m.Free(own))
	l.must(m.Close())
}

func childFiles(l *line) {
	m := l.mapper(Config{})
	l.works(m) // the socket is there
	l.lowered(unix.RLIMIT_NOFILE, countFiles(Roots{Proc: "/proc"})+10)
	var all []mem.Range
	var tok transport.Token
	for {
		r, t, err := m.Alloc(4096)
		if err != nil {
			l.limited(err, "file descriptors in use", "ulimit -n")
			break
		}
		all, tok = append(all, r), t
		l.check(len(all) < 100, "no limit after %d", len(all))
	}
	l.check(len(all) > 5, "a limit after %d", len(all))
	_, err := m.Map(tok)
	l.limited(err, "file descriptors in use", "ulimit -n")
	for _, r := range all {
		l.must(m.Free(r))
	}
	l.works(m)
	l.must(m.Close())
}

// childMaps fills this process's mappings: the error comes before the Go runtime, which needs some too, dies of it.
func childMaps(l *line) {
	m := l.mapper(Config{})
	_, tok, err := m.Alloc(4096)
	l.must(err)
	most, ok := readNumber("/proc/sys/vm/max_map_count")
	l.check(ok, "no vm.max_map_count")
	maps := most - 3*spareMaps // all but the last ones are anybody's, which cost less; no two that follow each other are one
	for i := range maps {
		_, err := unix.Mmap(-1, 0, 4096, int(i%2)*unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		l.must(err)
	}
	others := maps
	for ; ; maps++ {
		if _, err = m.Map(tok); err != nil {
			break
		}
		l.check(maps <= most, "no limit after %d", maps)
	}
	l.limited(err, "mappings in use", "vm.max_map_count=")
	l.check(maps > most-2*spareMaps, "a limit after %d of %d", maps, most)
	_, _, err = m.Alloc(4096)
	l.limited(err, "mappings in use", "vm.max_map_count=")
	runtime.GC()
	grown := make([]byte, 200*mib) // the runtime still maps
	for i := 0; i < len(grown); i += 4096 {
		grown[i] = 1
	}
	l.check(m.Stats().Maps == int(maps-others), "%+v", m.Stats())
	l.must(m.Close())
	m = l.mapper(Config{})
	l.works(m)
	l.must(m.Close())
}

// TestTmpfs runs in a mount namespace of its own, where /dev/shm is small.
func TestTmpfs(t *testing.T) {
	for _, name := range []string{"tmpfs", "notmpfile", "huge"} {
		t.Run(name, func(t *testing.T) {
			needRoot(t)
			dir := t.TempDir()
			c := start(t, name, func(cmd *exec.Cmd) { attr(cmd).Unshareflags = syscall.CLONE_NEWNS })
			c.say("%s", dir)
			c.end()
		})
	}
}

func childTmpfs(l *line) {
	dir := l.hear()
	l.must(unix.Mount("none", dir, "tmpfs", 0, "size=8M"))
	m := l.mapper(Config{Ways: WayFile, Roots: Roots{Shm: dir}})
	_, _, err := m.Alloc(9 * mib)
	l.limited(err, "8.0 MiB free of 8.0 MiB on "+dir, "mount -o remount,size=18M "+dir)
	own, tok, err := m.Alloc(6 * mib)
	l.must(err)
	free := unlimited()
	free.readDir(Roots{Shm: dir})
	l.check(free.DirFree <= 2*mib, "%d bytes are free: nothing was reserved", free.DirFree)
	_, _, err = m.Alloc(3 * mib)
	l.limited(err, "free of 8.0 MiB on", "remount")
	// Fill the rest behind the mapper's back: what it gave out stays good to touch.
	l.must(fill(filepath.Join(dir, "filler")))
	for i := 0; i < own.Bytes; i += 512 {
		own.Data()[i] = 1
	}
	peer, err := m.Map(tok)
	l.must(err)
	l.check(peer.Data()[5*mib] == 1, "the peer reads %d", peer.Data()[5*mib])
	// And where the look comes before the rest is gone, the call that reserves says it.
	o := object{kind: kindFile, full: 4 * mib}
	o.fd, err = makeFile(m.c, 1)
	l.must(err)
	l.must(o.grow())
	err = m.reserve(need{what: "late", memory: o.full, dir: o.full}, o, mem.Range{})
	l.limited(err, "free of 8.0 MiB on", "remount")
	l.check(errors.Is(err, unix.ENOSPC), "error %v", err)
	l.must(unix.Close(o.fd))
	l.must(m.Close())
	l.must(os.Remove(filepath.Join(dir, "filler")))
	m = l.mapper(Config{Ways: WayFile, Roots: Roots{Shm: dir}})
	_, _, err = m.Alloc(8 * mib)
	l.must(err) // all is given back
	l.must(m.Close())
}

func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	chunk := make([]byte, 4096)
	for {
		if _, err := f.Write(chunk); err != nil {
			if errors.Is(err, unix.ENOSPC) {
				return nil
			}
			return err
		}
	}
}

// childNoTmpfile makes a file as a file system without O_TMPFILE needs it: with a name, which is gone at once.
func childNoTmpfile(l *line) {
	dir := l.hear()
	c := Config{What: "child", Roots: Roots{Shm: dir}}
	fd, err := makeNamed(c, 42)
	l.must(err)
	names, err := os.ReadDir(dir)
	l.must(err)
	l.check(len(names) == 0, "it has a name: %v", names)
	var st unix.Stat_t
	l.must(unix.Fstat(fd, &st))
	l.check(st.Nlink == 0 && st.Mode&0o777 == 0o600, "links %d mode %o", st.Nlink, st.Mode)
	l.must(unix.Close(fd))
	// A name that is taken, by a link of a stranger's for example, is not followed and not taken away.
	l.must(os.Symlink("/etc/passwd", filepath.Join(dir, memfdName(43))))
	_, err = makeNamed(c, 43)
	l.check(errors.Is(err, unix.EEXIST), "error %v", err)
}

// childHuge asks for huge pages where the kernel gives them on advice: here a tmpfs mounted so, and a setting
// that says so.
func childHuge(l *line) {
	dir := l.hear()
	l.must(unix.Mount("none", dir, "tmpfs", 0, "size=64M,huge=advise"))
	sys := filepath.Join(dir, "sys")
	l.must(os.MkdirAll(filepath.Join(sys, "kernel/mm/transparent_hugepage"), 0o755))
	l.must(os.WriteFile(filepath.Join(sys, "kernel/mm/transparent_hugepage/shmem_enabled"), []byte("always within_size [advise] never deny force\n"), 0o644))
	m := l.mapper(Config{Ways: WayFile, Roots: Roots{Shm: dir, Sys: sys}})
	own, tok, err := m.Alloc(16 * mib)
	l.must(err)
	l.check(hugeKiB(own) >= 8<<10, "%d KiB of huge pages", hugeKiB(own))
	peer, err := m.Map(tok)
	l.must(err)
	peer.Data()[15*mib] = 1
	l.check(own.Data()[15*mib] == 1, "not the same memory")
	_, _, err = m.Alloc(60 * mib)
	l.limited(err, "free of 64.0 MiB", "remount")
	l.must(m.Close())
	plain := l.mapper(Config{Ways: WayFile, Roots: Roots{Shm: dir, Sys: "/nowhere"}})
	own, _, err = plain.Alloc(16 * mib)
	l.must(err)
	l.check(hugeKiB(own) == 0, "%d KiB of huge pages unasked", hugeKiB(own))
	l.must(plain.Close())
}

// hugeKiB is how much of r the kernel maps with huge pages.
func hugeKiB(r mem.Range) int64 {
	text, _ := os.ReadFile("/proc/self/smaps")
	_, after, _ := strings.Cut(string(text), fmt.Sprintf("%x-", r.Addr()))
	after, _, _ = strings.Cut(after, "VmFlags")
	return fieldOf([]byte(after), "ShmemPmdMapped:")
}

// TestReadLimits: this machine's limits are what its own tools say.
func TestReadLimits(t *testing.T) {
	l := ReadLimits(Roots{})
	require.Positive(t, l.Available)
	require.NotEqual(t, int64(Unlimited), l.Available)
	require.Equal(t, "/dev/shm", l.Dir)
	require.True(t, l.DirMemory)
	require.Positive(t, l.DirSize)
	require.GreaterOrEqual(t, l.DirSize, l.DirFree)
	require.Positive(t, l.MapsUsed)
	require.Less(t, l.MapsUsed, l.MaxMaps)
	require.Positive(t, l.FilesUsed)
	require.Less(t, l.FilesUsed, l.OpenFiles)
	text, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	require.InDelta(t, strings.Count(string(text), "\n"), l.MapsUsed, 5)
}

// TestInjectedMachine: what the files say is what Alloc obeys.
func TestInjectedMachine(t *testing.T) {
	base := map[string]string{
		"self/cgroup": "0::/job\n", "self/mountinfo": mountV2, "meminfo": "MemFree: 5 kB\nMemAvailable:   2048 kB\nCommitLimit: 4096 kB\nCommitted_AS: 3072 kB\n",
		"sys/vm/overcommit_memory": "0\n", "sys/vm/max_map_count": "65530\n", "self/maps": "a\nb\nc\n",
		"cg/job/memory.max": "max\n", "cg/job/memory.current": "0\n",
	}
	for name, c := range map[string]struct {
		file, text string
		bytes      int
		found      string // empty: it works
	}{
		"fits":         {"x", "", 2 << 20, ""},
		"memory":       {"x", "", 2<<20 + 1, "2.0 MiB of memory available"},
		"strict":       {"sys/vm/overcommit_memory", "2\n", 1<<20 + 1, "1.0 MiB left of the commit limit"},
		"strict, fits": {"sys/vm/overcommit_memory", "2\n", 1 << 20, ""},
		"cgroup":       {"cg/job/memory.max", "500000\n", 500_001, "488.3 KiB free of 488.3 KiB in the control group"},
		"maps":         {"sys/vm/max_map_count", "3\n", 1, "3 of 3 mappings in use"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{c.file: c.text}
			for k, v := range base {
				if k != c.file {
					files[k] = v
				}
			}
			root := tree(t, files)
			m := open(t, Config{What: "test", Ways: WayMemfd | WayProc, Roots: Roots{Proc: root, Cgroup: root}})
			_, _, err := m.Alloc(c.bytes)
			if c.found == "" {
				require.NoError(t, err)
				return
			}
			var limit *transport.LimitError
			require.ErrorAs(t, err, &limit)
			require.Contains(t, limit.Found, c.found)
			require.Contains(t, limit.What, "of shared memory for the test")
			require.Zero(t, m.Stats().Allocs)
		})
	}
}
