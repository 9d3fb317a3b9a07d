package transporttest

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
)

// loopbackUnderTest opens fabrics for the suite and finds the rank of a domain again, to kill it.
type loopbackUnderTest struct {
	cfg FabricConfig

	mu   sync.Mutex
	home map[transport.Domain]func()
}

func (l *loopbackUnderTest) open(t *testing.T, n int) []transport.Domain {
	f := NewFabric(n, l.cfg)
	ds := make([]transport.Domain, n)
	for r := range ds {
		d, err := f.Provider(r).Open(t.Context(), transport.Config{Rank: r, Size: n, Job: "test"})
		require.NoError(t, err)
		ds[r] = d
		l.mu.Lock()
		l.home[d] = func() { f.Kill(r) }
		l.mu.Unlock()
	}
	return ds
}

func (l *loopbackUnderTest) kill(_ *testing.T, d transport.Domain) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.home[d]()
}

func newLoopbackUnderTest(c FabricConfig) *loopbackUnderTest {
	return &loopbackUnderTest{cfg: c, home: map[transport.Domain]func(){}}
}

func TestLoopbackConforms(t *testing.T) {
	configs := map[string]FabricConfig{
		"full":   {},
		"order":  {InOrder: true},
		"jitter": {Jitter: 50 * time.Microsecond, Seed: 7},
		"small": {
			MaxPost: 4, MaxRecv: 16, MaxInline: 8, MaxSGE: 2, MaxMessage: 1 << 12, MaxRegions: 40, MaxPinned: 8 << 20,
		},
		"poor": {NoInline: true, NoAtomics: true, NoSends: true, MaxSGE: 1},
	}
	for name, c := range configs {
		t.Run(name, func(t *testing.T) {
			l := newLoopbackUnderTest(c)
			opt := Options{Kill: l.kill, FailureTimeout: 5 * time.Second}
			switch {
			case raceEnabled:
				opt.Rounds, opt.Ops = 100, 200
			case testing.Short():
				opt.Rounds, opt.Ops = 300, 400
			case name != "full":
				opt.Rounds, opt.Ops = 1000, 800
			}
			Run(t, l.open, opt)
		})
	}
}
