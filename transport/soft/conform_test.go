package soft_test

import (
	"testing"
	"time"

	"gopgas/transport"
	"gopgas/transport/shm"
	"gopgas/transport/soft"
	"gopgas/transport/transporttest"
)

// inProcess opens the domains of a job whose ranks are goroutines. With heap their queues lie in the Go heap,
// where the race detector sees what orders their accesses; otherwise each rank maps the others' as processes do.
func inProcess(cfg soft.Config, heap bool) transporttest.Open {
	return transporttest.InProcess(func(n int) transport.Provider {
		if heap {
			group := shm.NewGroup(n, shm.Config{})
			cfg.Mapper = func(c transport.Config) (transport.Mapper, error) { return group[c.Rank], nil }
		}
		return soft.New(cfg)
	})
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
			opt := transporttest.Options{FailureTimeout: 5 * time.Second, Rounds: c.rounds, Ops: 1000, Held: transporttest.Descriptors}
			switch {
			case raceEnabled:
				opt.Rounds, opt.Ops = 100, 200
			case testing.Short():
				opt.Rounds, opt.Ops = 200, 400
			}
			transporttest.Run(t, inProcess(c.cfg, c.heap), opt)
		})
	}
}
