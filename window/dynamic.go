package window

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
	"gopgas/internal/proto"
	"gopgas/internal/racecheck"
	"gopgas/internal/symheap"
	pgsync "gopgas/sync"
	"gopgas/transport"
)

// Dynamic is a window without memory, to which each member attaches some and detaches it when it likes, without the
// others. What is attached has a Ref, a plain value that goes to the others as data, through a window for instance; who
// has it reaches the memory.
type Dynamic[T any] struct {
	team *pgsync.Team
	cpu  bool
	mark int // by which the team tells its windows apart

	shelf  *symheap.Block // nil: races are not looked for
	forget func()         // takes back what happens at the world's end

	mu     sync.Mutex
	mine   map[uint64]*attached // by the number of the Ref
	last   uint64               // number
	places [shelfPlaces]bool    // of the shelf, those that are taken
	freed  bool
}

// Ref names memory that a member has attached. It holds no pointers, so it may be an element of a window or array.
type Ref struct {
	Member int // who has attached it
	Len    int // elements
	id     uint64
	bytes  uint8
	card   [proto.CardBytes]uint8
}

// NewDynamic makes a dynamic window. Collective; T is the same everywhere. It opens the NIC if there is one.
func NewDynamic[T any](ctx context.Context, t *pgsync.Team) (*Dynamic[T], error) {
	const op = "new dynamic"
	if err := agree(ctx, t, op, (*T)(nil), 0, Config{}); err != nil {
		return nil, err
	}
	d := &Dynamic[T]{team: t, mine: make(map[uint64]*attached)}
	var err error
	if d.cpu, err = t.Engine().Meet(ctx, t, d.ranks()); err != nil {
		return nil, transport.NewOpError(op, -1, err)
	}
	if err := d.openShelf(ctx); err != nil {
		return nil, transport.NewOpError(op, -1, err)
	}
	d.mark = t.Mark()
	d.forget = t.Engine().AtEnd(func() { d.shut() })
	return d, nil
}

// shut ends all use of the window, and returns what is attached still.
func (d *Dynamic[T]) shut() (rest map[uint64]*attached) {
	d.mu.Lock()
	defer d.mu.Unlock()
	rest, d.mine, d.freed = d.mine, nil, true
	return rest
}

// Attach makes local, which has at least one element, reachable for the others until Detach; the window keeps it alive.
// The others cannot map such memory: it takes a NIC. Local.
func (d *Dynamic[T]) Attach(local []T) (Ref, error) {
	return d.attach("attach", mem.Of(racecheck.Plain(d.team.RaceCheck(), local)), len(local))
}

// Alloc attaches n new zeroed elements, at least one, which ranks of the same node map. Local.
func (d *Dynamic[T]) Alloc(n int) (Ref, error) {
	return d.attach("alloc", mem.Range{}, n)
}

func (d *Dynamic[T]) attach(op string, local mem.Range, n int) (Ref, error) {
	if n < 1 || n > 1<<47/mem.SizeOf[T]() {
		return Ref{}, transport.NewOpError(op, -1, fmt.Errorf("%w: %d elements, needed from 1 to %d", ErrRange, n, 1<<47/mem.SizeOf[T]()))
	}
	if err := d.open(op); err != nil {
		return Ref{}, err
	}
	xp, card, err := d.team.Engine().Attach(local, n*mem.SizeOf[T](), d.cpu, d.team.Size() == 1)
	if err != nil {
		return Ref{}, transport.NewOpError(op, -1, err)
	}
	a := &attached{xp: xp, card: string(card)}
	id, err := d.keep(op, a)
	if err != nil {
		return Ref{}, errors.Join(err, xp.Free())
	}
	if err := d.check(a, id, n); err != nil {
		d.mu.Lock()
		delete(d.mine, id)
		d.mu.Unlock()
		d.leave(a, id)
		return Ref{}, transport.NewOpError(op, -1, errors.Join(err, xp.Free()))
	}
	ref := Ref{Member: d.team.Rank(), Len: n, id: id, bytes: uint8(len(card))}
	copy(ref.card[:], card)
	return ref, nil
}

// keep gives what was attached a number, unless the window was freed meanwhile, as the end of the world does beside other goroutines.
func (d *Dynamic[T]) keep(op string, a *attached) (id uint64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.freed {
		return 0, transport.NewOpError(op, -1, transport.ErrClosed)
	}
	id, a.placed = d.number()
	d.mine[id] = a
	return id, nil
}

// open returns an error if the window was freed.
func (d *Dynamic[T]) open(op string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.freed {
		return transport.NewOpError(op, -1, transport.ErrClosed)
	}
	return nil
}

// own returns what this rank has attached as r; nil if r is another's, or detached.
func (d *Dynamic[T]) own(r Ref) *attached {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ownLocked(r)
}

// ownLocked is own for who holds mu. A Ref of another dynamic window may have the same number, but other memory has another card.
func (d *Dynamic[T]) ownLocked(r Ref) *attached {
	a := d.mine[r.id]
	if r.Member != d.team.Rank() || a == nil || int(r.bytes) > len(r.card) || a.card != string(r.card[:r.bytes]) {
		return nil
	}
	return a
}

// Local returns what this rank has attached; nil if r is another's, of another window, or detached.
func (d *Dynamic[T]) Local(r Ref) []T {
	if a := d.own(r); a != nil {
		return mem.Slice[T](a.race.Shown(a.xp.Local))
	}
	return nil
}

// Detach ends what this rank has attached. The program makes sure that nobody uses it any more: through a NIC that would
// be an error of theirs, and memory that they have mapped stays until they free the way there. Local.
func (d *Dynamic[T]) Detach(r Ref) error {
	const op = "detach"
	if err := d.open(op); err != nil {
		return err
	}
	d.mu.Lock()
	a := d.ownLocked(r)
	if a != nil {
		delete(d.mine, r.id)
	}
	d.mu.Unlock()
	if a == nil {
		return transport.NewOpError(op, -1, fmt.Errorf("%w: not attached by this rank to this window", ErrRange))
	}
	d.leaving(a)
	return transport.NewOpError(op, -1, errors.Join(d.uncheck(a, r.id), a.xp.Free()))
}

// Reach returns a window over what r names: the part of r.Member has its elements, the others' parts are empty. All
// operations of windows work on it. Reach and Free of such a window are local; its Fence is the team's.
func (d *Dynamic[T]) Reach(r Ref) (*Window[T], error) {
	const op = "reach"
	if r.Member < 0 || r.Member >= d.team.Size() || r.Len < 1 || int(r.bytes) > len(r.card) {
		return nil, transport.NewOpError(op, -1, fmt.Errorf("%w: the Ref names member %d of a team of %d", ErrTarget, r.Member, d.team.Size()))
	}
	if err := d.open(op); err != nil {
		return nil, err
	}
	e, rank := d.team.Engine(), d.team.WorldRank(r.Member)
	own := d.own(r)
	if own == nil && r.Member == d.team.Rank() {
		return nil, transport.NewOpError(op, rank, fmt.Errorf("%w: it is detached, or attached to another window", ErrRange))
	}
	var mine *proto.Exposure
	if own != nil {
		mine = own.xp
	}
	xp, err := e.Reach(rank, r.card[:r.bytes], mine)
	if err != nil {
		return nil, transport.NewOpError(op, rank, err)
	}
	w := &Window[T]{c: core{
		team: d.team, e: e, elem: atom.ElemOf[T](), remotes: make([]proto.Remote, d.team.Size()),
		xp: xp, cpu: xp.CPU, reached: true,
	}}
	for m := range w.c.remotes {
		w.c.remotes[m].Rank = d.team.WorldRank(m)
	}
	w.c.remotes[r.Member] = xp.Of[0]
	if w.c.remotes[r.Member].Bytes != r.Len*w.c.elem.Bytes {
		err := fmt.Errorf("%w: %d bytes are not %d elements", ErrRange, xp.Of[0].Bytes, r.Len)
		return nil, transport.NewOpError(op, rank, errors.Join(err, xp.Free()))
	}
	if own != nil {
		w.c.local, w.c.race = own.xp.Local, own.race
	} else if err := d.reachCheck(&w.c, r); err != nil {
		return nil, transport.NewOpError(op, rank, errors.Join(err, xp.Free()))
	}
	w.open()
	return w, nil
}

// Free ends the dynamic window, with all that is attached still. Collective; all windows that Reach returned are freed
// before. If ctx ends before the others have come it is called again, as Free of a Window is.
func (d *Dynamic[T]) Free(ctx context.Context) error {
	const op = "free"
	if err := d.open(op); err != nil {
		return err
	}
	var given error
	end := func(ctx context.Context) { given = d.giveBack(ctx) }
	if err := d.team.MeetThen(ctx, op, d.mark, d, end); err != nil {
		return err
	}
	return transport.NewOpError(op, -1, given)
}

// giveBack gives all memory back, when all members have come to that.
func (d *Dynamic[T]) giveBack(ctx context.Context) (first error) {
	d.forget()
	for id, a := range d.shut() {
		if err := errors.Join(d.uncheck(a, id), a.xp.FreeWithin(ctx)); first == nil {
			first = err
		}
	}
	if err := d.freeShelf(); first == nil {
		first = err
	}
	return first
}
