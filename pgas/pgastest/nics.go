package pgastest

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"gopgas/transport"
	"gopgas/transport/auto"
	"gopgas/transport/shm"
)

// pinned is how much memory the ranks of a test's worlds may register with a software NIC, all together.
const pinned = 1 << 30

// least is the limit of locked memory below which software NICs are left out of tests that do not ask for them.
const least = 256 << 20

// real holds the real NICs of this process. A software NIC locks pages, which the kernel does not count, so all worlds of
// the process share one provider of each kind.
var real = struct {
	sync.Mutex
	providers map[string]transport.Provider
	groups    map[string][]*shm.Local // by job, for the queues of the soft NIC
}{providers: map[string]transport.Provider{}, groups: map[string][]*shm.Local{}}

// provider returns the NIC called name.
func provider(name string) (transport.Provider, error) {
	real.Lock()
	defer real.Unlock()
	if p := real.providers[name]; p != nil {
		return p, nil
	}
	p, err := auto.Provider(name, auto.Config{MaxPinned: pinned, SoftMapper: queueMapper})
	if err == nil {
		real.providers[name] = p
	}
	return p, err
}

// queueMapper gives the ranks of a job mappers of one group, in which the race detector sees what orders their accesses.
func queueMapper(c transport.Config) (transport.Mapper, error) {
	real.Lock()
	defer real.Unlock()
	g := real.groups[c.Job]
	if g == nil {
		g = shm.NewGroup(c.Size, shm.Config{What: "queues of the soft NIC"})
		real.groups[c.Job] = g
	}
	return g[c.Rank], nil
}

// forget lets go of a job that has ended.
func forget(job string) {
	real.Lock()
	defer real.Unlock()
	delete(real.groups, job)
}

// mayPin reports whether this process may lock as much memory as worlds on software NICs need, and says so once if not.
var mayPin = sync.OnceValue(func() bool {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l); err != nil || l.Max >= least {
		return true
	}
	// Who is privileged may lock more than that; trying is the only way to know.
	b := make([]byte, l.Max+1<<16)
	err := unix.Mlock(b)
	if err == nil {
		err = unix.Munlock(b)
	}
	if errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EAGAIN) {
		fmt.Fprintf(os.Stderr, "pgastest: no tests on the paths soft and tcp: they lock up to %d MiB, and RLIMIT_MEMLOCK is %d KiB; "+
			"raise it (ulimit -l unlimited), or name the paths in %s\n", least>>20, l.Max>>10, PathsVariable)
		return false
	}
	return true
})
