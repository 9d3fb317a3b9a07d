package window

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"gopgas/internal/mem"
	"gopgas/internal/proto"
	"gopgas/internal/racecheck"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// attached is memory of this rank, and, where races are looked for, the check of it.
type attached struct {
	xp          *proto.Exposure
	card        string // which the Ref has, too
	placed      bool   // it has its place on the shelf
	race        *racecheck.Window
	shadow, way *proto.Exposure // of race: its memory, and how this rank reaches it
}

// A shelf is where the others find the check of memory that a member has attached: a row of places on each member, each with the
// number of the Ref, the card of the check's memory, and what reports call it.
const (
	shelfPlaces = 256 // a member can have that much checked at once
	placeID     = 0
	placeCard   = 8 // its length in the first byte
	placeName   = placeCard + 8 + proto.CardBytes
	placeBytes  = placeName + 128
)

// openShelf makes the shelf of a dynamic window, where races are looked for. Collective.
func (d *Dynamic[T]) openShelf(ctx context.Context) (err error) {
	if d.team.RaceCheck() == nil {
		return nil
	}
	if d.shelf, err = d.team.Heap().Alloc(ctx, shelfPlaces*placeBytes); err != nil {
		return fmt.Errorf("%d bytes for the race check of attached memory: %w", shelfPlaces*placeBytes, err)
	}
	return nil
}

// place is where Ref number id of a member stands.
func place(id uint64) int { return int(id%shelfPlaces) * placeBytes }

// number returns the number of a new Ref, and whether it has its place on the shelf. Those whose places are taken are left out, unless all
// are. The caller holds mu.
func (d *Dynamic[T]) number() (id uint64, placed bool) {
	d.last++
	if d.shelf == nil {
		return d.last, false
	}
	for range shelfPlaces {
		if taken := &d.places[d.last%shelfPlaces]; !*taken {
			*taken = true
			return d.last, true
		}
		d.last++
	}
	return d.last, false
}

// leave gives the place of number id back.
func (d *Dynamic[T]) leave(a *attached, id uint64) {
	if !a.placed {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.places[id%shelfPlaces] = false
}

// check has memory of n elements that was attached as number id checked, unless there is no place for it.
func (d *Dynamic[T]) check(a *attached, id uint64, n int) error {
	check := d.team.RaceCheck()
	if check == nil || !a.placed {
		return nil // who reaches it says so
	}
	slot := d.shelf.Local().Slice(place(id), placeBytes).Data()
	bytes := check.WindowBytes(d.team.Size(), n)
	shadow, card, err := d.team.Engine().Attach(mem.Range{}, bytes, d.cpu, d.team.Size() == 1)
	if err != nil {
		return fmt.Errorf("%d bytes for the race check of %d elements: %w", bytes, n, err)
	}
	way, err := d.team.Engine().Reach(d.team.WorldRank(d.team.Rank()), card, shadow)
	if err != nil {
		return errors.Join(err, shadow.Free())
	}
	name := fmt.Sprintf("the memory of %s attached at %s", elemType((*T)(nil)), sched.Caller())
	name = name[:min(len(name), placeBytes-placeName-1)]
	a.shadow, a.way = shadow, way
	a.race = check.Attached(way.Of[0], d.ranks(), d.team.Rank(), n, d.team.Rank(), mem.SizeOf[T](), a.xp.Local, name)
	slot[placeCard] = byte(len(card))
	copy(slot[placeCard+8:placeName], card)
	slot[placeName] = byte(len(name))
	copy(slot[placeName+1:], name)
	binary.LittleEndian.PutUint64(slot[placeID:], id)
	return nil
}

// uncheck ends the check of what was attached as number id.
func (d *Dynamic[T]) uncheck(a *attached, id uint64) error {
	if a.race == nil {
		return nil
	}
	a.race.Close()
	clear(d.shelf.Local().Slice(place(id), 8).Data())
	d.leave(a, id)
	return errors.Join(a.race.Hide(), a.way.Free(), a.shadow.Free())
}

// reachCheck gives w, which reaches another member's r, the check of that.
func (d *Dynamic[T]) reachCheck(w *core, r Ref) error {
	check := d.team.RaceCheck()
	if check == nil {
		return nil
	}
	slot := make([]byte, placeBytes)
	if err := w.e.Get(&d.shelf.Remotes()[r.Member], place(r.id), mem.Of(slot)); err != nil {
		return err
	}
	if binary.LittleEndian.Uint64(slot[placeID:]) != r.id {
		check.NoWindow()
		return nil
	}
	card := slot[placeCard+8:][:min(int(slot[placeCard]), proto.CardBytes)]
	name := slot[placeName+1:][:min(int(slot[placeName]), placeBytes-placeName-1)]
	way, err := w.e.Reach(d.team.WorldRank(r.Member), card, nil)
	if err != nil {
		return err
	}
	if need := check.WindowBytes(d.team.Size(), r.Len); way.Of[0].Bytes < need {
		return errors.Join(fmt.Errorf("%w: the race check of %d elements has %d bytes, needed %d", ErrRange, r.Len, way.Of[0].Bytes, need), way.Free())
	}
	w.way = way
	w.race = check.Attached(way.Of[0], d.ranks(), r.Member, r.Len, d.team.Rank(), w.elem.Bytes, mem.Range{}, string(name))
	return nil
}

// ranks are the members' ranks in the world.
func (d *Dynamic[T]) ranks() []int {
	ranks := make([]int, d.team.Size())
	for m := range ranks {
		ranks[m] = d.team.WorldRank(m)
	}
	return ranks
}

// leaving says that this rank takes away n elements that it has attached: as if it wrote to them, since who accesses them in no
// order with that finds them or not.
func (d *Dynamic[T]) leaving(a *attached) {
	if a.race != nil {
		a.race.Touch(racecheck.Access{Kind: racecheck.Write, Site: d.team.RaceCheck().Site("detach")}, d.team.Rank(), 0, a.xp.Local.Bytes/mem.SizeOf[T]())
	}
}

// freeShelf gives the shelf back. Collective.
func (d *Dynamic[T]) freeShelf() error {
	if d.shelf == nil {
		return nil
	}
	return transport.NewOpError("free", -1, d.shelf.Free())
}
