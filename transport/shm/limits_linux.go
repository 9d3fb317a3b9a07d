package shm

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// ReadLimits reads all limits of this machine and process. It opens a few files below r and counts mappings and
// descriptors; what cannot be read is Unlimited.
func ReadLimits(r Roots) Limits {
	m := newMachine(r.withDefaults())
	l := m.limits(need{memory: 1, file: 1, dir: 1, address: 1, maps: 1, files: 1})
	l.FilesUsed = countFiles(m.roots)
	return l
}

// machine reads limits and remembers what does not change.
type machine struct {
	roots   Roots
	cgroups []cgroupDir

	mu      sync.Mutex
	counted int64 // mappings when last counted; 0: never
	made    int64 // mappings made since
}

// recountMaps is after how many new mappings they are counted again: a count reads a line for each.
const recountMaps = 1024

func newMachine(r Roots) *machine { return &machine{roots: r, cgroups: cgroupDirs(r)} }

// check is checkLimits against the machine as it is now.
func (m *machine) check(n need) error { return checkLimits(n, m.limits(n)) }

// limits reads those limits that n asks about.
func (m *machine) limits(n need) Limits {
	l := unlimited()
	if n.file > 0 {
		l.FileSize = rlimit(unix.RLIMIT_FSIZE)
	}
	if n.address > 0 {
		if l.AddressSpace = rlimit(unix.RLIMIT_AS); l.AddressSpace != Unlimited {
			l.AddressUsed = addressUsed(m.roots)
		}
	}
	if n.files > 0 {
		l.OpenFiles = rlimit(unix.RLIMIT_NOFILE)
	}
	if n.maps > 0 {
		if most, ok := readNumber(filepath.Join(m.roots.Proc, "sys/vm/max_map_count")); ok {
			l.MaxMaps = most
			l.MapsUsed = m.mapsUsed(most)
		}
	}
	if n.dir > 0 {
		l.readDir(m.roots)
	}
	if n.memory > 0 && (n.dir == 0 || l.DirMemory) {
		l.readMemory(m.roots, m.cgroups)
	}
	return l
}

// readMemory reads how much memory can be had.
func (l *Limits) readMemory(r Roots, groups []cgroupDir) {
	if info, err := os.ReadFile(filepath.Join(r.Proc, "meminfo")); err == nil {
		l.Available = fieldOf(info, "MemAvailable:") << 10
		if mode, ok := readNumber(filepath.Join(r.Proc, "sys/vm/overcommit_memory")); ok && mode == 2 {
			l.StrictCommit = true
			l.CommitFree = (fieldOf(info, "CommitLimit:") - fieldOf(info, "Committed_AS:")) << 10
		}
	}
	tightestCgroup(groups, l)
}

// readDir reads how much the folder of WayFile holds.
func (l *Limits) readDir(r Roots) {
	l.Dir = r.Shm
	var st unix.Statfs_t
	if err := retry(func() error { return unix.Statfs(r.Shm, &st) }); err != nil {
		return // making the file will say why
	}
	l.DirMemory = st.Type == unix.TMPFS_MAGIC
	if l.DirMemory && st.Blocks == 0 {
		return // a tmpfs mounted without a size
	}
	l.DirFree, l.DirSize = int64(st.Bavail)*st.Bsize, int64(st.Blocks)*st.Bsize
}

// mapsUsed estimates the mappings of this process from above: the last count and all made since.
func (m *machine) mapsUsed(most int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counted == 0 || m.made >= recountMaps || m.counted+m.made > most-spareMaps {
		if n := countMaps(m.roots); n > 0 {
			m.counted, m.made = n, 0
		}
	}
	return m.counted + m.made
}

// mapped notes a new mapping.
func (m *machine) mapped() {
	m.mu.Lock()
	m.made++
	m.mu.Unlock()
}

// countMaps counts the lines of /proc/self/maps, 0 where it cannot be read.
func countMaps(r Roots) int64 {
	f, err := os.Open(filepath.Join(r.Proc, "self/maps"))
	if err != nil {
		return 0
	}
	defer f.Close()
	buf := make([]byte, 64<<10)
	lines := 0
	for {
		n, err := f.Read(buf)
		lines += bytes.Count(buf[:n], []byte{'\n'})
		if err != nil {
			if !errors.Is(err, io.EOF) {
				return 0
			}
			return int64(lines)
		}
	}
}

// countFiles counts this process's descriptors, 0 where they cannot be listed.
func countFiles(r Roots) int64 {
	d, err := os.Open(filepath.Join(r.Proc, "self/fd"))
	if err != nil {
		return 0
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return 0
	}
	return int64(len(names)) - 1 // one is the listing's own
}

// addressUsed is the size of this process's address space.
func addressUsed(r Roots) int64 {
	b, err := os.ReadFile(filepath.Join(r.Proc, "self/statm"))
	if err != nil {
		return 0
	}
	pages := int64(0)
	for _, c := range b {
		if c < '0' || c > '9' {
			break
		}
		pages = pages*10 + int64(c-'0')
	}
	return pages * int64(os.Getpagesize())
}

func rlimit(which int) int64 {
	var l unix.Rlimit
	if err := unix.Getrlimit(which, &l); err != nil || l.Cur > math.MaxInt64 {
		return Unlimited
	}
	return int64(l.Cur)
}

// retry calls f until it is not interrupted by a signal.
func retry(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
