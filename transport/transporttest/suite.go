package transporttest

import (
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// seedFlag replays a randomised test.
var seedFlag = flag.Uint64("transport.seed", 0, "seed of the conformance suite's random tests; 0: a new one each run")

// Open opens the domains of ranks 0 to n-1 of a new job. It registers no cleanup that closes them: the suite
// closes every domain itself, before it looks for what was left behind.
type Open func(t *testing.T, n int) []transport.Domain

// Options fits the suite to a provider. The zero value runs everything that needs no hook.
type Options struct {
	// Kill ends a domain as the death of its process would, without a word to its peers. Where it is nil the
	// tests of a peer's death close the domain instead.
	Kill func(t *testing.T, d transport.Domain)
	// FailureTimeout is how soon a dead peer must have been reported. 0: 10 s.
	FailureTimeout time.Duration
	// Timeout is how long one wait for a completion may last before the test fails. 0: 30 s.
	Timeout time.Duration
	// Rounds is how many rounds a litmus test has. 0: 10 000, and 2 000 under the race detector.
	Rounds int
	// Ops is how many operations the tests with many operations make. 0: 4 000, and 1 500 under the race detector.
	Ops int
	// MaxBytes bounds the largest operation tried, where Caps.MaxMessage is more than there is memory for. 0: 8 MiB.
	MaxBytes int
	// Alloc returns zeroed memory that can be registered. nil: Go heap, so that the race detector sees it.
	Alloc func(t *testing.T, bytes int) mem.Range
	// Held counts what the process holds for the provider: descriptors, mappings, registrations. It must be
	// back at its old value when the domains are closed. nil: goroutines only.
	Held func() int
	// Seed of the random tests; 0: that of the flag -transport.seed, or a new one.
	Seed uint64
}

func (o Options) withDefaults() Options {
	setDuration := func(p *time.Duration, v time.Duration) {
		if *p == 0 {
			*p = v
		}
	}
	setInt := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	setDuration(&o.FailureTimeout, 10*time.Second)
	setDuration(&o.Timeout, 30*time.Second)
	setInt(&o.Rounds, defaultRounds)
	setInt(&o.Ops, defaultOps)
	setInt(&o.MaxBytes, 8<<20)
	if o.Kill == nil {
		o.Kill = func(t *testing.T, d transport.Domain) { require.NoError(t, d.Close()) }
	}
	if o.Alloc == nil {
		o.Alloc = func(_ *testing.T, bytes int) mem.Range { return mem.Of(make([]uint64, (bytes+7)/8)).Slice(0, bytes) }
	}
	if o.Held == nil {
		o.Held = func() int { return 0 }
	}
	if o.Seed == 0 {
		o.Seed = *seedFlag
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	return o
}

// check is one test of the suite.
type check struct {
	name string
	run  func(t *testing.T, s *suite)
}

// suite is what the tests of one Run have in common.
type suite struct {
	open Open
	opt  Options
	caps transport.Caps
}

// Run tests that the domains which open returns keep the contract of package transport. Every test opens
// domains of its own. The names begin with the invariant of that package, or the method, that is tested.
func Run(t *testing.T, open func(t *testing.T, n int) []transport.Domain, opt Options) {
	t.Helper()
	s := &suite{open: open, opt: opt.withDefaults()}
	wakePoller(t)
	s.lookAtCaps(t)
	t.Logf("seed %d; replay with -transport.seed=%d", s.opt.Seed, s.opt.Seed)
	for _, list := range [][]check{
		dataChecks, atomicChecks, messageChecks, orderChecks, gridChecks, flowChecks, errorChecks,
		registerChecks, connectChecks, deathChecks, waitChecks, randomChecks,
	} {
		for _, c := range list {
			t.Run(c.name, func(t *testing.T) {
				s.nothingLeft(t)
				c.run(t, s)
			})
		}
	}
}

// wakePoller has the runtime make its poller now, which it keeps: two descriptors, with the first pipe, socket or timer of the process. Else a test that
// is run alone would find them left behind by the NIC.
func wakePoller(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, errors.Join(r.Close(), w.Close()))
}

// lookAtCaps opens one rank to see what the NIC says of itself.
func (s *suite) lookAtCaps(t *testing.T) {
	s.nothingLeft(t)
	ds := s.open(t, 1)
	require.Len(t, ds, 1)
	s.caps = ds[0].Caps()
	require.Positive(t, s.caps.MaxMessage)
	require.Positive(t, s.caps.MaxPost)
	require.Positive(t, s.caps.MaxSGE)
	require.LessOrEqual(t, s.caps.MaxSGE, len(transport.Op{}.SGE))
	require.GreaterOrEqual(t, s.caps.MaxInline, 0)
	require.True(t, s.caps.Atomics64 || !s.caps.AtomicsCPU, "AtomicsCPU without Atomics64")
	require.True(t, s.caps.Sends || !s.caps.WriteImm, "WriteImm needs receive buffers, which come with Sends")
	require.Equal(t, s.caps, ds[0].Caps())
	require.NoError(t, ds[0].Close())
}

// nothingLeft fails the test unless goroutines and what Options.Held counts are back when it has ended.
func (s *suite) nothingLeft(t *testing.T) {
	goroutines, held := runtime.NumGoroutine(), s.opt.Held()
	t.Cleanup(func() {
		if t.Failed() {
			return // the domains may still be open; the cause is reported already
		}
		deadline := time.Now().Add(s.opt.Timeout)
		for runtime.NumGoroutine() > goroutines || s.opt.Held() > held {
			if time.Now().After(deadline) {
				stacks := make([]byte, 1<<20)
				stacks = stacks[:runtime.Stack(stacks, true)]
				t.Errorf("Close left something: %d goroutines, were %d; held %d, was %d\n%s",
					runtime.NumGoroutine(), goroutines, s.opt.Held(), held, stacks)
				return
			}
			time.Sleep(time.Millisecond)
		}
	})
}

// need skips a test that asks for something which the NIC says it has not.
func need(t *testing.T, has bool, what string) {
	if !has {
		t.Skipf("Caps: no %s", what)
	}
}
