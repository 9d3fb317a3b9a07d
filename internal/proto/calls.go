package proto

import (
	"maps"
	"slices"
	"sync"

	"gopgas/transport"
)

// calls are functions that wait for an event, until they are taken back.
type calls struct {
	sync.Mutex // guards the fields; held for no call
	of         map[uint64]func()
	last       uint64
}

// add has f called; the function that it returns takes that back.
func (c *calls) add(f func()) (forget func()) {
	c.Lock()
	defer c.Unlock()
	if c.of == nil {
		c.of = map[uint64]func(){}
	}
	c.last++
	id := c.last
	c.of[id] = f
	return func() {
		c.Lock()
		defer c.Unlock()
		delete(c.of, id)
	}
}

// all returns the functions; takeAll takes them out, too: what was added last comes first, since it may use what was there before.
func (c *calls) all() []func() {
	c.Lock()
	defer c.Unlock()
	return lastFirst(c.of)
}

func (c *calls) takeAll() []func() {
	c.Lock()
	defer c.Unlock()
	of := c.of
	c.of = nil
	return lastFirst(of)
}

func lastFirst(of map[uint64]func()) (fs []func()) {
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(of))) {
		fs = append(fs, of[id])
	}
	return fs
}

// AtEnd has f called when this rank leaves the world, before the memory is unmapped and before what was given earlier; the function that it returns takes that back.
func (e *Engine) AtEnd(f func()) (forget func()) { return e.ends.add(f) }

// AtDeath has f called each time that this rank has learned of deaths, by whoever calls TellDeaths; the function that it returns takes that
// back. f may be called once more after that, and at the same time as itself. Who begins to use memory directly asks Gone afterwards: a rank may
// have died before.
func (e *Engine) AtDeath(f func()) (forget func()) { return e.deaths.add(f) }

// TellDeaths calls what AtDeath was given if more ranks are gone than the known ones, and returns how many are. As long as nobody is, it
// costs a load.
func (e *Engine) TellDeaths(known int) int {
	if !e.Peers.AnyGone() {
		return 0
	}
	n := 0
	for r := range e.Size {
		if e.Peers.Cause(r) != 0 {
			n++
		}
	}
	if n > known {
		for _, f := range e.deaths.all() {
			f()
		}
	}
	return n
}

// Gone returns the error of an operation on a rank that is gone. What goes through a NIC asks by itself; memory that is mapped
// does not tell that nobody is behind it any more. To itself a rank is never gone.
func (e *Engine) Gone(op string, rank int) error {
	if !e.Peers.AnyGone() || rank == e.Rank {
		return nil
	}
	return transport.NewOpError(op, rank, e.Peers.Check(rank))
}
