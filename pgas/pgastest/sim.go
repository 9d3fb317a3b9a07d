package pgastest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"gopgas/bootstrap"
	"gopgas/internal/sched"
	"gopgas/pgas"
	"gopgas/transport/shm"
	"gopgas/transport/sim"
)

// SimConfig says what is simulated. Zero values are the documented defaults.
type SimConfig struct {
	Ranks        int
	RanksPerNode int // they share a NIC; 0: 1
	// Mapped has the ranks of a node map each other's memory. Copies there are charged like all others. Otherwise
	// everything goes through NICs.
	Mapped bool
	Model  sim.Model // one without a name: sim.Modern
	// Seed decides all chance: of delays, and the order in which ranks run that may run at the same moment. Equal seeds
	// give equal runs.
	Seed   uint64
	Faults sim.Faults // operations are counted from the call of f on
	// Machine has the NIC's limits; its model, faults and ranks per node are those above.
	Machine   sim.Config
	Reg       string        // policy of registered memory: pgas.Config.Reg
	RegLeast  int64         // bytes from which transfers are large: pgas.Config.RegThreshold
	Eager     string        // how small transfers travel: pgas.Config.Eager
	Bulk      string        // how large ones do: pgas.Config.Bulk
	Slots     int           // bounce buffers of each rank; 0: the engine's own number
	TimeLimit time.Duration // of real time; 0: 60 s
	Check     string        // pgas.Config.Check
	Say       func(string)  // is given its reports; nil: they are printed
	// MeasureHeap fills SimResult.Heap, which takes two collections.
	MeasureHeap bool

	wrap func(rank int, j bootstrap.Job) bootstrap.Job // of tests of the start; may be nil
}

// SimResult is what came of a simulation.
type SimResult struct {
	Elapsed time.Duration // virtual, from when the first rank entered f to when the last one returned
	Total   time.Duration // virtual, with the world's start and end
	Real    time.Duration
	Errors  []error // what each rank returned; ErrKilled for those that Faults killed
	Stuck   *sched.StuckError
	NIC     sim.Counts
	Sched   sched.SimCounts
	Heap    uint64 // live bytes of all ranks when the last one returns from f, where asked for
}

// ErrKilled is the outcome of a rank that Faults killed.
var ErrKilled = errors.New("killed by the simulation")

// Trace is a hash of everything that happened in the simulation, and when.
func (r SimResult) Trace() uint64 { return r.NIC.Trace }

// String says in a line what the simulation did and what it cost.
func (r SimResult) String() string {
	ops := max(r.NIC.Ops(), 1)
	return fmt.Sprintf("virtual %v; %d operations, %d bytes; real %v: %.0f ns, %.1f actions and %.1f switches for each operation; "+
		"trace %016x", r.Elapsed, r.NIC.Ops(), r.NIC.Bytes, r.Real.Round(time.Millisecond), float64(r.Real.Nanoseconds())/float64(ops),
		float64(r.Sched.Events)/float64(ops), float64(r.Sched.Switches)/float64(ops), r.NIC.Trace)
}

// RunSim runs f as each of c.Ranks ranks of one world in virtual time, over simulated NICs. It fails the test on the first
// error of every rank, on a deadlock, and with the seed in any case.
//
// A program may block only in the library's calls: a channel, a lock that another rank holds, a loop over a load that
// another rank should change, or a real sleep stops the world until TimeLimit. Computation takes no virtual time unless
// Compute charges it.
func RunSim(t testing.TB, c SimConfig, f func(ctx context.Context, w *pgas.World) error) SimResult {
	t.Helper()
	r := SimErrors(t, c, f)
	if r.Stuck != nil {
		t.Errorf("seed %d: %v", c.Seed, r.Stuck)
		return r
	}
	for rank, err := range r.Errors {
		if err != nil {
			t.Errorf("seed %d: rank %d: %v", c.Seed, rank, err)
		}
	}
	return r
}

// Compute charges d of computation to the calling goroutine of a rank. In a world of real time it does nothing.
func Compute(w *pgas.World, d time.Duration) { w.Team().Engine().Sched.Charge(d) }

// WithTimeout is context.WithTimeout in the rank's time, which may be virtual.
func WithTimeout(ctx context.Context, w *pgas.World, d time.Duration) (context.Context, context.CancelFunc) {
	return w.Team().Engine().Sched.WithTimeout(ctx, d)
}

// simWorld is a simulation while it runs.
type simWorld struct {
	c        SimConfig
	m        *sched.Sim
	fabric   *sim.Fabric
	errs     []error
	worlds   []*pgas.World
	ended    []bool // ranks that have closed or failed
	dead     []int  // ranks whose death is known, in the order in which it was
	inside   int    // ranks in f
	from, to time.Duration
	begun    bool
	base     uint64
	heap     uint64
}

// SimErrors is RunSim for tests of failures: it returns what each rank returned. Only a world that does not end in real
// time fails the test.
func SimErrors(t testing.TB, c SimConfig, f func(ctx context.Context, w *pgas.World) error) SimResult {
	t.Helper()
	c.RanksPerNode = max(c.RanksPerNode, 1)
	if c.TimeLimit == 0 {
		c.TimeLimit = time.Minute
	}
	if c.Model.Name == "" {
		c.Model = sim.Modern()
	}
	start := time.Now()
	s := newSimWorld(c)
	for r, sc := range s.parts() {
		sc.sched.Go(func() { s.rank(t.Context(), r, sc.parts, f) })
	}
	ended := make(chan struct{})
	var err error
	finished := false
	go func() {
		defer close(ended) // a rank's FailNow ends this goroutine
		err = s.m.Run()
		finished = true
	}()
	limit := time.NewTimer(c.TimeLimit)
	defer limit.Stop()
	select {
	case <-ended:
	case <-limit.C:
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		running := s.m.Running()
		s.stop(ended)
		t.Fatalf("seed %d: the simulation has not ended within %v of real time; rank %d has the token: does it compute, block in a "+
			"call that is not the library's, or look for ever for what does not come?\n%s", c.Seed, c.TimeLimit, running, stacks)
	}
	s.forget()
	if !finished {
		t.FailNow()
	}
	res := SimResult{
		Elapsed: s.to - s.from, Total: s.m.Now(), Real: time.Since(start), Errors: s.errs, NIC: s.fabric.Counts(), Sched: s.m.Counts(),
		Heap: s.heap,
	}
	errors.As(err, &res.Stuck)
	return res
}

func newSimWorld(c SimConfig) *simWorld {
	s := &simWorld{c: c, m: sched.NewSim(c.Seed), errs: make([]error, c.Ranks), worlds: make([]*pgas.World, c.Ranks), ended: make([]bool, c.Ranks)}
	s.m.SetExact(c.Mapped)
	machine := c.Machine
	machine.Model, machine.Faults, machine.RanksPerNode = c.Model, c.Faults, c.RanksPerNode
	s.fabric = sim.New(s.m, c.Ranks, machine)
	s.base = s.heapBytes()
	return s
}

// simParts is what a rank is made of.
type simParts struct {
	sched *sched.Sched
	parts pgas.Parts
}

func (s *simWorld) parts() []simParts {
	scheds := make([]*sched.Sched, s.c.Ranks)
	for r := range scheds {
		scheds[r] = s.m.Rank()
	}
	s.fabric.Host(scheds, s.mourn)
	meeting := newSimMeeting(scheds, s.fabric.Killed)
	all := make([]simParts, s.c.Ranks)
	var node []*shm.Local
	for r := range all {
		p := pgas.Parts{
			Job: &simJob{m: meeting, rank: r}, Sched: func(int, int) *sched.Sched { return scheds[r] }, Provider: s.fabric.Provider(r),
			Host:  bootstrap.Host{Name: fmt.Sprintf("node%d", s.fabric.Node(r)), PID: r + 1},
			Slots: s.c.Slots, Say: s.c.Say,
		}
		if s.c.Mapped {
			if r%s.c.RanksPerNode == 0 {
				node = shm.NewGroup(min(s.c.RanksPerNode, s.c.Ranks-r), shm.Config{What: "symmetric heap", Twice: s.c.Check != ""})
			}
			p.Mapper = node[r%s.c.RanksPerNode]
		}
		if s.c.wrap != nil {
			p.Job = s.c.wrap(r, p.Job)
		}
		all[r] = simParts{scheds[r], p}
	}
	return all
}

// rank is the life of one rank.
func (s *simWorld) rank(ctx context.Context, r int, p pgas.Parts, f func(context.Context, *pgas.World) error) {
	s.errs[r] = ErrKilled // unless it gets to its end
	w, err := pgas.Assemble(ctx, pgas.Config{
		Stats: s.c.Mapped, Reg: s.c.Reg, RegThreshold: s.c.RegLeast, Eager: s.c.Eager, Bulk: s.c.Bulk, IdleCores: always, Check: s.c.Check,
	}, p)
	if err != nil {
		s.errs[r] = errors.Join(err, p.Job.Close())
		return
	}
	s.worlds[r] = w
	for _, d := range s.dead {
		s.tell(d)
	}
	s.enter(r, w)
	s.errs[r] = s.program(ctx, r, w, f)
}

// program runs f and closes the world. A rank that was killed does not return from it.
func (s *simWorld) program(ctx context.Context, r int, w *pgas.World, f func(context.Context, *pgas.World) error) (err error) {
	ended := false
	defer func() {
		s.ended[r] = true
		if ended || s.fabric.Killed(r) {
			return
		}
		v := recover()
		if v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
		w.Fail(fmt.Errorf("rank %d did not return: %v", r, v))
	}()
	err = f(ctx, w)
	s.leave(w)
	if err != nil {
		w.Fail(err)
	} else {
		err = w.Close(ctx)
	}
	ended = true
	return err
}

// mourn is told that rank was killed.
func (s *simWorld) mourn(rank int) {
	s.dead = append(s.dead, rank)
	s.tell(rank)
}

// tell does what in processes those do who watch a rank of their node end (pgas.Init): the nearest one before it in the ring of the node that is
// still there marks it for all who map its memory, and has the other ranks told.
func (s *simWorld) tell(dead int) {
	first := s.fabric.Node(dead) * s.c.RanksPerNode
	n := min(s.c.RanksPerNode, s.c.Ranks-first)
	for i := 1; i < n; i++ {
		r := first + (dead-first+n-i)%n
		if s.worlds[r] == nil || s.ended[r] || s.fabric.Killed(r) {
			continue
		}
		s.worlds[r].Team().Engine().Vanished(dead)
		return
	}
}

// stopTime is how long a simulation that is stopped is waited for. One whose rank never gives the token back does not stop.
const stopTime = time.Second

// stop ends a simulation that goes on and on, which would take a core from the tests behind it.
func (s *simWorld) stop(ended <-chan struct{}) {
	s.m.Stop()
	select {
	case <-ended:
		s.forget()
	case <-time.After(stopTime):
	}
}

// forget lets go of what ranks have registered that were killed, or stood somewhere when another one ended the test: the runtime ends the
// program when it finds memory pinned for a world that is garbage.
func (s *simWorld) forget() {
	for _, w := range s.worlds {
		if w != nil {
			w.Team().Engine().Forget()
		}
	}
}

// enter and leave take the time of f.
func (s *simWorld) enter(r int, w *pgas.World) {
	if !s.begun {
		s.begun, s.from = true, w.Elapsed()
	}
	s.inside++
	s.fabric.Begin(r)
}

func (s *simWorld) leave(w *pgas.World) {
	s.to = max(s.to, w.Elapsed())
	if s.inside--; s.inside == 0 {
		s.heap = max(s.heapBytes(), s.base) - s.base
	}
}

// heapBytes returns the bytes of live objects, and of stacks.
func (s *simWorld) heapBytes() uint64 {
	if !s.c.MeasureHeap {
		return 0
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
