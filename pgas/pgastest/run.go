package pgastest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"gopgas/bootstrap"
	"gopgas/internal/sched"
	"gopgas/pgas"
	"gopgas/transport"
	"gopgas/transport/shm"
	"gopgas/transport/transporttest"
)

// Config says how a test's world is made. The zero value maps the ranks' memory.
type Config struct {
	NIC       bool                        // operations go through a NIC instead of mapped memory
	Over      string                      // the NIC, by its name in package auto; empty: a loop-back NIC
	Fabric    transporttest.FabricConfig  // of the loop-back NIC
	Nodes     []int                       // with a NIC: who map each other's memory all the same, as pgas.Config.Nodes; nil: nobody
	Made      func(*transporttest.Fabric) // is given the loop-back NICs before the ranks start, to kill some; may be nil
	Stats     bool                        // count operations on mapped memory
	Trace     string                      // directory for a trace; empty: none
	Timeline  string                      // directory for a timeline; empty: none
	Profile   string                      // marks for Go's tools: pgas.Config.Profile
	Reg       string                      // policy of registered memory, and its limits: pgas.Config.Reg, RegLimit
	RegLimit  int64                       // and
	RegLeast  int64                       // RegThreshold
	IdleCores string                      // pgas.Config.IdleCores; empty: always, since the ranks of a test compute little
	Check     string                      // pgas.Config.Check
	Say       func(string)                // is given its reports, by all ranks; nil: they are printed
	Eager     string                      // what is forced of the ways over a NIC: pgas.Config.Eager
	Bulk      string                      // and Bulk
	Costs     string                      // a directory for what transfers cost: pgas.Config.Costs; empty: each world measures
	TimeLimit time.Duration               // 0: 60 s

	wrap func(rank int, j bootstrap.Job) bootstrap.Job // of tests of the start; may be nil
}

// always gives each rank a registration helper.
const always = "always"

// Run runs f as each of n goroutine ranks of one world. A rank whose f returns nil closes its world; Run returns when
// all have ended, and fails the test on the first error.
func Run(t testing.TB, n int, f func(ctx context.Context, w *pgas.World) error) {
	t.Helper()
	RunConfig(t, n, Config{}, f)
}

// RunConfig is Run with a Config.
func RunConfig(t testing.TB, n int, c Config, f func(ctx context.Context, w *pgas.World) error) {
	t.Helper()
	for rank, err := range Errors(t, n, c, f) {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// Errors is RunConfig for tests of failures: it returns what each rank returned. Only a hang fails the test.
func Errors(t testing.TB, n int, c Config, f func(ctx context.Context, w *pgas.World) error) []error {
	t.Helper()
	if c.TimeLimit == 0 {
		c.TimeLimit = time.Minute
	}
	if runtime.GOMAXPROCS(0) <= runtime.NumCPU() {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU() + 1))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	jobs := bootstrap.InProcess(n)
	defer forget(jobs[0].Name())
	mappers := shm.NewGroup(n, shm.Config{What: "symmetric heap", Twice: c.Check != "" && !raceEnabled})
	fabric := transporttest.NewFabric(n, c.Fabric)
	if c.Made != nil {
		c.Made(fabric)
	}
	errs := make([]error, n)
	worlds := make([]*pgas.World, n)
	var mu sync.Mutex // guards worlds
	var wg sync.WaitGroup
	for r := range n {
		parts := pgas.Parts{Job: jobs[r], Say: c.Say, Heap: raceEnabled, Sched: func(here, _ int) *sched.Sched { return sched.Goroutine(here) }}
		if c.NIC && c.Over != "" {
			var err error
			if parts.Provider, err = provider(c.Over); err != nil {
				t.Fatalf("the %s NIC: %v", c.Over, err)
			}
		} else if c.NIC {
			parts.Provider = fabric.Provider(r)
		}
		if !c.NIC || c.Nodes != nil {
			parts.Mapper = mappers[r] // the world maps what is of the same node
		}
		if c.wrap != nil {
			parts.Job = c.wrap(r, parts.Job)
		}
		wg.Go(func() {
			rank(ctx, c, parts, f, &errs[r], func(w *pgas.World) {
				mu.Lock()
				defer mu.Unlock()
				worlds[r] = w
			})
			if errs[r] != nil {
				mu.Lock()
				defer mu.Unlock()
				tellNodes(worlds, r)
			}
		})
	}
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()
	limit := time.NewTimer(c.TimeLimit)
	defer limit.Stop()
	select {
	case <-ended:
	case <-limit.C:
		mu.Lock()
		report := hang(worlds)
		mu.Unlock()
		cancel()
		t.Fatalf("the world has not ended within %v\n%s", c.TimeLimit, report)
	}
	for r := range n {
		fabric.Kill(r) // what is left of a rank that could not join
	}
	return errs
}

// errGoexit: a rank's goroutine was ended from within.
var errGoexit = errors.New("the rank's goroutine was ended: t.FailNow, t.SkipNow or runtime.Goexit in a rank")

// rank is the life of one rank. What it returned is left in out, which also holds when f never returns.
func rank(ctx context.Context, c Config, p pgas.Parts, f func(context.Context, *pgas.World) error, out *error, made func(*pgas.World)) {
	if c.IdleCores == "" {
		c.IdleCores = always
	}
	if c.Reg == "" { // the policy would go by the cores and the memory of the machine that runs the test
		c.Reg = "leavepinned"
	}
	if err := c.force(os.Getenv(ProtocolsVariable)); err != nil {
		*out = errors.Join(err, p.Job.Close())
		return
	}
	config := pgas.Config{
		IdleCores: c.IdleCores, Stats: c.Stats, Trace: c.Trace, Timeline: c.Timeline, Profile: c.Profile,
		Reg: c.Reg, RegLimit: c.RegLimit, RegThreshold: c.RegLeast, Check: c.Check,
		Eager: c.Eager, Bulk: c.Bulk, Nodes: c.Nodes, Costs: c.Costs,
	}
	w, err := pgas.Assemble(ctx, config, p)
	if err != nil {
		*out = errors.Join(err, p.Job.Close())
		return
	}
	made(w)
	err = errGoexit
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
		if *out = err; err != nil {
			w.Fail(err)
		}
	}()
	if e := f(ctx, w); e != nil {
		err = e
		return
	}
	err = w.Close(ctx)
}

// tellNodes does what in processes those do who watch a rank of their node end: it has a rank of r's node, which is not alone there, tell other nodes.
func tellNodes(worlds []*pgas.World, r int) {
	for other, w := range worlds {
		if w == nil || worlds[r] == nil || other == r || w.Failed()[other] != nil || w.Failed()[r] == nil {
			continue
		}
		a, _ := w.Node(r)
		if b, _ := w.Node(other); a == b {
			w.Team().Engine().TellNodes()
			return
		}
	}
}

// hang tells what every rank waits for.
func hang(worlds []*pgas.World) string {
	var b strings.Builder
	for r, w := range worlds {
		switch {
		case w == nil:
			fmt.Fprintf(&b, "rank %d: has not joined\n", r)
		case len(w.Waits()) == 0:
			fmt.Fprintf(&b, "rank %d: waits for nobody\n", r)
		default:
			for _, s := range w.Waits() {
				fmt.Fprintf(&b, "rank %d: %s (peer %d) for %v at %s\n", r, s.Op, s.Peer, s.Since.Round(time.Millisecond), s.Where)
			}
		}
	}
	return b.String()
}

var _ transport.Mapper = (*shm.Local)(nil)
