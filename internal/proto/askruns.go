package proto

import (
	"context"

	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/transport"
)

// Reads of runs that no held bucket reaches, by message mostly, are under way together, as many as the credits and slots allow. Their
// pieces are their reader's to give back, so he never waits for another one while he has some: what the chain takes pieces for waits until
// they have landed, and they are begun when the chain holds nothing.

// reads are reads under way, in the order in which they were begun.
type reads struct {
	of            [nic.Batch]read
	begun, landed int
}

type read struct {
	nic.Kept
	near, bytes int // of the caller's memory, which may lie on a stack and is not kept here
}

func (a *reads) underWay() int { return a.begun - a.landed }

// ask begins to read bytes at off of r to place near of base, which is written by a later call of this chain. The chain holds nothing.
func (c *chain) ask(r *Remote, off int, base mem.Range, near, bytes int) error {
	a := &c.asks
	for bytes > 0 {
		if err := c.land(base, len(a.of)-1); err != nil {
			return err
		}
		k, part, err := c.n.hosedRead(c.name, r, off, base.Slice(near, bytes), a.underWay() == 0)
		if err == nic.ErrNoRoom {
			if err = c.land(base, a.underWay()-1); err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		a.of[a.begun%len(a.of)] = read{k, near, part}
		a.begun++
		off, near, bytes = off+part, near+part, bytes-part
	}
	return nil
}

// land ends reads until at most so many are under way; the oldest come first. After an error it goes on, and returns the first one.
func (c *chain) land(base mem.Range, most int) (err error) {
	for a := &c.asks; a.underWay() > most; a.landed++ {
		k := &a.of[a.landed%len(a.of)]
		if werr := k.Wait(context.Background()); werr == nil {
			buf, _ := c.n.Buffer(k.ID, k.bytes)
			mem.Copy(base.Slice(k.near, k.bytes).Data(), buf.Data())
			c.n.e.Sched.ChargeCopy(k.bytes, k.bytes)
		} else if err == nil {
			err = werr
		}
		c.n.Give(k.ID)
	}
	return err
}

// Add is nic.Chain's, when all reads have landed.
func (c *chain) Add(rank int, op transport.Op, bytes int, base mem.Range, near int) (mem.Range, error) {
	if err := c.land(base, 0); err != nil {
		return mem.Range{}, err
	}
	return c.Chain.Add(rank, op, bytes, base, near)
}

// Flush is nic.Chain's, and has all reads land.
func (c *chain) Flush(base mem.Range) error {
	err := c.Chain.Flush(base)
	if lerr := c.land(base, 0); err == nil {
		err = lerr
	}
	return err
}
