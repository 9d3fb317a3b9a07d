package sched

import (
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Wait describes one parked wait for the hang report.
type Wait struct {
	What
	Since time.Duration // how long it has waited
	Where string        // file:line of the program's call that waits
}

// record is a wait in the list. The program counters are resolved only when somebody asks.
type record struct {
	what  What
	began time.Duration
	pcs   [24]uintptr
	n     int
}

type registry struct {
	mu      sync.Mutex
	records []*record // in the order they parked
	free    []*record // kept, so that a wait that parks allocates only where more wait than ever before
}

// parkedAtOnce is how many waits of a rank may be parked at once before one allocates.
const parkedAtOnce = 16

// prepare makes the first records, so that the first wait that parks allocates nothing either.
func (r *registry) prepare() {
	slab := make([]record, parkedAtOnce)
	r.records, r.free = make([]*record, 0, parkedAtOnce), make([]*record, 0, parkedAtOnce)
	for i := range slab {
		r.free = append(r.free, &slab[i])
	}
}

func (r *registry) add(what What, began time.Duration) *record {
	rec := r.take()
	rec.what, rec.began = what, began
	rec.n = runtime.Callers(3, rec.pcs[:])
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records = append(r.records, rec)
	return rec
}

// Outside lists a wait that goes on outside of the scheduler, in a call to a launcher for instance, until end is called.
func (s *Sched) Outside(what What) (end func()) {
	if s.sim != nil {
		return func() {} // whatever waits in virtual time does it in the scheduler
	}
	rec := s.waits.add(what, s.Now())
	return func() { s.waits.remove(rec) }
}

func (r *registry) take() *record {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.free); n > 0 {
		rec := r.free[n-1]
		r.free = r.free[:n-1]
		return rec
	}
	return new(record)
}

func (r *registry) setPeer(rec *record, peer int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec.what.Peer = peer
}

func (r *registry) remove(rec *record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.records, rec); i >= 0 {
		r.records = slices.Delete(r.records, i, i+1)
		r.free = append(r.free, rec)
	}
}

// Awaited appends the peers of the waits that have lasted for so long to peers, each as often as it is waited for.
func (s *Sched) Awaited(peers []int, least time.Duration) []int {
	now := s.Now()
	r := &s.waits
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rec := range r.records {
		if now-rec.began >= least {
			peers = append(peers, rec.what.Peer)
		}
	}
	return peers
}

func (r *registry) list(now time.Duration) []Wait {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Wait, len(r.records))
	for i, rec := range r.records {
		out[i] = Wait{What: rec.what, Since: now - rec.began, Where: rec.where()}
	}
	return out
}

// Caller returns the innermost call above its caller's that is not the library's own, as folder/file:line.
func Caller() string {
	var pcs [64]uintptr
	return Where(pcs[:runtime.Callers(3, pcs[:])])
}

func (r *record) where() string { return Where(r.pcs[:r.n]) }

// Where returns file:line of the innermost call that is not the library's own, nor one of Go's packages that a program hands its
// memory to, of return addresses as runtime.Callers gives them; "" where there are none, or all are the library's own, which has goroutines
// that no call of the program's began. It takes microseconds.
func Where(pcs []uintptr) string {
	if len(pcs) == 0 {
		return ""
	}
	frames := runtime.CallersFrames(pcs)
	for {
		f, more := frames.Next()
		if !more && f.Function == "runtime.goexit" {
			return ""
		}
		if !more || !inLibrary(f.Function, f.File) && !inGo(f.Function) {
			return shortFile(f.File) + ":" + strconv.Itoa(f.Line)
		}
	}
}

// inGo tells the functions of Go's own packages by the first part of their paths; a program's are main's, or begin with its module, of which
// the first part may have dots, as net.example.org has.
func inGo(function string) bool {
	path, _, _ := strings.Cut(function, "[") // behind it are the types that it was made for
	first, _, folders := strings.Cut(path, "/")
	if !folders {
		first, _, _ = strings.Cut(path, ".")
	}
	switch first {
	case "runtime", "internal", "reflect", "sync", "syscall", "slices", "sort", "maps", "iter", "bytes", "strings", "encoding", "math", "io", "os",
		"bufio", "net", "crypto", "hash", "compress", "fmt":
		return true
	}
	return false
}

// inLibrary tells the library's rooms from programs and tests that live in the same module.
func inLibrary(function, file string) bool {
	rest, ours := strings.CutPrefix(function, "gopgas/")
	if !ours {
		return false
	}
	for _, programs := range []string{"examples/", "test/", "cmd/"} {
		if strings.HasPrefix(rest, programs) {
			return false
		}
	}
	return !strings.HasSuffix(file, "_test.go")
}

// shortFile keeps a file's folder and name.
func shortFile(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		if j := strings.LastIndexByte(path[:i], '/'); j >= 0 {
			return path[j+1:]
		}
	}
	return path
}
