package soft_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/shm"
	"gopgas/transport/soft"
	"gopgas/transport/transporttest"
)

// inProcess opens the domains of a job whose ranks are goroutines. With heap their queues lie in the Go heap,
// where the race detector sees what orders their accesses; otherwise each rank maps the others' as processes do.
func inProcess(cfg soft.Config, heap bool) transporttest.Open {
	return func(t *testing.T, n int) []transport.Domain {
		if heap {
			group := shm.NewGroup(n, shm.Config{})
			cfg.Mapper = func(c transport.Config) (transport.Mapper, error) { return group[c.Rank], nil }
		}
		p := soft.New(cfg)
		ds := make([]transport.Domain, n)
		for r := range ds {
			d, err := p.Open(t.Context(), transport.Config{Rank: r, Size: n, Job: "test", Secret: []byte("secret"), Sched: sched.Goroutine(n)})
			require.NoError(t, err)
			ds[r] = d
		}
		return ds
	}
}

// descriptors counts the open files of this process.
func descriptors() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(list)
}

func TestConforms(t *testing.T) {
	for name, c := range map[string]struct {
		cfg    soft.Config
		heap   bool
		rounds int
	}{
		"heap":   {soft.Config{}, true, 2000},
		"mapped": {soft.Config{}, false, 1000},
		"small":  {soft.Config{MaxPost: 4, MaxRecv: 16, MaxMessage: 1 << 12, MaxRegions: 40, MaxPinned: 8 << 20}, true, 300},
		"slow":   {soft.Config{Latency: 30 * time.Microsecond, Bandwidth: 1 << 30}, true, 300},
	} {
		t.Run(name, func(t *testing.T) {
			if raceEnabled && !c.heap {
				t.Skip("the race detector does not see what orders accesses in mapped memory")
			}
			opt := transporttest.Options{FailureTimeout: 5 * time.Second, Rounds: c.rounds, Ops: 1000, Held: descriptors}
			if raceEnabled || testing.Short() {
				opt.Rounds, opt.Ops = 200, 400
			}
			transporttest.Run(t, inProcess(c.cfg, c.heap), opt)
		})
	}
}
