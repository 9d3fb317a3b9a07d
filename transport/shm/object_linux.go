package shm

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// reserveStep is how much is reserved in one call. A signal undoes the call it interrupts, so a step is short;
// between steps the machine is looked at again, because other ranks reserve at the same time.
const reserveStep = 16 << 20

// hugeBytes is the size from which huge pages are asked for.
const hugeBytes = 2 << 20

// object is memory with a descriptor, before it is anybody's.
type object struct {
	kind kind
	fd   int
	id   uint64 // random; in the name of a memfd
	full int64  // bytes in whole pages
}

// makeObject makes an empty object by the first way that works. The error of a way that is only refused is kept
// for the case that none works; one that says a limit was reached is returned at once.
func (m *Mapper) makeObject(n need, id uint64) (object, error) {
	o := object{fd: -1, id: id, full: n.file}
	var reasons []string
	var last error
	for _, way := range [...]struct {
		way  Ways
		kind kind
		make func(Config, uint64) (int, error)
	}{{WayMemfd, kindMemfd, makeMemfd}, {WayFile, kindFile, makeFile}} {
		if m.c.Ways&way.way == 0 {
			continue
		}
		if way.kind == kindFile { // memory was looked at before, the folder was not
			n.dir = n.file
			if err := m.machine.check(n); err != nil {
				return o, err
			}
		}
		fd, err := way.make(m.c, id)
		if err == nil {
			o.kind, o.fd = way.kind, fd
			if err = o.grow(); err == nil {
				return o, nil
			}
			unix.Close(fd)
		}
		if limit := m.explain(n, err); limit != nil {
			return o, limit
		}
		reasons = append(reasons, fmt.Sprintf("%s: %v", way.way, err))
		last = err
	}
	return o, fmt.Errorf("make %s: %w (%s)", n.what, errors.Join(transport.ErrUnsupported, last), strings.Join(reasons, "; "))
}

// makeMemfd returns a new memfd. Its name carries the id by which a peer knows it again.
func makeMemfd(c Config, id uint64) (int, error) {
	name := memfdName(id) + "-" + strings.Map(plainName, c.What[:min(len(c.What), 64)])
	flags := unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate(name, flags)
	}
	if err != nil {
		return -1, fmt.Errorf("memfd_create: %w", err)
	}
	if err := unix.Fchmod(fd, 0o600); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("fchmod of a memfd: %w", err)
	}
	return fd, nil
}

func memfdName(id uint64) string { return fmt.Sprintf("gopgas-%016x", id) }

func plainName(r rune) rune {
	if r <= ' ' || r >= 0x7f || r == '/' {
		return '_'
	}
	return r
}

// makeFile returns a file without a name in the shared memory folder.
func makeFile(c Config, id uint64) (int, error) {
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Open(c.Roots.Shm, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
		return err
	})
	if err == nil {
		return fd, nil
	}
	// EISDIR and ENOENT are what a kernel without O_TMPFILE says, EOPNOTSUPP a file system without it.
	if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) {
		return -1, fmt.Errorf("a file in %s: %w", c.Roots.Shm, err)
	}
	return makeNamed(c, id)
}

// makeNamed makes a file with a name and takes the name away at once.
func makeNamed(c Config, id uint64) (int, error) {
	path := filepath.Join(c.Roots.Shm, memfdName(id))
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Open(path, unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
		return err
	})
	if err != nil {
		return -1, fmt.Errorf("create %s: %w", path, err)
	}
	if err := unix.Unlink(path); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("unlink %s: %w", path, err)
	}
	return fd, nil
}

// grow gives the object its size, and seals a memfd there: no peer can shrink it under a mapping.
func (o object) grow() error {
	if err := retry(func() error { return unix.Ftruncate(o.fd, o.full) }); err != nil {
		return fmt.Errorf("ftruncate to %s: %w", size(o.full), err)
	}
	if o.kind != kindMemfd {
		return nil
	}
	seals := unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(uintptr(o.fd), unix.F_ADD_SEALS, seals); err != nil {
		return fmt.Errorf("seal a memfd: %w", err)
	}
	return nil
}

// mmap maps the object's pages.
func mmap(fd int, full int64) (mem.Range, error) {
	p, err := unix.MmapPtr(fd, 0, nil, uintptr(full), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return mem.Range{}, fmt.Errorf("mmap of %s: %w", size(full), err)
	}
	return mem.Range{Base: p, Bytes: int(full)}, nil
}

func munmap(r mem.Range) error {
	if err := unix.MunmapPtr(r.Base, uintptr(r.Bytes)); err != nil {
		return fmt.Errorf("munmap: %w", err)
	}
	return nil
}

// reserve makes the kernel set every page of the object aside, so that touching one later cannot fail.
//
// A page of a memfd is charged when it is first touched, and there is nobody to return an error to then:
// SIGBUS where the commit limit or a tmpfs is exhausted, the OOM killer where memory is. fallocate charges the
// same pages in a call that can fail. It does not clear them, which is left to the first touch.
func (m *Mapper) reserve(n need, o object, r mem.Range) error {
	n = need{what: n.what, memory: n.memory, dir: n.dir}
	for off := int64(0); off < o.full; off += reserveStep {
		if off > 0 {
			n.memory = o.full - off
			n.dir = min(n.dir, n.memory)
			if err := m.machine.check(n); err != nil {
				return err
			}
		}
		step := min(reserveStep, o.full-off)
		if m.huge && o.full >= hugeBytes {
			// fallocate knows no mapping and so no advice: huge pages come by touching.
			if unix.Madvise(r.Slice(int(off), int(step)).Data(), unix.MADV_POPULATE_WRITE) == nil {
				continue
			}
		}
		if err := retry(func() error { return unix.Fallocate(o.fd, 0, off, step) }); err != nil {
			if limit := m.explain(n, err); limit != nil {
				return limit
			}
			return fmt.Errorf("reserve %s: fallocate: %w", n.what, err)
		}
	}
	return nil
}

// explain returns the *transport.LimitError behind a system error that tells of a limit, and nil for any other.
func (m *Mapper) explain(n need, err error) error {
	if !tellsOfLimit(err) {
		return nil // before the machine is looked at, which takes a while
	}
	l := &transport.LimitError{What: n.what, Err: err, Needed: size(max(n.file, n.memory, n.address))}
	all := ReadLimits(m.c.Roots)
	switch {
	case errors.Is(err, unix.EMFILE):
		return checkLimits(need{what: n.what, files: 1}, Limits{OpenFiles: all.OpenFiles, FilesUsed: max(all.OpenFiles, all.FilesUsed), FileSize: Unlimited})
	case errors.Is(err, unix.ENFILE):
		l.Found, l.Needed, l.Setting = "no file descriptor left on the machine", "1 more", "sysctl -w fs.file-max=..., twice the present value"
	case errors.Is(err, unix.EFBIG):
		l.Found, l.Setting = size(all.FileSize)+" as the largest file", "ulimit -f unlimited, or a file system that holds larger files"
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		l.Found, l.Setting = size(max(all.CommitFree, 0))+" left of the commit limit", "sysctl -w vm.overcommit_memory=0, or a larger vm.overcommit_ratio"
		if n.dir > 0 {
			l.Found, l.Setting = fmt.Sprintf("%s free of %s on %s", size(all.DirFree), size(all.DirSize), all.Dir), dirCure(n, all)
		}
	case errors.Is(err, unix.ENOMEM) && n.address > 0: // mmap
		l.Found = fmt.Sprintf("%d of %d mappings in use, %s of address space left", all.MapsUsed, all.MaxMaps,
			size(left(all.AddressSpace, all.AddressUsed)))
		l.Setting = "sysctl vm.max_map_count, ulimit -v, sysctl vm.overcommit_memory"
	default: // ENOMEM elsewhere
		l.Found = fmt.Sprintf("%s of memory available, %s free in the control group", size(all.Available), size(all.CgroupFree))
		l.Setting = "fewer ranks on this node, less memory per rank, or a larger node"
	}
	return l
}

func tellsOfLimit(err error) bool {
	for _, e := range [...]error{unix.EMFILE, unix.ENFILE, unix.EFBIG, unix.ENOSPC, unix.EDQUOT, unix.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// hugeAdvised reports whether the kernel gives shared memory huge pages where they are asked for, and only there.
func hugeAdvised(r Roots) bool {
	b, err := os.ReadFile(filepath.Join(r.Sys, "kernel/mm/transparent_hugepage/shmem_enabled"))
	return err == nil && strings.Contains(string(b), "[advise]")
}

// identity is what a process's tokens say of it.
type identity struct {
	boot  [16]byte
	pidNS uint64
	pid   uint32
}

func readIdentity(r Roots) identity {
	id := identity{pid: uint32(os.Getpid())}
	if b, err := os.ReadFile(filepath.Join(r.Proc, "sys/kernel/random/boot_id")); err == nil {
		if raw, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(string(b)), "-", "")); err == nil && len(raw) == 16 {
			id.boot = [16]byte(raw)
		}
	}
	if s, err := os.Readlink(filepath.Join(r.Proc, "self/ns/pid")); err == nil {
		if _, err := fmt.Sscanf(s, "pid:[%d]", &id.pidNS); err != nil {
			id.pidNS = 0
		}
	}
	return id
}
