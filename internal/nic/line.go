package nic

import (
	"context"
	"slices"
	"sync"

	"gopgas/internal/sched"
	"gopgas/transport"
)

// line is those of this rank who wait for room, pieces or transfers, over a NIC that has crowds: the first looks, and the others sit behind him. So however many
// goroutines use the NIC, few threads wait for it.
type line struct {
	mu    sync.Mutex
	seats []*sched.Seat // in order
	empty []*sched.Seat
}

func (l *line) join() *sched.Seat {
	l.mu.Lock()
	defer l.mu.Unlock()
	var s *sched.Seat
	if n := len(l.empty); n > 0 {
		s, l.empty = l.empty[n-1], l.empty[:n-1]
		s.Still()
	} else {
		fresh := sched.NewSeat()
		s = &fresh
	}
	l.seats = append(l.seats, s)
	return s
}

// first reports whether nobody sits before s.
func (l *line) first(s *sched.Seat) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seats[0] == s
}

// leave has who sits behind s look, if that was the first.
func (l *line) leave(s *sched.Seat) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.seats, s)
	l.seats = slices.Delete(l.seats, i, i+1)
	l.empty = append(l.empty, s)
	if i == 0 && len(l.seats) > 0 {
		l.seats[0].Rouse()
	}
}

// waitInLine is WaitUntil for room, which try takes. Who waits in a line has nothing that somebody before him waits for.
func (n *NIC) waitInLine(l *line, op string, rank int, try func() bool) error {
	if n.hushable == nil {
		return n.WaitUntil(op, rank, try)
	}
	what := sched.What{Op: op, Peer: rank}
	sp := n.begin(context.Background(), what, n.peers.Watch(rank))
	defer n.over(&sp)
	s := l.join()
	defer l.leave(s)
	for looks := false; ; {
		var err error
		switch {
		case n.closed.Load():
			err = ErrOwnEnd
		case !looks && !l.first(s):
			err = n.sit(&sp, s)
		case !looks:
			looks = true
			sp.Resume()
		case try():
			n.noteSlept(&sp, what)
			return nil
		case n.Progress():
			sp.Moved()
		default:
			sched.GiveTurn()
			err = sp.Step()
		}
		if err != nil {
			return transport.NewOpError(op, rank, err)
		}
	}
}
