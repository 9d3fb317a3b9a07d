package verbs

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// jobConfig is what the ranks of one test's job have in common.
func jobConfig(rank, size int) transport.Config {
	return transport.Config{
		Rank: rank, Size: size, Job: "test", Secret: []byte("of this test alone"), Sched: sched.Goroutine(size),
	}
}

// openRanks opens the domains of a job in this process. It skips the test where there is no RDMA device; package
// test/vm runs it where there is one.
func openRanks(t *testing.T, n int) []transport.Domain {
	t.Helper()
	var all []transport.Domain
	for i := range n {
		d, err := Provider{}.Open(t.Context(), jobConfig(i, n))
		transporttest.SkipUnless(t, err)
		all = append(all, d)
	}
	return all
}

// held counts descriptors, and mappings of the device's queues.
func held() int {
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return -1
	}
	return len(fds) + strings.Count(string(maps), "uverbs")
}

// alloc returns memory that the device may keep: mapped, not of the Go heap.
func alloc(_ *testing.T, bytes int) mem.Range {
	return mem.Of(make([]uint64, (bytes+7)/8)).Slice(0, bytes)
}

func TestConformance(t *testing.T) {
	transporttest.Run(t, openRanks, transporttest.Options{
		Kill: func(t *testing.T, d transport.Domain) {
			d.(*domain).silent.Store(true)
			require.NoError(t, d.Close())
		},
		Timeout: 20 * time.Second, Rounds: 400, Ops: 400, Alloc: alloc, Held: held,
	})
}
