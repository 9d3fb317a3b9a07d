package verbs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gopgas/internal/mem"
	"gopgas/transport"
	"gopgas/transport/verbs/internal/ibv"
)

// Sizes that a domain asks for; the device may grant less.
const (
	wantPost   = 128 // operations in flight on one pair
	leastPost  = 4   // with fewer a pair is of no use
	wantInline = 256 // bytes
	wantReads  = 16  // reads and atomics of one pair at once
	spare      = 16  // pairs beyond one for each rank: old incarnations that are being drained
	mostCQE    = 1 << 20
)

// sizes is how large a domain makes its queues.
type sizes struct {
	post  int // MaxPost
	pairs int // at once, old incarnations included
	recvs int
	cqe   int
	sge   int
	reads int
}

// Bytes of the rings, whose memory some drivers pin as they do registrations: an entry of a completion queue, a receive, and an operation with its
// inline payload. Devices differ by little, and round up to powers of two, which is within ringShare.
const (
	cqeBytes  = 64
	recvBytes = 32
	postBytes = 64 + wantInline
)

// ringShare is how small a part of what may be pinned the rings take at most, as long as queue pairs keep shallowPost operations.
const (
	ringShare   = 8
	shallowPost = 16
)

// rings is what the rings of a job of size ranks take, bytes, when each is connected with each.
func (s sizes) rings(size int) int64 {
	return int64(cqeBytes*s.cqe + recvBytes*s.recvs + size*(s.post+1)*postBytes)
}

// sysDevices is where the kernel lists RDMA devices.
const sysDevices = "/sys/class/infiniband"

// pinsRings reports whether a device of those listed pins its rings: the drivers of real ones do, while Soft-RoCE and siw map theirs out of the
// kernel's memory.
func pinsRings(devices, name string) bool {
	at, err := filepath.EvalSymlinks(filepath.Join(devices, name))
	return err == nil && !strings.Contains(at, "/virtual/")
}

// part is what of a limit of memory that may be pinned, -1 where there is none, one of size ranks has for registrations, beside the rings where
// these are charged: ranks of one process share its limit.
func (s sizes) part(limit int64, size int, together, charged bool) int64 {
	if limit < 0 {
		return limit
	}
	limit = limitOf(limit, size, together)
	if charged {
		limit -= s.rings(size)
	}
	return max(1, limit)
}

// limitOf is a rank's part of the process's limit.
func limitOf(limit int64, size int, together bool) int64 {
	if together && limit > 0 {
		return limit / int64(size)
	}
	return limit
}

// plan divides what a device can hold among the pairs of a job of size ranks, so that the completion queue holds
// all that can be outstanding (W1). pin is how much the rank may pin, -1 for no limit: where that is little the rings are short.
func plan(l *ibv.Limits, size int, pin int64) (sizes, error) {
	s := sizes{
		pairs: size + spare,
		recvs: min(transport.Config{Size: size}.Receives(), int(l.MaxRecvs)),
		sge:   min(int(l.MaxSGE), len(transport.Op{}.SGE)),
		reads: min(wantReads, int(l.MaxReads), int(l.MaxInitReads)),
	}
	most := min(int(l.MaxCQE), mostCQE)
	s.recvs = min(s.recvs, most/4)
	s.post = min(wantPost, int(l.MaxSends)-1, (most-s.recvs)/s.pairs-1)
	s.cqe = s.pairs*(s.post+1) + s.recvs
	for pin >= 0 && s.rings(size) > pin/ringShare && s.post > shallowPost {
		s.post = max(s.post/2, shallowPost)
		s.cqe = s.pairs*(s.post+1) + s.recvs
	}
	if s.post < leastPost {
		return s, &transport.LimitError{
			What:    fmt.Sprintf("completion queue for %d ranks", size),
			Found:   fmt.Sprintf("%d entries at most, %d operations in a queue pair at most", l.MaxCQE, l.MaxSends),
			Needed:  fmt.Sprintf("%d entries", s.pairs*(leastPost+1)+s.recvs),
			Setting: "start fewer ranks, or use another device (PGAS_DEVICE) or transport (PGAS_TRANSPORT)",
		}
	}
	return s, nil
}

// rlimitMemlock is RLIMIT_MEMLOCK, which package syscall does not name.
const rlimitMemlock = 8

// memlock reads how many bytes this process may pin, after raising the limit as far as it may; -1: no limit.
func memlock() int64 {
	if mayLock() {
		return -1
	}
	var r syscall.Rlimit
	if err := syscall.Getrlimit(rlimitMemlock, &r); err != nil {
		return -1
	}
	if r.Cur < r.Max {
		raised := syscall.Rlimit{Cur: r.Max, Max: r.Max}
		if syscall.Setrlimit(rlimitMemlock, &raised) == nil {
			r = raised
		}
	}
	if r.Cur > 1<<62 {
		return -1
	}
	return int64(r.Cur)
}

// capIPCLock is the number of the capability that lifts RLIMIT_MEMLOCK.
const capIPCLock = 14

// mayLock reports whether this process has CAP_IPC_LOCK.
func mayLock() bool {
	caps, err := strconv.ParseUint(statusField("CapEff"), 16, 64)
	return err == nil && caps>>capIPCLock&1 == 1
}

// statusField returns a line of /proc/self/status.
func statusField(name string) string {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// pinned is what the kernel has charged this process for registrations, all its domains together.
func pinned() int64 {
	kib, err := strconv.ParseInt(strings.TrimSuffix(statusField("VmPin"), " kB"), 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}

// account is what stood against a registration that the kernel refused.
type account struct {
	bytes   int64 // wanted
	limit   int64 // that may be pinned; -1: no limit
	pinned  int64 // already
	regions int   // of this domain
	most    int   // that the device can hold
	device  string
}

// registerError explains why the kernel refused a registration.
func registerError(err error, a account) error {
	what := fmt.Sprintf("registering %s with %s", mem.Text(a.bytes), a.device)
	switch {
	case errors.Is(err, syscall.EFAULT):
		return fmt.Errorf("register %d bytes: the memory is not mapped, or may not be written and the right to write was asked for: %w", a.bytes, err)
	case !errors.Is(err, syscall.ENOMEM) && !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EAGAIN):
		return fmt.Errorf("register %d bytes: %w", a.bytes, err)
	case a.limit >= 0 && a.pinned+a.bytes > a.limit:
		return &transport.LimitError{
			What:    what,
			Found:   fmt.Sprintf("%s of %s pinned already (RLIMIT_MEMLOCK; a page counts once for each registration of it)", mem.Text(a.pinned), mem.Text(a.limit)),
			Needed:  mem.Text(a.bytes),
			Setting: "ulimit -l unlimited, or memlock in /etc/security/limits.conf, or LimitMEMLOCK=infinity in the unit of the job's daemon",
			Err:     err,
		}
	case a.most > 0 && a.regions >= a.most:
		return &transport.LimitError{
			What: what, Found: fmt.Sprintf("%d registrations, all that the device has", a.regions),
			Needed: "one more", Setting: "register larger pieces, or fewer ranks on this device", Err: err,
		}
	default:
		return &transport.LimitError{
			What:    what,
			Found:   fmt.Sprintf("%s pinned, %d of %d registrations by this rank; other processes use the device's too", mem.Text(a.pinned), a.regions, a.most),
			Needed:  mem.Text(a.bytes),
			Setting: "free memory, or use fewer registrations; look at: rdma resource show mr",
			Err:     err,
		}
	}
}

// Codes of a queue pair's timeout: 4.096 us times two to its power (InfiniBand specification, volume 1, section 9.7.6.1.3).
const (
	leastAckTimeout = 14 // 67 ms
	mostAckTimeout  = 20 // 4.3 s
)

// ackTimeout is the code of how long a queue pair waits for an answer before it sends anew. All its tries take a quarter of the
// patience with a silent peer, so that a connection can be made again and tried as well, but half a second at least: less is no sign of a
// death, since a machine may be busy for that long.
func ackTimeout(patience time.Duration) uint8 {
	code := uint8(leastAckTimeout)
	for code < mostAckTimeout && allTries(code+1) <= patience/4 {
		code++
	}
	return code
}

// allTries is how long a queue pair tries with the code of a timeout, by the standard.
func allTries(code uint8) time.Duration { return (retries + 1) * 4096 * time.Nanosecond << code }

// nicSilence is how long the NIC tries to get an answer.
func nicSilence(patience time.Duration) time.Duration { return allTries(ackTimeout(patience)) }
