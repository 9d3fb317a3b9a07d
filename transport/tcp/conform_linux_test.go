package tcp_test

import (
	"testing"
	"time"

	"gopgas/transport"
	"gopgas/transport/tcp"
	"gopgas/transport/transporttest"
)

// inProcess opens the domains of a job whose ranks are goroutines; they talk over the loop-back interface.
func inProcess(cfg tcp.Config) transporttest.Open {
	p := tcp.New(cfg)
	return transporttest.InProcess(func(int) transport.Provider { return p })
}

func TestConforms(t *testing.T) {
	for name, c := range map[string]tcp.Config{
		"full":  {},
		"small": {MaxPost: 4, MaxRecv: 16, MaxMessage: 1 << 13, MaxRegions: 40, MaxPinned: 8 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			opt := transporttest.Options{FailureTimeout: 6 * time.Second, Rounds: 2000, Ops: 1000, Held: transporttest.Descriptors}
			if raceEnabled || testing.Short() {
				opt.Rounds, opt.Ops = 300, 400
			}
			transporttest.Run(t, inProcess(c), opt)
		})
	}
}
