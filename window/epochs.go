package window

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"gopgas/internal/mem"
	"gopgas/internal/proto"
	"gopgas/internal/sched"
	"gopgas/internal/symheap"
	pgsync "gopgas/sync"
	"gopgas/transport"
)

// Config is what a window can have beside its memory. The zero Config is that of Allocate and Create.
type Config struct {
	// Epochs makes Lock, LockAll, Post, Start, Complete and Wait work. It takes 64 bytes, and 16 for each member, on
	// every member, and as much again for the way there.
	Epochs bool
	// StrictEpochs is Epochs, and makes an access outside a declared epoch an error that wraps ErrEpoch. Every access
	// is looked at, and there are no views: it is for finding mistakes.
	StrictEpochs bool
}

// The control block of a window with epochs, in bytes on each member.
const (
	lockOff    = 0  // the word of this member's lock
	groupOff   = 64 // for each member: posts from it, completions from it
	groupWords = 16
)

// epochs is a rank's side of a window's epochs.
type epochs struct {
	strict bool
	block  *symheap.Block
	ctl    []proto.Remote // by member
	local  mem.Range

	mu      sync.Mutex
	state   epoch
	opening map[int]bool     // by target whose Lock waits still; everyone: LockAll or Start does
	kinds   map[int]LockKind // of locked targets
	posts   []uint64         // by member: told to it
	dones   []uint64         // by member: told to it
	began   []uint64         // by member: its posts that were used
	ended   []uint64         // by member: its completions that were waited for
}

// everyone stands for the targets of LockAll and of Start.
const everyone = -1

// openEpochs allocates the control block. Collective.
func (w *core) openEpochs(ctx context.Context, c Config) error {
	if !c.Epochs && !c.StrictEpochs {
		return nil
	}
	n := w.team.Size()
	if n >= mostMembers {
		return fmt.Errorf("%w: epochs on a team of %d, at most %d", transport.ErrUnsupported, n, mostMembers-1)
	}
	block, err := w.team.Heap().Alloc(ctx, groupOff+groupWords*n)
	if err != nil {
		return err
	}
	w.ep = &epochs{
		strict: c.StrictEpochs, block: block, ctl: block.Remotes(), local: block.Local(),
		opening: make(map[int]bool), kinds: make(map[int]LockKind),
		posts: make([]uint64, n), dones: make([]uint64, n), began: make([]uint64, n), ended: make([]uint64, n),
	}
	return nil
}

// enter makes the transition f of the state.
func (p *epochs) enter(f func(epoch) (epoch, error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	next, err := f(p.state)
	p.state = next
	return err
}

// begin makes the transition f of a call that then waits for what it opens, to a target or to everyone, until begun: nobody else of this rank ends
// meanwhile what is not open yet.
func (p *epochs) begin(to int, f func(epoch) (epoch, error)) error {
	return p.enter(func(s epoch) (epoch, error) {
		next, err := f(s)
		if err == nil {
			p.opening[to] = true
		}
		return next, err
	})
}

// begun ends the wait of begin. Where that has failed back takes the transition back.
func (p *epochs) begun(to int, failed error, back func(epoch) (epoch, error)) {
	_ = p.enter(func(s epoch) (epoch, error) {
		delete(p.opening, to)
		if failed != nil {
			return back(s)
		}
		return s, nil
	})
}

// end makes the transition f of a call that ends what is open to a target or to everyone.
func (p *epochs) end(call string, to int, f func(epoch) (epoch, error)) error {
	return p.enter(func(s epoch) (epoch, error) {
		next, err := f(s)
		if err == nil && p.opening[to] {
			return s, s.refuse(call, "the call that opens it waits still")
		}
		return next, err
	})
}

// reach notes an access to target, if there is an epoch for it that is open.
func (p *epochs) reach(target int) error {
	return p.enter(func(s epoch) (epoch, error) {
		if p.opening[target] || p.opening[everyone] {
			return s, s.refuse(fmt.Sprint("access to ", target), "the call that opens it waits still")
		}
		return s.reach(target)
	})
}

// epochs returns the window's epochs, or an error with the cure.
func (w *core) epochs(op string) (*epochs, error) {
	switch {
	case w.freed:
		return nil, transport.NewOpError(op, -1, fmt.Errorf("window: %w", transport.ErrClosed))
	case w.ep == nil:
		return nil, transport.NewOpError(op, -1,
			fmt.Errorf("%w: the window was made without epochs: make it with AllocateConfig and Config{Epochs: true}", ErrEpoch))
	}
	return w.ep, nil
}

// group verifies a list of members.
func (w *core) group(op string, members []int) error {
	seen := make(map[int]bool, len(members))
	for _, m := range members {
		if m < 0 || m >= len(w.remotes) {
			return transport.NewOpError(op, m, fmt.Errorf("%w: member %d of a team of %d", ErrTarget, m, len(w.remotes)))
		}
		if seen[m] {
			return transport.NewOpError(op, w.remotes[m].Rank, fmt.Errorf("%w: member %d stands twice in the group", pgsync.ErrMember, m))
		}
		seen[m] = true
	}
	return nil
}

// Post opens an exposure epoch: the members of origins may Start one to this rank, and see in it what this rank has
// stored before. It does not wait. Wait or TryWait ends it.
func (w *Window[T]) Post(origins []int) error { return w.c.post(origins) }

func (w *core) post(origins []int) error {
	const op = "post"
	p, err := w.epochs(op)
	if err != nil {
		return err
	}
	if err := w.group(op, origins); err != nil {
		return err
	}
	own := append([]int(nil), origins...)
	if err := p.enter(func(s epoch) (epoch, error) { return s.post(own) }); err != nil {
		return transport.NewOpError(op, -1, err)
	}
	return w.tell(op, own, p.posts, 0)
}

// tell counts one more post (0) or completion (8) of this rank with each of members, and writes the counts there, after
// all earlier puts of this rank to them. Where one cannot be told the others are all the same: they wait for this rank, which has come to it. The first error is
// returned.
func (w *core) tell(op string, members []int, counts []uint64, which int) (first error) {
	p := w.ep
	for _, m := range members {
		p.mu.Lock()
		counts[m]++
		n := counts[m]
		p.mu.Unlock()
		w.race.Told(m, which)
		err := w.e.Gone(op, p.ctl[m].Rank)
		if err == nil {
			err = transport.NewOpError(op, p.ctl[m].Rank, w.e.Store64(&p.ctl[m], groupOff+groupWords*w.team.Rank()+which, n))
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// heard reports whether member has told this rank more than n posts or completions.
func (p *epochs) heard(member int, n uint64, which int) bool {
	return p.local.Word64(groupOff+groupWords*member+which).Load() > n
}

// Start opens an access epoch to targets; it waits until each of them has Posted one to this rank. Complete ends it.
// It fails when one of them is gone, or closes its world, before it has.
func (w *Window[T]) Start(ctx context.Context, targets []int) error { return w.c.start(ctx, targets) }

func (w *core) start(ctx context.Context, targets []int) error {
	const op = "start"
	p, err := w.epochs(op)
	if err != nil {
		return err
	}
	if err := w.group(op, targets); err != nil {
		return err
	}
	if err := sched.Ended(ctx); err != nil {
		return transport.NewOpError(op, -1, err)
	}
	own := append([]int(nil), targets...)
	if err := p.begin(everyone, func(s epoch) (epoch, error) { return s.start(own) }); err != nil {
		return transport.NewOpError(op, -1, err)
	}
	opened := func(s epoch) (epoch, error) { return s, nil }
	err = w.await(ctx, op, own, p.began, 0, opened)
	p.begun(everyone, err, epoch.complete)
	return err
}

// await waits until each of members has told this rank once more, and only then counts that and makes the transition
// done.
func (w *core) await(ctx context.Context, op string, members []int, counts []uint64, which int, done func(epoch) (epoch, error)) error {
	p := w.ep
	watch := groupWatch{w: w, members: members, counts: counts, which: which}
	closes := parted{w: w}
	for _, m := range members {
		n := p.count(counts, m)
		if p.heard(m, n, which) {
			continue
		}
		watch.rank = p.ctl[m].Rank
		sp := w.e.Sched.Begin(ctx, sched.What{Op: op, Peer: watch.rank}, &watch)
		var err error
		for err == nil && !p.heard(m, n, which) {
			if err = sp.Step(); err == nil && sp.Unsure() {
				if parts := closes.of(m); parts != nil && !p.heard(m, n, which) { // what it has told before is there by then
					err = parts
				}
			}
		}
		sp.End()
		if err != nil {
			return transport.NewOpError(op, watch.rank, err)
		}
	}
	w.e.Sched.Seen() // where nothing was waited for, too
	for _, m := range members {
		w.race.Heard(m, which)
	}
	return p.enter(func(s epoch) (epoch, error) {
		next, err := done(s)
		for _, m := range members {
			if err == nil {
				counts[m]++
			}
		}
		return next, err
	})
}

// count reads one of the counts.
func (p *epochs) count(counts []uint64, m int) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return counts[m]
}

// groupWatch ends a wait for members to tell this rank once more when one of them is gone that has not, whichever is waited for, or this rank's NIC.
type groupWatch struct {
	w       *core
	members []int
	counts  []uint64
	which   int
	rank    int // of the member that is waited for, or of that which is gone
}

// Interrupted implements sched.Watch.
func (g *groupWatch) Interrupted() error {
	e, p := g.w.e, g.w.ep
	if e.Peers.AnyGone() {
		for _, m := range g.members {
			rank := p.ctl[m].Rank
			if err := e.Peers.Check(rank); err != nil && !p.heard(m, p.count(g.counts, m), g.which) {
				g.rank = rank
				return err
			}
		}
	}
	return e.Alive()
}

// Complete ends the access epoch that Start opened, flushes it, and tells its targets. A transfer that failed is reported; the targets are told all the same.
func (w *Window[T]) Complete() error { return w.c.complete() }

func (w *core) complete() error {
	const op = "complete"
	p, err := w.epochs(op)
	if err != nil {
		return err
	}
	var targets []int
	err = p.end(op, everyone, func(s epoch) (epoch, error) {
		targets = s.targets
		return s.complete()
	})
	if err != nil {
		return transport.NewOpError(op, -1, err)
	}
	for _, m := range targets {
		w.team.RaceCheck().Flushed(w.remotes[m].Rank)
		if ferr := w.e.Flush(&w.remotes[m]); err == nil {
			err = ferr
		}
	}
	if terr := w.tell(op, targets, p.dones, 8); err == nil {
		err = terr
	}
	return err
}

// Wait ends the exposure epoch that Post opened: it waits until every origin has Completed, and what they have moved is
// visible. When ctx ends first the epoch stays open. It fails when an origin is gone, or closes its world, before it has.
func (w *Window[T]) Wait(ctx context.Context) error { return w.c.wait(ctx) }

func (w *core) wait(ctx context.Context) error {
	const op = "wait"
	p, err := w.epochs(op)
	if err != nil {
		return err
	}
	origins, err := p.exposure()
	if err == nil {
		err = w.await(ctx, op, origins, p.ended, 8, epoch.wait)
	}
	return opError(op, err)
}

// TryWait is Wait that does not wait: it reports whether the exposure epoch has ended.
func (w *Window[T]) TryWait() (ended bool, err error) { return w.c.tryWait() }

func (w *core) tryWait() (ended bool, err error) {
	const op = "wait"
	p, err := w.epochs(op)
	if err != nil {
		return false, err
	}
	origins, err := p.exposure()
	if err != nil {
		return false, opError(op, err)
	}
	for _, m := range origins {
		if !p.heard(m, p.count(p.ended, m), 8) {
			watch := groupWatch{w: w, members: origins, counts: p.ended, which: 8, rank: p.ctl[m].Rank}
			err := watch.Interrupted()
			return false, transport.NewOpError(op, watch.rank, err)
		}
	}
	return true, w.wait(context.Background())
}

// exposure returns the group of the exposure epoch that is open.
func (p *epochs) exposure() ([]int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := p.state.wait()
	return p.state.origins, err
}

// opError makes err an *OpError if it is none.
func opError(op string, err error) error {
	if errors.As(err, new(*transport.OpError)) {
		return err
	}
	return transport.NewOpError(op, -1, err)
}

// FenceEnd is a Fence after which no epoch is open: the last of a sequence of fences. Collective.
func (w *Window[T]) FenceEnd(ctx context.Context) error {
	return w.c.fence(ctx, epoch.fenceEnd)
}
