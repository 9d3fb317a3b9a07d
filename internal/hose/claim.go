package hose

import (
	"time"

	"gopgas/firehose"
	"gopgas/transport"
)

// Claim is the buckets of a stretch of another rank's memory that are wanted together, and are kept until Release. Whoever has one needs
// nothing more that he would have to wait for, so that he comes to his end and gives it back. Its methods are called in the order in
// which they are written here, each by one goroutine at a time.
type Claim struct {
	h     *Set
	name  string
	far   *Far
	at    uint64 // in far's memory
	bytes int
	held  bool
	takes float64
	q     firehose.Request
	begun time.Duration
}

// Claim makes the claim on the first of n bytes at address addr of far: a quarter of a share, so that the next one can be asked for while
// this one is in use and the one before still lands, and others get theirs too. Nothing is asked for yet.
func (h *Set) Claim(name string, far *Far, addr uint64, n int) (*Claim, error) {
	c := &Claim{h: h, name: name, far: far, at: addr - far.start, bytes: n}
	if far.bare {
		return c, nil
	}
	h.lock.Lock()
	defer h.lock.Unlock()
	v, err := h.viewLocked(far)
	if err != nil {
		return nil, transport.NewOpError(name, far.rank, err)
	}
	c.bytes = h.claimLocked(v, c.at, n)
	if c.held = h.holder.Held(v, c.at, uint64(c.bytes)); !c.held {
		run := far.r.Run(h.budget.Shift, v.Order(), c.at, uint64(c.bytes))
		k := h.costs
		c.takes = (k.RoundTrip + float64(run.Count)*k.Register + float64(c.bytes)*k.RegisterByte) * 1e-9
	}
	return c, nil
}

// stretchLocked is how many of n bytes are asked for together.
func (h *Set) stretchLocked(v *firehose.View, at uint64, n int) int {
	half := uint64(max(1, h.budget.Share/2) << h.budget.Shift)
	return int(h.holder.Piece(v, at, min(uint64(n), half)))
}

// claimLocked is for how many of n bytes a claim is: of more than it may have to ask for it ends where a bucket does, so that two
// claims that follow each other have none in common, which would count against the share of both.
func (h *Set) claimLocked(v *firehose.View, at uint64, n int) int {
	quarter := uint64(max(1, h.budget.Share/4) << h.budget.Shift)
	k := h.stretchLocked(v, at, n)
	if uint64(k) > quarter {
		k = min(k, int(v.Whole(at, quarter)))
	}
	return k
}

// mostMoves is up to how many moves are counted.
const mostMoves = 4

// Moves returns how many moves a transfer of n bytes at address addr of far would wait for now, counted up to some, and how many of its
// bytes a claim is on: the second where that is longer, for the first may begin shortly before a bucket's end. Both are 0 where there are
// no buckets.
func (h *Set) Moves(far *Far, addr uint64, n int) (moves, stretch int) {
	if far.bare {
		return 0, 0
	}
	h.lock.Lock()
	defer h.lock.Unlock()
	v, err := h.viewLocked(far)
	if err != nil {
		return 0, 0 // the transfer itself will say why
	}
	at := addr - far.start
	for done := 0; done < n && moves < mostMoves; {
		k := h.stretchLocked(v, at+uint64(done), n-done)
		if k <= 0 {
			break
		}
		if stretch == 0 {
			if stretch = h.claimLocked(v, at, n); stretch < n {
				stretch = max(stretch, h.claimLocked(v, at+uint64(stretch), n-stretch))
			}
		}
		if !h.holder.Held(v, at+uint64(done), uint64(k)) {
			moves++
		}
		done += k
	}
	return moves, stretch
}

// Bytes is for how many bytes buckets are wanted.
func (c *Claim) Bytes() int { return c.bytes }

// Takes is about how long the answer takes, in seconds: 0 where all buckets were held when the claim was made.
func (c *Claim) Takes() float64 { return c.takes }

// Ask asks for the buckets. It does not wait.
func (c *Claim) Ask() {
	h := c.h
	if c.far.bare {
		return
	}
	h.lock.Lock()
	waits := h.holder.Acquire(c.far.v, &c.q, c.at, uint64(c.bytes)) == firehose.Waiting
	h.lock.Unlock()
	if waits {
		c.begun = h.sched.Now()
		h.work.Store(true)
		h.send()
	}
}

// Wait returns when all buckets are held, or refused, which leaves messages possible; or with an error.
func (c *Claim) Wait() (ok bool, err error) {
	h := c.h
	if c.far.bare {
		return false, nil
	}
	h.lock.Lock()
	waits := c.q.State() == firehose.Waiting
	h.lock.Unlock()
	if waits {
		err = h.await(c.name, c.far.rank, &c.q, c.begun)
	}
	h.lock.Lock()
	defer h.lock.Unlock()
	ready := c.q.State() == firehose.Ready
	switch {
	case err != nil:
		h.letGoLocked(&c.q)
		return false, err
	case !ready && !fallsBack(c.q.Err()):
		return false, transport.NewOpError(c.name, c.far.rank, c.q.Err())
	}
	return ready, nil
}

// Key is the key for byte at of the claim, and up to which byte of it that is good.
func (c *Claim) Key(at int) (key uint64, end int) {
	c.h.lock.Lock()
	defer c.h.lock.Unlock()
	key, far := c.q.Part(c.at + uint64(at))
	return key, int(far - c.at)
}

// Release gives the buckets back: every operation on them is complete.
func (c *Claim) Release() {
	c.h.lock.Lock()
	defer c.h.lock.Unlock()
	c.h.letGoLocked(&c.q)
}
