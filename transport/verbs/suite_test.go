package verbs

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// devicesVariable lists the devices that ranks use in turn; without it all use the first.
const devicesVariable = "VERBS_TEST_DEVICES"

// jobConfig is what the ranks of one test's job have in common, and each one's device.
func jobConfig(rank, size int) transport.Config {
	devices := strings.Split(os.Getenv(devicesVariable), ",")
	return transport.Config{
		Rank: rank, Size: size, Job: "test", Secret: []byte("of this test alone"), Sched: sched.Goroutine(size),
		Device: devices[rank%len(devices)],
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

// rounds is how often the suite repeats what is a matter of chance: VERBS_TEST_ROUNDS, or 100.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("VERBS_TEST_ROUNDS")); err == nil && n > 0 {
		return n
	}
	return 100
}

func TestConformance(t *testing.T) {
	transporttest.Run(t, openRanks, transporttest.Options{
		Kill: func(t *testing.T, d transport.Domain) {
			d.(*domain).silent.Store(true)
			require.NoError(t, d.Close())
		},
		Timeout: 20 * time.Second, Rounds: rounds(), Ops: rounds(), Held: held,
	})
}
