package pgsync

import (
	"context"
	"fmt"

	"gopgas/internal/sched"
	"gopgas/transport"
)

// WaitAny returns the number of one of n things for which done holds, the lowest it finds, and waits until there is one.
// Things are whatever can be asked without waiting: requests, handles of transfers, signals, events, or a mixture:
//
//	i, err := team.WaitAny(ctx, len(requests), func(i int) bool { return requests[i].Done() })
//
// done is called often, by this goroutine only, and must not wait. The wait ends in an error when ctx ends or a member of the
// team is gone. It allocates nothing. Of no things there is none to wait for: n below 1 is an error.
func (t *Team) WaitAny(ctx context.Context, n int, done func(i int) bool) (int, error) {
	const op = "wait-any"
	if n < 1 {
		return -1, transport.NewOpError(op, -1, fmt.Errorf("%w: none of %d things will ever be done", ErrState, n))
	}
	sp := t.e.Sched.Begin(ctx, sched.What{Op: op, Peer: -1}, t)
	defer sp.End()
	for {
		for i := range n {
			if done(i) {
				return i, nil
			}
		}
		if err := sp.Step(); err != nil {
			return -1, t.waitError(op, -1, err)
		}
	}
}

// WaitSome is WaitAny with the numbers of all things that are done by then, in ascending order, at least one.
func (t *Team) WaitSome(ctx context.Context, n int, done func(i int) bool) ([]int, error) {
	first, err := t.WaitAny(ctx, n, done)
	if err != nil {
		return nil, err
	}
	some := []int{first}
	for i := first + 1; i < n; i++ {
		if done(i) {
			some = append(some, i)
		}
	}
	return some, nil
}

// WaitAll returns when done has held for each of n things, asked in ascending order; at once when there are none.
// Otherwise as WaitAny.
func (t *Team) WaitAll(ctx context.Context, n int, done func(i int) bool) error {
	const op = "wait-all"
	sp := t.e.Sched.Begin(ctx, sched.What{Op: op, Peer: -1}, t)
	defer sp.End()
	for i := 0; i < n; {
		if done(i) {
			i++
			continue
		}
		if err := sp.Step(); err != nil {
			return t.waitError(op, -1, err)
		}
	}
	return nil
}

// WaitAny waits until one of this rank's signals compares to v as asked, and returns its number, the lowest there is, and
// its word. Its waits end as those of Signal.WaitUntil. Wait for some of a set with Team.WaitAny and Signal.Is.
func (s *Signals) WaitAny(ctx context.Context, c Cmp, v uint64) (i int, have uint64, err error) {
	const op = "wait-any"
	if err := s.usable(op); err != nil {
		return -1, 0, err
	}
	if i, err = s.t.WaitAny(ctx, s.n, func(i int) bool {
		var gone bool
		have, gone = s.look(i)
		return gone || c.holds(have, v)
	}); err == nil {
		err = s.usable(op)
	}
	if err != nil {
		return -1, 0, err
	}
	return i, have, nil
}

// look is Load of a signal for a wait, and tells whether the memory was given back meanwhile: then what it saw is nothing.
func (s *Signals) look(i int) (have uint64, gone bool) {
	if s.gone.Load() {
		return 0, true
	}
	have = s.local.Word64(i * signalBytes).Load()
	if s.gone.Load() {
		return 0, true
	}
	s.Signal(i).seen()
	return have, false
}

// WaitSome waits until at least one of this rank's signals compares to v as asked, and returns the numbers of all that do.
func (s *Signals) WaitSome(ctx context.Context, c Cmp, v uint64) ([]int, error) {
	const op = "wait-some"
	if err := s.usable(op); err != nil {
		return nil, err
	}
	some, err := s.t.WaitSome(ctx, s.n, s.holding(c, v))
	if err == nil {
		err = s.usable(op)
	}
	if err != nil {
		return nil, err
	}
	return some, nil
}

// WaitAll waits until each of this rank's signals has compared to v as asked.
func (s *Signals) WaitAll(ctx context.Context, c Cmp, v uint64) error {
	const op = "wait-all"
	if err := s.usable(op); err != nil {
		return err
	}
	if err := s.t.WaitAll(ctx, s.n, s.holding(c, v)); err != nil {
		return err
	}
	return s.usable(op)
}

// holding reports of a signal whether it compares to v as asked, or there is nothing more to wait for.
func (s *Signals) holding(c Cmp, v uint64) func(i int) bool {
	return func(i int) bool {
		have, gone := s.look(i)
		return gone || c.holds(have, v)
	}
}

// usable is an error where the signals were freed, perhaps while op waited.
func (s *Signals) usable(op string) error {
	if s.peers == nil || s.gone.Load() {
		return transport.NewOpError(op, -1, transport.ErrClosed)
	}
	return nil
}

// Is reports whether this rank's word compares to v as asked. What was put before the signal was set is visible then.
// It returns no error: a loop over it does not end when the rank dies that was to set the signal. WaitUntil does, and so does Team.WaitAny.
func (g Signal) Is(c Cmp, v uint64) bool { return c.holds(g.Load(), v) }
