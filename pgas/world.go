package pgas

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"gopgas/bootstrap"
	"gopgas/internal/peers"
	"gopgas/internal/proto"
	"gopgas/internal/racecheck"
	"gopgas/internal/sched"
	pgsync "gopgas/sync"
	"gopgas/transport"
	"gopgas/transport/auto"
	"gopgas/transport/shm"
)

// Team is an ordered set of ranks; see package pgsync.
type Team = pgsync.Team

// OpError is the error of every operation that names a rank.
type OpError = transport.OpError

// Sentinels of the layers below, repeated so that a program need not import them.
var (
	ErrPeerGone    = transport.ErrPeerGone
	ErrClosed      = transport.ErrClosed
	ErrUnsupported = transport.ErrUnsupported
	ErrLimit       = transport.ErrLimit
)

// World is a job as one of its ranks sees it.
type World struct {
	cfg      Config
	job      bootstrap.Job
	engine   *proto.Engine
	team     *Team
	cards    []rankCard         // by rank; made of what the ranks told each other at the start
	secret   []byte             // shared by the ranks of this job and by nobody else
	recorder *recorder          // nil: no trace is recorded
	shower   *shower            // nil: nobody wants a timeline
	check    *racecheck.Checker // nil: races are not looked for
	say      func(string)
	start    *starting
	stop     []func() // what runs beside the program, in the order to end it
	closed   atomic.Bool
	failed   atomic.Pointer[error] // why Fail has ended it
	left     bool                  // in good order: nothing is to be ended any more
	alone    sync.Once             // leaveAlone's
}

// Parts are what a World is made of; Assemble is for packages of this module that bring their own, such as pgastest.
type Parts struct {
	Job    bootstrap.Job
	Sched  func(ranksHere, cores int) *sched.Sched
	Mapper transport.Mapper // nil: no memory is mapped
	// Provider is the NIC; nil: none. Where there is a Mapper too it is opened when it is first needed.
	Provider transport.Provider
	// Choose names the Provider where that depends on how many nodes the ranks are on, and on the kinds of RDMA network
	// that each rank is on (nil on one node; see auto.Fabric); nil: it does not.
	Choose func(nodes int, fabrics []string) (transport.Provider, error)
	Host   bootstrap.Host // where the rank runs; zero: where this process does
	Slots  int            // bounce buffers of the NIC path; 0: the engine's own number
	Say    func(string)   // is given the reports of the race check and of refused registrations, a line each; nil: they are printed to stderr
	// Heap leaves memory that no mapper makes in the Go heap where the race check could see its use: for Go's race detector, which
	// sees it between ranks that are goroutines.
	Heap bool

	control net.Conn // the launcher's channel; nil: there is none
	cores   int      // how many cores' time the machine gives this process; 0: as many as it may run on
}

// Init joins the job that this process was started in. c may be nil: the environment decides. Collective over the
// job; it waits for all ranks, at most the start timeout. A process joins a launcher's job once: a second Init, also after
// Close, is an error that wraps ErrUnsupported. So is one after an Init that has failed when it had spoken with the launcher, which says how.
func Init(ctx context.Context, c *Config) (*World, error) {
	cfg, err := configOf(c)
	if err != nil {
		return nil, err
	}
	cores := 0
	if v, _ := lookup(cfg.Environ, "GOMAXPROCS"); v == "" {
		// One more, and a goroutine of the library is served at once while every core computes. What the runtime takes by itself is
		// the cores there are, by affinity and by the control group's quota.
		runtime.SetDefaultGOMAXPROCS()
		cores = runtime.GOMAXPROCS(0)
		runtime.GOMAXPROCS(cores + 1)
	}
	if ctx == nil { // it never ends; what it is made of takes none that is nil
		ctx = context.Background()
	}
	start, cancel := context.WithTimeoutCause(ctx, cfg.StartTimeout, lateStart{cfg.StartTimeout})
	defer cancel()
	fail, err := joinOnce(cfg.Environ)
	if err != nil {
		return nil, err
	}
	job, err := bootstrap.Open(start, cfg.Environ)
	if err != nil {
		fail(err, !errors.Is(err, bootstrap.ErrSpent))
		return nil, err
	}
	if c == nil {
		warn(job.Rank(), misspelled(cfg.Environ)...)
		warn(job.Rank(), cfg.noRankOf(job.Name())...)
	}
	warn(job.Rank(), cfg.tooLittle())
	conn, err := channel(job, cfg.Environ)
	if err != nil {
		fail(err, false)
		return nil, err
	}
	var mapper transport.Mapper
	if !cfg.NoLocal {
		if mapper, err = shm.Open(shm.Config{What: "symmetric heap"}); err != nil {
			fail(err, false)
			return nil, errors.Join(err, job.Abort(1, err.Error()))
		}
	}
	parts := Parts{Job: job, Sched: sched.ProcessOn, Mapper: mapper, Choose: func(nodes int, fabrics []string) (transport.Provider, error) {
		warn(job.Rank(), cfg.idleDevice(cfg.transportOn(nodes, fabrics)))
		return cfg.chooseNIC(start, nodes, fabrics)
	}, control: conn, cores: cores}
	w, err := Assemble(start, cfg, parts)
	if err != nil {
		err = fmt.Errorf("start rank %d of %d: %w", job.Rank(), job.Size(), err)
		fail(err, false)
		return nil, err
	}
	w.watchNeighbours(conn != nil)
	return w, nil
}

// Assemble makes a world of its parts. Collective over the job.
func Assemble(ctx context.Context, cfg Config, p Parts) (*World, error) {
	if p.Host == (bootstrap.Host{}) {
		p.Host = bootstrap.ThisHost()
	}
	w := &World{cfg: cfg, job: p.Job, start: newStarting()}
	if p.control != nil {
		w.serve(p.control, p.Host.Name)
	}
	if err := w.assemble(ctx, p); err != nil {
		for _, f := range w.stop {
			f()
		}
		return nil, err
	}
	w.start.over(func(rank int, why string) { (&handler{w: w}).PeerGone(rank, why) })
	w.tellDeaths()
	return w, nil
}

func (w *World) assemble(ctx context.Context, p Parts) (err error) {
	cfg := w.cfg
	if w.secret, err = bootstrap.Secret(ctx, p.Job); err != nil {
		return fmt.Errorf("agree on a secret: %w", err)
	}
	if err := w.introduce(ctx, newCard(cfg.shared(), p.Host, cfg.part(p.Job.Rank()), given(ownCores(), p.cores), ownCores())); err != nil {
		return err
	}
	nodes, here, cores := w.nodes()
	if p.Choose != nil {
		count := 1 + slices.Max(nodes)
		fabrics, err := w.fabrics(ctx, count)
		if err == nil {
			p.Provider, err = p.Choose(count, fabrics)
		}
		if err != nil {
			return err
		}
	}
	s := p.Sched(w.crowd(here, cores))
	c := proto.Config{
		Rank: p.Job.Rank(), Size: p.Job.Size(), Sched: s, Peers: peers.New(p.Job.Size()),
		Mapper: p.Mapper, Nodes: nodes, CountMapped: cfg.Stats, Slots: p.Slots, Leases: cfg.Leases,
		Twice: cfg.Check != "" && !p.Heap,
		Room:  func(bytes int) error { return shm.Room("symmetric heap", bytes) },
	}
	if c.Registration, err = cfg.registration(); err != nil {
		return err
	}
	c.Registration.Idle.Cores, c.Registration.Idle.Spare = w.idleCores(nodes, here, jobCores())
	c.Registration.Idle.Seed = xxhash.Sum64String(p.Job.Name())
	if c.Eager, c.Bulk, err = cfg.protocols(); err != nil {
		return err
	}
	if c.Kept, err = cfg.kept(); err != nil {
		return err
	}
	if p.Provider != nil {
		c.NICName = p.Provider.Name()
		c.OpenNIC = func(ctx context.Context) (transport.Domain, error) { return w.openNIC(ctx, p, s) }
	}
	if c.Record, err = w.startRecording(s, nodes[c.Rank]); err != nil {
		return err
	}
	w.engine = proto.New(c)
	if err := w.join(ctx, p); err != nil {
		w.leaveAlone(peers.Returned) // others may have got further, and wait for this rank
		return err
	}
	return nil
}

// given returns of the cores that a process may run on as many as the machine gives it the time of; 0: all.
func given(cores []int, most int) []int {
	if most > 0 && most < len(cores) {
		return cores[:most]
	}
	return cores
}

// join sets up what the ranks share.
func (w *World) join(ctx context.Context, p Parts) (err error) {
	if w.say = p.Say; w.say == nil {
		// One write for a line, so that lines of several ranks do not mix.
		w.say = func(text string) { _, _ = os.Stderr.WriteString("pgas: " + text + "\n") }
	}
	if err = w.startCheck(p.Heap); err != nil {
		return err
	}
	if w.team, err = pgsync.NewWorld(ctx, w.engine, p.Job, w.check); err != nil {
		return err
	}
	// Only the launcher can tell of a rank that has failed before it could be reached: from here on all can.
	if err = p.Job.Barrier(ctx); err != nil {
		return fmt.Errorf("wait for all ranks to be ready: %w", err)
	}
	return w.team.Barrier(ctx)
}

// fabrics returns the kind of RDMA network that each rank is on, "" for none; nil where that decides nothing.
func (w *World) fabrics(ctx context.Context, nodes int) ([]string, error) {
	if nodes <= 1 || w.cfg.Transport != "" {
		return nil, nil
	}
	mine, _ := auto.Fabric(w.cfg.Device) // why there is none matters to who names verbs
	all, err := w.job.Exchange(ctx, []byte(mine))
	if err != nil {
		return nil, fmt.Errorf("agree on a NIC: %w", err)
	}
	out := make([]string, len(all))
	for r, f := range all {
		out[r] = string(f)
	}
	return out, nil
}

// openNIC opens the NIC of the parts for this rank. The NIC's secret was agreed on at the start.
func (w *World) openNIC(ctx context.Context, p Parts, s *sched.Sched) (transport.Domain, error) {
	if ctx == nil { // that of the call which needs the NIC first: it never ends, and NICs take none that is nil
		ctx = context.Background()
	}
	return p.Provider.Open(ctx, transport.Config{
		Rank: p.Job.Rank(), Size: p.Job.Size(), Job: p.Job.Name(), Secret: w.secret, Device: w.cfg.Device, Sched: s,
		Lives: func(rank int) (lives, known bool) { return w.lives(rank, p.control != nil) },
	})
}

// Rank returns this rank's number, from 0.
func (w *World) Rank() int { return w.job.Rank() }

// Size returns the number of ranks.
func (w *World) Size() int { return w.job.Size() }

// Team returns the team of all ranks.
func (w *World) Team() *Team { return w.team }

// NodeTeam returns a new team of the ranks on this rank's node. Collective.
func (w *World) NodeTeam(ctx context.Context) (*Team, error) { return w.team.SplitNode(ctx) }

// Node returns the number of the node that rank runs on, and the name the machine gives itself.
func (w *World) Node(rank int) (number int, name string) {
	return w.engine.Nodes[rank], w.cards[rank].host()
}

// Transport names what carries operations from this rank to rank: "shm" where memory is mapped.
func (w *World) Transport(rank int) string {
	if m := w.engine.Mapper(); m != nil && w.engine.Nodes[rank] == w.engine.Nodes[w.Rank()] {
		return m.Name()
	}
	return w.engine.NIC()
}

// Launcher names what started the job: "pgasrun", "pmi-1", "alone" or "in-process".
func (w *World) Launcher() string { return w.job.Launcher() }

// Barrier waits until all ranks have called it. Collective.
func (w *World) Barrier(ctx context.Context) error { return w.team.Barrier(ctx) }

// HeapUsage returns the bytes of the world's symmetric heap on this rank: taken from the machine, and in blocks.
func (w *World) HeapUsage() (reserved, used int) { return w.team.Heap().Usage() }

// Failed lists the ranks that are known to be gone, with the error that calls for them return.
func (w *World) Failed() map[int]error {
	out := make(map[int]error)
	for r := range w.Size() {
		if err := w.engine.Peers.Check(r); err != nil {
			out[r] = err
		}
	}
	return out
}

// Abort ends the whole job with an exit code: it asks the launcher to end all ranks and ends this one. It does not
// return. Why is printed: by pgasrun, elsewhere by this rank. A code of which the system would keep 0, as of 256, is 1.
func (w *World) Abort(code int, why string) {
	if code != 0 && code&0xff == 0 {
		code = 1
	}
	if w.job.Launcher() != bootstrap.LauncherPgasrun { // the others are told the code alone, and a rank alone has nobody to tell
		text := fmt.Sprintf("pgas: rank %d: aborted the job with code %d", w.Rank(), code)
		if why != "" {
			text += ": " + why
		}
		_, _ = os.Stderr.WriteString(text + "\n")
	}
	if err := w.job.Abort(code, why); err != nil {
		fmt.Fprintf(os.Stderr, "pgas: rank %d: abort: %v\n", w.Rank(), err)
		w.engine.Peers.MarkGone(w.Rank(), peers.Exited(code)) // nobody else ends the others
	}
	os.Exit(code)
}

// Close leaves the world in good order: it waits for all ranks, then gives everything back. Collective. After an
// error the rank is taken for gone by the others. It comes after all other calls of this rank, whichever goroutine
// makes them: what they use may be unmapped under them. A rank that waits in Close is still there for the others' one-sided calls, and comes to none of their
// collectives: those of any team that wait for it get an error wrapping ErrMismatch.
//
// Where ranks are gone, Close returns an error that wraps ErrPeerGone, unless the program has gone on without all of them (Team.Survivors): then
// it waits for those who live, and returns nil. If registrations were refused, and transfers copied for that, it says so once.
func (w *World) Close(ctx context.Context) error {
	if w.closed.Swap(true) {
		err := error(transport.ErrClosed)
		if why := w.failed.Load(); why != nil {
			err = fmt.Errorf("%w, since this rank has failed: %w", err, *why)
		}
		return transport.NewOpError("close", -1, err)
	}
	if ctx == nil { // it never ends; the launcher's channel takes none that is nil
		ctx = context.Background()
	}
	w.engine.AwaitKept(ctx)
	w.sayRefused()
	w.sayUnkept()
	err := w.team.DrainWorld(ctx) // what was started and not waited for
	if err == nil {
		err = w.team.MeetToClose(ctx)
	}
	if err != nil && w.team.GoesOn() {
		if err = w.team.Farewell(ctx); err == nil {
			return w.leaveSurvivors()
		}
	}
	var races error
	if err == nil {
		races, err = w.endCheck()
	}
	if err == nil {
		// The barrier's own flags may still be in flight: no NIC closes before all have seen all of theirs done.
		err = w.engine.Quiet()
		end := w.engine.Sched.Outside(sched.What{Op: "close", Peer: -1})
		err = errors.Join(err, w.job.Barrier(ctx))
		end()
	}
	if err != nil {
		w.leaveAlone(peers.Returned)
		if sched.Ended(ctx) != nil { // some may have got into the launcher's barrier, where they hear of this rank by the launcher alone
			_ = w.job.Close()
		}
		if said := (*OpError)(nil); errors.As(err, &said) && said.Op == "close" {
			return err
		}
		return transport.NewOpError("close", -1, err)
	}
	w.engine.Peers.Leave()
	for _, f := range w.stop {
		f()
	}
	w.left = true
	w.team.Quit()
	w.engine.Part() // whoever waits or hears news from here on must not look at shared memory
	return errors.Join(races, w.recorder.close(), w.shower.close(), w.job.Close(), w.check.Free(), w.team.Heap().Close(), w.engine.Close())
}

// leaveSurvivors ends this rank's part when all who live have closed their worlds too. Its memory stays: some may be reading what was agreed.
func (w *World) leaveSurvivors() error {
	w.engine.Peers.Leave()
	w.left = true
	_ = w.check.End() // the dead had their part in it
	w.team.Quit()
	for _, f := range w.stop {
		f()
	}
	w.engine.Part()
	err := errors.Join(w.recorder.close(), w.shower.close(), w.job.Close())
	w.engine.Abandon()
	return err
}

// leaveAlone ends this rank's part without the others, who are told at once. Its memory stays: they may be reading. Of goroutines that come to it at once, as one that
// has failed and the program's own that ends because of it, the first does that, and the others come back behind it: the process may end then.
func (w *World) leaveAlone(cause peers.Cause) {
	w.alone.Do(func() {
		if !w.left { // or it was found afterwards that the program has races
			w.endAlone(cause)
		}
	})
}

// endAlone is leaveAlone, once.
func (w *World) endAlone(cause peers.Cause) {
	w.closed.Store(true)
	_ = w.check.End() // this rank has failed anyway
	w.engine.Peers.MarkGone(w.Rank(), cause)
	if w.team != nil {
		w.team.Quit()
	}
	for _, f := range w.stop {
		f()
	}
	w.stop = nil
	_ = w.recorder.close() // what was recorded is kept; this rank has failed anyway
	_ = w.shower.close()
	w.engine.Abandon()
}

// Fail ends this rank's part of the world because of err, without the others, who learn of it at once: their calls
// that need this rank fail. Main does it for a function that returns an error. A Close that follows returns an error that wraps err.
func (w *World) Fail(err error) {
	if err != nil {
		w.failed.CompareAndSwap(nil, &err)
	}
	w.leaveAlone(peers.Exited(exitCode(err)))
	_ = w.job.Close()
}

// Elapsed returns the time since this rank joined.
func (w *World) Elapsed() time.Duration { return w.engine.Sched.Now() }
