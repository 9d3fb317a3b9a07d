package window

import (
	"context"
	"errors"
	"fmt"
	"math"
	mathbits "math/bits"
	"reflect"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
	"gopgas/internal/proto"
	"gopgas/internal/racecheck"
	"gopgas/internal/sched"
	"gopgas/internal/symheap"
	pgsync "gopgas/sync"
	"gopgas/transport"
)

// Sentinels; match with errors.Is.
var (
	// ErrRange: elements outside the target's part.
	ErrRange = errors.New("out of range")
	// ErrTarget: a target that is not a member of the window's team.
	ErrTarget = errors.New("no such target")
	// ErrType: an element type, or an operation on it, that a window cannot have.
	ErrType = atom.ErrUndefined
)

// Window is memory that every member of a team exposes to the others, as elements of type T. Make one with
// Allocate or Create.
type Window[T any] struct {
	parts []part[T] // by member
	c     core
	kept  atomic.Pointer[packBuffer[T]] // for sections
}

// core is what does not depend on the element type. Every package that names a Window compiles all its methods for each type of elements: what
// a method does without T is therefore a method of core, which is compiled once.
type core struct {
	team    *pgsync.Team
	e       *proto.Engine
	remotes []proto.Remote // by member
	local   mem.Range
	shown   mem.Range // local as the program gets it: the race check sees its touches
	elem    atom.Elem
	direct  atomic.Uintptr    // the number of members if every part is used directly and the window is not freed, else 0
	cpu     bool              // atomics are the CPU's
	block   *symheap.Block    // of Allocate
	xp      *proto.Exposure   // of Create
	ep      *epochs           // nil: made without
	race    *racecheck.Window // nil: races are not looked for
	shadow  *symheap.Block    // of race
	mark    int               // by which the team tells its windows apart
	reached bool              // made by Dynamic.Reach: Free is local
	way     *proto.Exposure   // of race, where another member attached the memory
	freed   bool
	forget  func() // takes back what happens at the world's end, and at deaths
}

// Allocate makes a window of n zeroed elements on every member, in the team's symmetric heap. Collective; n and T
// are the same everywhere. It fails on all members or on none.
func Allocate[T any](ctx context.Context, t *pgsync.Team, n int) (*Window[T], error) {
	return AllocateConfig[T](ctx, t, n, Config{})
}

// AllocateConfig is Allocate with settings, which are the same everywhere.
func AllocateConfig[T any](ctx context.Context, t *pgsync.Team, n int, c Config) (*Window[T], error) {
	w := new(Window[T])
	if err := w.c.allocate(ctx, t, (*T)(nil), n, c); err != nil {
		return nil, err
	}
	w.open()
	if err := w.c.ready(ctx, "allocate", w.shut); err != nil {
		return nil, err
	}
	return w, nil
}

func (w *core) allocate(ctx context.Context, t *pgsync.Team, of any, n int, c Config) error {
	const op = "allocate"
	if err := agree(ctx, t, op, of, n, c); err != nil {
		return err
	}
	w.begin(t, of)
	if n == 0 {
		w.remotes = make([]proto.Remote, t.Size())
		for m := range w.remotes {
			w.remotes[m].Rank = t.WorldRank(m)
		}
		w.cpu = true
		return transport.NewOpError(op, -1, w.openEpochs(ctx, c))
	}
	block, err := t.Heap().Alloc(ctx, n*w.elem.Bytes)
	if err != nil {
		return transport.NewOpError(op, -1, err)
	}
	w.block, w.remotes, w.local, w.cpu = block, block.Remotes(), block.Local(), block.CPU()
	if err := w.openChecks(ctx, c, n, of); err != nil {
		return transport.NewOpError(op, -1, errors.Join(err, w.giveBack(ctx)))
	}
	return nil
}

// giveBack gives back what a window has of memory, its own and what looks at accesses to it. All members do: nobody uses it any more, or it has come to nothing.
func (w *core) giveBack(ctx context.Context) error {
	var errs [3]error
	if w.ep != nil {
		errs[0] = w.ep.block.FreeWithin(ctx)
	}
	errs[2] = w.closeRaceCheck()
	switch {
	case w.block != nil:
		errs[1] = w.block.FreeWithin(ctx)
	case w.xp != nil:
		errs[1] = w.xp.FreeWithin(ctx)
	}
	return errors.Join(errs[:]...)
}

// elemType is the element type of a window of T, of which core is shown a nil *T: who hears of a method with a reflect.Type in it compiles what
// comes with that.
func elemType(of any) reflect.Type { return reflect.TypeOf(of).Elem() }

// begin fills in what is known before there is memory.
func (w *core) begin(t *pgsync.Team, of any) {
	w.team, w.e, w.elem, w.mark = t, t.Engine(), atom.ElemFor(of), t.Mark()
}

// openChecks opens what looks at accesses, in parts of up to n elements.
func (w *core) openChecks(ctx context.Context, c Config, n int, of any) error {
	if err := w.openEpochs(ctx, c); err != nil {
		return err
	}
	return w.openRaceCheck(ctx, n, elemType(of).String())
}

// ready waits for the others, who may use at once what is made: nobody uses a control block that another member has yet to clear, nor the memory of one who has left the
// last exchange, and gives it back. Who leaves before they have come has no window, and tells those who have one.
func (w *core) ready(ctx context.Context, op string, shut func()) error {
	return w.team.AbandonMade(ctx, op, w.team.Barrier(ctx), func(ctx context.Context) error { return w.free(ctx, shut) })
}

// Create makes a window over a slice that each member has already; the lengths may differ. The slice must not be
// grown or dropped before Free; the window keeps it alive. Between processes such memory cannot be mapped by the
// others, so it takes a NIC. Collective.
func Create[T any](ctx context.Context, t *pgsync.Team, local []T) (*Window[T], error) {
	return CreateConfig(ctx, t, local, Config{})
}

// CreateConfig is Create with settings, which are the same everywhere.
func CreateConfig[T any](ctx context.Context, t *pgsync.Team, local []T, c Config) (*Window[T], error) {
	w := new(Window[T])
	if err := w.c.create(ctx, t, (*T)(nil), mem.Of(local), c); err != nil {
		return nil, err
	}
	w.open()
	if err := w.c.ready(ctx, "create", w.shut); err != nil {
		return nil, err
	}
	return w, nil
}

func (w *core) create(ctx context.Context, t *pgsync.Team, of any, local mem.Range, c Config) error {
	const op = "create"
	if err := agree(ctx, t, op, of, 0, c); err != nil {
		return err
	}
	ranks := make([]int, t.Size())
	for m := range ranks {
		ranks[m] = t.WorldRank(m)
	}
	xp, err := t.Engine().Expose(ctx, t, ranks, t.RaceCheck().PlainRange(local))
	if err != nil {
		return transport.NewOpError(op, -1, err)
	}
	w.begin(t, of)
	w.xp, w.remotes, w.local, w.cpu = xp, xp.Of, xp.Local, xp.CPU
	if err := w.openChecks(ctx, c, w.longest(), of); err != nil {
		return transport.NewOpError(op, -1, errors.Join(err, w.giveBack(ctx)))
	}
	return nil
}

// agree checks the element type and, with all members, that they make the same window.
func agree(ctx context.Context, t *pgsync.Team, op string, of any, n int, c Config) error {
	typ := elemType(of)
	bad := mem.CheckFor(of)
	if size := int(typ.Size()); bad == nil && (n < 0 || n > 1<<47/size) {
		bad = fmt.Errorf("%w: %d elements of %d bytes, needed from 0 to %d, which is all that addresses reach", ErrRange, n, size, 1<<47/size)
	}
	mine := card{n: uint64(n), made: xxhash.Sum64String(fmt.Sprint(op, typ, typ.Size())), refused: bad != nil, config: c}.bytes()
	cards, err := t.Exchange(ctx, mine)
	if err != nil {
		return transport.NewOpError(op, -1, err)
	}
	if bad != nil {
		return transport.NewOpError(op, -1, bad)
	}
	for m, theirs := range cards {
		if string(theirs) == string(mine) {
			continue
		}
		other, ok := cardOf(theirs)
		if ok && other.refused {
			return transport.NewOpError(op, t.WorldRank(m), fmt.Errorf("%w: this member refused; its own error says why", pgsync.ErrMismatch))
		}
		what := "something else"
		if self, _ := cardOf(mine); ok && other.made != self.made {
			what = fmt.Sprintf("%d elements%s of another type, or by another call", other.n, other.with())
		} else if ok {
			what = fmt.Sprintf("%d elements%s", other.n, other.with())
		}
		return transport.NewOpError(op, t.WorldRank(m), fmt.Errorf("%w: this rank makes %d elements%s of %s, rank %d %s",
			pgsync.ErrMismatch, n, card{config: c}.with(), typ, t.WorldRank(m), what))
	}
	return nil
}

// open fills the table of parts.
func (w *Window[T]) open() {
	w.parts = make([]part[T], len(w.c.remotes))
	if w.c.uses() {
		for m := range w.parts {
			w.parts[m].open(mem.Slice[T](w.c.remotes[m].Mapped))
		}
	}
	w.c.watch(w.shut, w.lose)
}

// uses reports whether parts that are mapped are used directly.
func (w *core) uses() bool { return !w.e.CountsMapped() && !w.strict() && w.race == nil }

// watch completes open: it has the window shut at the world's end, and calls lose at deaths.
func (w *core) watch(shut, lose func()) {
	if w.block == nil && w.xp == nil { // no elements, but perhaps locks
		w.forget = w.e.AtEnd(shut)
		return
	}
	w.shown = w.race.Shown(w.local)
	direct := w.uses() && w.cpu // else a flush is for the NIC's atomics, too
	for m := range w.remotes {
		if r := &w.remotes[m]; r.Bytes != 0 && r.Mapped.Bytes == 0 {
			direct = false
		}
	}
	if direct {
		w.direct.Store(uintptr(len(w.remotes)))
	}
	end, deaths := w.e.AtEnd(shut), w.e.AtDeath(lose)
	w.forget = func() { end(); deaths() }
	lose() // who has died before is told to nobody any more
}

// shut ends all use of the window's memory (W2).
func (w *Window[T]) shut() {
	for m := range w.parts {
		w.parts[m].shut()
	}
	w.c.shut()
}

func (w *core) shut() {
	w.direct.Store(0)
	w.freed, w.local, w.shown = true, mem.Range{}, mem.Range{}
}

// strict reports whether every access is looked at.
func (w *core) strict() bool { return w.ep != nil && w.ep.strict }

// Free ends the window: it waits until all members have called it and gives the memory back. Collective. If ctx ends before the others have come it is called again,
// before any other collective call; where it had flushed all, that call ends the window as well. If ctx ends while another
// member still holds buckets of this rank's part, because it has stopped, the part stays registered and is not given back; the
// error says whose buckets they are. A transfer of this rank that failed is reported, and the window is freed.
func (w *Window[T]) Free(ctx context.Context) error { return w.c.free(ctx, w.shut) }

func (w *core) free(ctx context.Context, shut func()) error {
	const op = "free"
	if w.freed {
		return transport.NewOpError(op, -1, transport.ErrClosed)
	}
	if w.ep != nil {
		if err := w.ep.enter(epoch.free); err != nil {
			return transport.NewOpError(op, -1, err)
		}
	}
	var given error
	end := func(ctx context.Context) {
		shut()
		if w.forget != nil {
			w.forget()
		}
		given = w.giveBack(ctx)
	}
	failed := w.flushes(ctx, op)
	alone := w.reached && sched.Ended(ctx) == nil // nobody has to come, and whoever is gone has nothing more to do with it
	if !alone && !proto.Flushed(ctx, failed) {
		return failed
	}
	if w.reached {
		end(ctx)
	} else if err := w.team.MeetThen(ctx, op, w.mark, w, end); err != nil {
		return both(failed, err)
	}
	return both(failed, transport.NewOpError(op, -1, given))
}

// Team returns the window's team.
func (w *Window[T]) Team() *pgsync.Team { return w.c.team }

// Local returns this rank's part: ordinary memory, to be used like any slice between synchronisations. It must
// not be used after Free.
func (w *Window[T]) Local() []T { return mem.Slice[T](w.c.shown) }

// Len returns how many elements the target's part has; 0 if there is no such target.
func (w *Window[T]) Len(target int) int { return w.c.size(target) }

func (w *core) size(target int) int {
	if target < 0 || target >= len(w.remotes) {
		return 0
	}
	return w.remotes[target].Bytes / w.elem.Bytes
}

// span is elements in words, also where their end is beyond all numbers.
func span(disp, n int) string {
	if disp > math.MaxInt-n {
		return fmt.Sprintf("%d elements from %d on", n, disp)
	}
	return fmt.Sprintf("elements [%d, %d)", disp, disp+n)
}

// check verifies an access before anything moves.
func (w *core) check(op string, target, disp, n int) error {
	if uint(target) < uint(len(w.remotes)) && !w.freed && !w.strict() && disp|n >= 0 {
		// No division, which takes longer than all the rest.
		if high, bytes := mathbits.Mul64(uint64(disp)+uint64(n), uint64(w.elem.Bytes)); high == 0 && bytes <= uint64(w.remotes[target].Bytes) {
			return nil
		}
	}
	return w.checked(op, target, disp, n)
}

// checkTarget is check for what is about no elements.
func (w *core) checkTarget(op string, target int) error {
	if uint(target) < uint(len(w.remotes)) && !w.freed && !w.strict() {
		return nil
	}
	return w.checked(op, target, 0, 0)
}

// usable returns an error if the window was freed. It is check for what is about no target.
func (w *core) usable(op string) error {
	if w.freed {
		return transport.NewOpError(op, -1, fmt.Errorf("window: %w", transport.ErrClosed))
	}
	return nil
}

// checked is check where there is something to say, or to enter.
func (w *core) checked(op string, target, disp, n int) error {
	if w.freed {
		return transport.NewOpError(op, w.named(target), fmt.Errorf("window: %w", transport.ErrClosed))
	}
	if target < 0 || target >= len(w.remotes) {
		return transport.NewOpError(op, target, fmt.Errorf("%w: target %d of a team of %d", ErrTarget, target, len(w.remotes)))
	}
	r := &w.remotes[target]
	if have := r.Bytes / w.elem.Bytes; disp < 0 || n > have || disp > have-n {
		return transport.NewOpError(op, r.Rank,
			fmt.Errorf("%w: %s of a part of %d", ErrRange, span(disp, n), have))
	}
	if w.strict() {
		if err := w.ep.reach(target); err != nil {
			return transport.NewOpError(op, r.Rank, err)
		}
	}
	return nil
}

// named is the rank that an error about a target names before anybody has looked whether it is a member: the member's, or what the program has said.
func (w *core) named(target int) int {
	if uint(target) < uint(len(w.remotes)) {
		return w.remotes[target].Rank
	}
	return target
}
