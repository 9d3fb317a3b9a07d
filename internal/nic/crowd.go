package nic

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"gopgas/internal/inflight"
	"gopgas/internal/sched"
)

// Over a NIC each of whose posts and polls is a system call, a goroutine that waits takes as much of a core as what it waits for. Where many of a rank wait, each
// that looked for itself would keep the processor from those whose operations have ended and from those who have more to post. So of a crowd no more look than the
// rank has cores, and find what has come for all. The others sit, until it has come or they are to look themselves. And what is posted while others look is held
// back until their next look, but for what is long, so that what many ask for sets out together. Then its answers come together, and what is asked for behind these
// goes together again. (16 goroutines that get 8 bytes over tcp take a tenth of the time so: docs/performance.md.)

// crowd is the waits of this rank for the ends of operations.
type crowd struct {
	look  int          // how many are to look where there are many
	waits atomic.Int32 // all
	sat   atomic.Int32 // of them, those that sit
	tired atomic.Int32 // and those that have looked for long and may sleep: see sched.Spin
	mu    sync.Mutex
	taken []*seat // in the order in which they sat down
	empty []*seat
}

// goal is an end that a poller brings about: of a piece, of a transfer, or of all that a rank was sent up to a number.
type goal struct {
	piece    *inflight.Piece
	end      *endpoint
	mark     uint64
	transfer int32
	gen      uint32
}

// seat is where one of a crowd waits.
type seat struct {
	sched.Seat
	goal  goal
	taken bool
}

// guest is a wait of a crowd.
type guest struct {
	seat  *seat
	rose  bool // from a seat, to look
	steps int  // since he has found something
	tired bool
}

// everybody looks, on NICs that have no crowds.
const everybody = math.MaxInt32 - 1

// tiring is after how many steps in vain one who looks may sleep between them.
const tiring = 1000

// many reports whether one more wait would sit: there are so many, and some that look. Two of them on a core are quicker by themselves.
//
//gcassert:inline
func (c *crowd) many() bool { return int(c.waits.Load()) > c.look+1 && c.lookers() > 0 }

// lookers is how many look.
//
//gcassert:inline
func (c *crowd) lookers() int { return int(c.waits.Load() - c.sat.Load() - c.tired.Load()) }

// sits reports whether a guest sits, since others look, and has him sit down if he is to. He looks once more at his goal before he sleeps.
func (c *crowd) sits(w *guest, g *goal) bool {
	if w.seat == nil && !c.many() {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch s := w.seat; {
	case s == nil && c.lookers() <= c.look:
		return false
	case s == nil:
		w.seat = c.free()
	case s.taken && c.lookers() >= c.look: // he has got up to see how late it is
		return true
	case s.taken:
		c.getUp(slices.Index(c.taken, s))
		c.giveBack(w)
		return false
	case c.lookers() <= c.look: // he was roused to look
		c.giveBack(w)
		return false
	}
	c.sitDown(w.seat, g)
	if c.lookers() < c.look { // the last who looked has left meanwhile, and took this one for one who looks
		c.getUp(len(c.taken) - 1)
		c.giveBack(w)
		return false
	}
	return true
}

func (c *crowd) sitDown(s *seat, g *goal) {
	s.Still()
	s.goal, s.taken = *g, true
	c.taken = append(c.taken, s)
	c.sat.Add(1)
}

func (c *crowd) free() *seat {
	if n := len(c.empty); n > 0 {
		s := c.empty[n-1]
		c.empty = c.empty[:n-1]
		return s
	}
	return &seat{Seat: sched.NewSeat()}
}

// getUp has seat i be free.
func (c *crowd) getUp(i int) {
	c.taken[i].taken = false
	c.taken = slices.Delete(c.taken, i, i+1)
	c.sat.Add(-1)
}

func (c *crowd) giveBack(w *guest) {
	if w.seat != nil {
		c.empty = append(c.empty, w.seat)
		w.seat, w.rose = nil, true
	}
}

// join begins a guest's wait; leave ends it.
func (c *crowd) join() (w guest) {
	c.waits.Add(1)
	return w
}

// moved is told that a guest has found something.
func (c *crowd) moved(w *guest) {
	w.steps = 0
	if w.tired {
		w.tired = false
		c.tired.Add(-1)
	}
}

// leave ends a guest's wait.
func (c *crowd) leave(w *guest) {
	if w.seat != nil {
		c.mu.Lock()
		if w.seat.taken {
			c.getUp(slices.Index(c.taken, w.seat))
		}
		c.giveBack(w)
		c.mu.Unlock()
	}
	if w.tired {
		c.tired.Add(-1)
	}
	c.waits.Add(-1)
	c.relieve()
}

// relieve has the first of those who sit look if too few do.
func (c *crowd) relieve() {
	if c.sat.Load() == 0 || c.lookers() >= c.look {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.taken) > 0 && c.lookers() < c.look {
		s := c.taken[0]
		c.getUp(0)
		s.Rouse()
	}
}
