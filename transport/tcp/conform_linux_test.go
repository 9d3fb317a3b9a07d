package tcp_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
			switch {
			case raceEnabled:
				opt.Rounds, opt.Ops = 100, 200
			case testing.Short():
				opt.Rounds, opt.Ops = 300, 400
			case name == "small": // a round of it takes seven times as long
				opt.Rounds = 600
			}
			transporttest.Run(t, inProcess(c), opt)
		})
	}
}

// TestConformsAlone: a check of the suite that is the first thing a process does finds nothing left behind: what the runtime keeps from then on is
// not the NIC's.
func TestConformsAlone(t *testing.T) {
	said, err := exec.Command(os.Args[0], "-test.v", "-test.run=^TestConforms$/^full$/^Wait$/^Wake").CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Contains(t, string(said), "--- PASS: TestConforms/full/Wait/Wake")
}
