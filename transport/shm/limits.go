package shm

import (
	"fmt"
	"math"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// Unlimited is the value of a limit, or of what is free, where there is none or none is known.
const Unlimited = math.MaxInt64

// spareMaps are left to the Go runtime, which ends the program when it cannot map.
const spareMaps = 1024

// Limits is what stands in the way of memory on this machine, in this process, now. Sizes are bytes.
type Limits struct {
	Available    int64  // MemAvailable: what can be had without swapping
	Cgroup       string // folder of the control group with the least free memory; "" where none has a limit
	CgroupLimit  int64  // its limit
	CgroupFree   int64  // what is free of it, page cache counted as free
	CgroupFile   string // the file that holds the limit
	StrictCommit bool   // vm.overcommit_memory is 2
	CommitFree   int64  // with StrictCommit: CommitLimit less Committed_AS

	FileSize     int64 // RLIMIT_FSIZE
	AddressSpace int64 // RLIMIT_AS
	AddressUsed  int64 // of it
	OpenFiles    int64 // RLIMIT_NOFILE
	FilesUsed    int64 // of it; 0: not counted
	MaxMaps      int64 // vm.max_map_count
	MapsUsed     int64 // of it; 0: not counted

	Dir       string // Roots.Shm
	DirFree   int64  // free there
	DirSize   int64  // its size
	DirMemory bool   // it is a tmpfs, so what lies there is memory
}

// unlimited is where a reader starts: nothing known, nothing in the way.
func unlimited() Limits {
	return Limits{
		Available: Unlimited, CgroupLimit: Unlimited, CgroupFree: Unlimited, CommitFree: Unlimited,
		FileSize: Unlimited, AddressSpace: Unlimited, OpenFiles: Unlimited, MaxMaps: Unlimited,
		DirFree: Unlimited, DirSize: Unlimited,
	}
}

// need is what a call is about to take.
type need struct {
	what    string // for the error
	memory  int64  // bytes of new memory
	file    int64  // size of the object that will hold it
	dir     int64  // bytes in Limits.Dir
	address int64  // bytes of address space
	maps    int64  // mappings
	files   int64  // descriptors
}

// checkLimits returns a *transport.LimitError for the first limit that n would pass, or nil.
func checkLimits(n need, l Limits) error {
	lack := func(found, needed, setting string) error {
		return &transport.LimitError{What: n.what, Found: found, Needed: needed, Setting: setting}
	}
	switch {
	case n.file > l.FileSize:
		return lack(size(l.FileSize)+" as the largest file (RLIMIT_FSIZE)", size(n.file),
			"ulimit -f unlimited, or fsize in /etc/security/limits.conf")
	case n.address > 0 && n.address > left(l.AddressSpace, l.AddressUsed):
		return lack(fmt.Sprintf("%s of address space left of %s (RLIMIT_AS)", size(left(l.AddressSpace, l.AddressUsed)), size(l.AddressSpace)),
			size(n.address), "ulimit -v unlimited, or as in /etc/security/limits.conf")
	case n.files > 0 && n.files > left(l.OpenFiles, l.FilesUsed):
		return lack(fmt.Sprintf("%d of %d file descriptors in use (RLIMIT_NOFILE)", l.FilesUsed, l.OpenFiles),
			fmt.Sprintf("%d more", n.files),
			fmt.Sprintf("ulimit -n %d, or nofile in /etc/security/limits.conf", 2*(l.FilesUsed+n.files)))
	case n.maps > 0 && n.maps > left(l.MaxMaps, l.MapsUsed)-min(spareMaps, l.MaxMaps/8):
		return lack(fmt.Sprintf("%d of %d mappings in use, %d of them kept for the runtime", l.MapsUsed, l.MaxMaps, min(spareMaps, l.MaxMaps/8)),
			fmt.Sprintf("%d more", n.maps), fmt.Sprintf("sysctl -w vm.max_map_count=%d", 2*(l.MapsUsed+n.maps)))
	case n.dir > l.DirFree:
		return lack(fmt.Sprintf("%s free of %s on %s", size(l.DirFree), size(l.DirSize), l.Dir), size(n.dir), dirCure(n, l))
	case l.StrictCommit && n.memory > l.CommitFree:
		return lack(size(max(l.CommitFree, 0))+" left of the commit limit (vm.overcommit_memory is 2)", size(n.memory),
			"sysctl -w vm.overcommit_memory=0, or a larger vm.overcommit_ratio")
	case n.memory > l.CgroupFree:
		return lack(fmt.Sprintf("%s free of %s in the control group %s", size(max(l.CgroupFree, 0)), size(l.CgroupLimit), l.Cgroup),
			size(n.memory), "a larger limit in "+l.CgroupFile+" (Slurm: --mem; containers: --memory)")
	case n.memory > l.Available:
		return lack(size(l.Available)+" of memory available (MemAvailable)", size(n.memory),
			"fewer ranks on this node, less memory per rank, or a larger node")
	}
	return nil
}

// Room returns a *transport.LimitError where this machine, or this process, has no room for so many bytes of memory more; what says what they are for. It reads
// files of the system, and reserves nothing.
func Room(what string, bytes int) error {
	return newMachine(Roots{}.withDefaults()).check(heapNeed(what, bytes, 0))
}

// heapNeed is what so many bytes of the process's own memory take, and some around them.
func heapNeed(what string, bytes, around int) need {
	full := int64(bytes) + int64(around)
	return need{what: fmt.Sprintf("%s of memory for the %s", size(int64(bytes)), what), memory: full, address: full}
}

// dirCure doubles a tmpfs and leaves a disk to its owner.
func dirCure(n need, l Limits) string {
	if !l.DirMemory {
		return "free space on " + l.Dir + ", or a shared memory folder on a tmpfs"
	}
	mib := (max(l.DirSize-l.DirFree, 0) + 2*n.dir + 1<<20 - 1) >> 20
	return fmt.Sprintf("mount -o remount,size=%dM %s (containers: --shm-size)", mib, l.Dir)
}

// left is limit less used, where Unlimited stays Unlimited and nothing is below zero.
func left(limit, used int64) int64 {
	if limit == Unlimited {
		return Unlimited
	}
	return max(limit-used, 0)
}

// size writes bytes for people: "64.0 MiB".
func size(bytes int64) string {
	if bytes == Unlimited {
		return "no limit"
	}
	return mem.Text(bytes)
}
