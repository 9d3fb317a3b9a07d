package tcp_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/tcp"
	"gopgas/transport/transporttest"
)

// inProcess opens the domains of a job whose ranks are goroutines; they talk over the loop-back interface.
func inProcess(cfg tcp.Config) transporttest.Open {
	p := tcp.New(cfg)
	return func(t *testing.T, n int) []transport.Domain {
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
	for name, c := range map[string]tcp.Config{
		"full":  {},
		"small": {MaxPost: 4, MaxRecv: 16, MaxMessage: 1 << 13, MaxRegions: 40, MaxPinned: 8 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			opt := transporttest.Options{FailureTimeout: 6 * time.Second, Rounds: 2000, Ops: 1000, Held: descriptors}
			if raceEnabled || testing.Short() {
				opt.Rounds, opt.Ops = 300, 400
			}
			transporttest.Run(t, inProcess(c), opt)
		})
	}
}
