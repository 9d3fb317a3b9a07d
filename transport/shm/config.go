package shm

import (
	"fmt"
	"strings"
)

// Config tells Open and NewGroup what they work for and how. The zero value is right for a program; the other
// fields narrow what may be used, or move the roots for a test.
type Config struct {
	// What names the memory in errors and in the name of the memfd: "symmetric heap". Empty: "shared memory".
	What string
	// Ways says which ways of making and of reaching memory may be used. A group of which no member is named
	// (making: WayMemfd, WayFile; reaching: WayProc, WaySocket) is allowed as a whole, so zero allows all.
	Ways Ways
	// Twice has the memory of a group be of a kind that can be mapped a second time (package touch), where that is possible; the
	// race detector does not see it then. Memory of Open always is.
	Twice bool
	// Roots says where the system's files are.
	Roots Roots
}

// Roots are the folders in which the system's files are looked for. An empty field is the usual place.
type Roots struct {
	Proc   string // "/proc"
	Sys    string // "/sys"
	Shm    string // "/dev/shm": where WayFile makes its files
	Cgroup string // put before the mount points that Proc/self/mountinfo names; usually nothing
}

// Ways is a set of ways to make memory and to reach a peer's memory.
type Ways uint8

// The ways, each group in the order in which it is tried.
const (
	WayMemfd  Ways = 1 << iota // make: memfd_create
	WayFile                    // make: an unlinked 0600 file in Roots.Shm
	WayProc                    // reach: open /proc/<pid>/fd/<n>
	WaySocket                  // reach: ask the owner over an abstract unix socket

	makers   = WayMemfd | WayFile
	reachers = WayProc | WaySocket
)

var wayNames = [...]string{"memfd", "file", "proc", "socket"}

// String lists the ways as ParseWays takes them.
func (w Ways) String() string {
	var names []string
	for i, name := range wayNames {
		if w&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// ParseWays reads a list such as "file,socket". The empty string is the zero Ways: all.
func ParseWays(s string) (Ways, error) {
	var w Ways
	for name := range strings.SplitSeq(s, ",") {
		name = strings.TrimSpace(name)
		if name == "" && s == "" {
			break
		}
		found := false
		for i, n := range wayNames {
			if n == name {
				w |= 1 << i
				found = true
			}
		}
		if !found {
			return 0, fmt.Errorf("%q is no way to share memory: use a list of %s", name, strings.Join(wayNames[:], ", "))
		}
	}
	return w, nil
}

// withDefaults fills every empty field.
func (c Config) withDefaults() Config {
	if c.What == "" {
		c.What = "shared memory"
	}
	if c.Ways&makers == 0 {
		c.Ways |= makers
	}
	if c.Ways&reachers == 0 {
		c.Ways |= reachers
	}
	c.Roots = c.Roots.withDefaults()
	return c
}

func (r Roots) withDefaults() Roots {
	if r.Proc == "" {
		r.Proc = "/proc"
	}
	if r.Sys == "" {
		r.Sys = "/sys"
	}
	if r.Shm == "" {
		r.Shm = "/dev/shm"
	}
	return r
}

// Stats says what a mapper holds now. Reading it takes one short lock.
type Stats struct {
	Allocs, Maps         int   // this rank's own memory, and mappings of peers' memory
	AllocBytes, MapBytes int64 // their bytes, in whole pages
	ByMemfd, ByFile      int   // how Allocs were made
	ByProc, BySocket     int   // how Maps were reached
	Served               int64 // descriptors handed to peers over the socket so far
}
