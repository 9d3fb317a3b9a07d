package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	pgsync "gopgas/sync"
	"gopgas/window"
)

// Numbers of the goroutines that are no workers, for their sources of decisions. What members must decide alike has its own.
const (
	lockID = 1000 + iota
	ringID
	collectID
	alike
)

// over reports whether a goroutine ends with err: all right if the rank itself is no more.
func (s *scene) over(err error) (bool, error) {
	if err != nil && s.ended.Load() {
		return true, nil
	}
	return err != nil, err
}

// hurry runs f with a context that ends soon, and again with one that does not where the first has ended.
func hurry(ctx context.Context, r *rand.Rand, f func(ctx context.Context) error) error {
	if r.IntN(3) == 0 {
		short, cancel := context.WithTimeout(ctx, time.Duration(r.IntN(200))*time.Microsecond)
		err := f(short)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
	return f(ctx)
}

// lockAndCount takes the lock and increments what it guards, by a get and a put.
func (s *scene) lockAndCount(ctx context.Context) error {
	r := s.rng(s.w.Rank(), lockID)
	for range s.steps {
		err := hurry(ctx, r, s.lock.Lock)
		if err == nil {
			have := make([]int64, 1)
			err = s.locked.Get(0, 0, have)
			if err == nil {
				have[0]++
				err = s.locked.Put(0, 0, have)
			}
			if err == nil {
				s.held.Add(1)
			}
			err = errors.Join(err, s.lock.Unlock())
		}
		if end, err := s.over(err); end {
			return err
		}
	}
	return nil
}

// ring passes values around: who is signalled finds what was put before.
func (s *scene) ring(ctx context.Context) error {
	r := s.rng(s.w.Rank(), ringID)
	next, sig := (s.w.Rank()+1)%s.ranks, s.signals.Signal(0)
	for k := range s.steps {
		v := []int64{int64(1000*s.w.Rank() + k)}
		err := s.slots.PutSignal(next, k, v, sig, uint64(k+1))
		if err == nil {
			err = hurry(ctx, r, func(ctx context.Context) error {
				_, err := sig.WaitUntil(ctx, pgsync.GreaterOrEqual, uint64(k+1))
				return err
			})
		}
		if end, err := s.over(err); end {
			return err
		}
		from := (s.w.Rank() + s.ranks - 1) % s.ranks
		if have, want := s.slots.Local()[k], int64(1000*from+k); have != want {
			return fmt.Errorf("a signal came with %d, want %d", have, want)
		}
	}
	return nil
}

// collect calls collectives of a team, blocking and started, until one for which no member waits long enough.
func (s *scene) collect(ctx context.Context) error {
	t, r := s.teams[0], s.rng(alike, collectID)
	for k := range s.steps {
		err := s.collective(ctx, t, r.IntN(4), k)
		if end, err := s.over(err); end {
			return err
		}
	}
	short, cancel := context.WithTimeout(ctx, time.Duration(s.rng(s.w.Rank(), collectID).IntN(100))*time.Microsecond)
	defer cancel()
	err := s.teams[1].Barrier(short)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	_, err = s.over(err)
	return err
}

func (s *scene) collective(ctx context.Context, t *pgsync.Team, kind, k int) error {
	n := []int{1, 5, 700}[k%3]
	buf, sum := make([]int64, n), make([]int64, n)
	for i := range buf {
		buf[i] = int64(s.w.Rank() + i + k)
	}
	all := int64(s.ranks * (s.ranks - 1) / 2)
	check := func(have []int64, want func(i int) int64) error {
		for i, v := range have {
			if v != want(i) {
				return fmt.Errorf("collective %d: element %d of %d is %d, want %d", k, i, n, v, want(i))
			}
		}
		return nil
	}
	switch kind {
	case 0:
		return t.Barrier(ctx)
	case 1:
		root := k % s.ranks
		if err := pgsync.Broadcast(ctx, t, buf, root); err != nil {
			return err
		}
		return check(buf, func(i int) int64 { return int64(root + i + k) })
	case 2:
		if err := pgsync.AllReduce(ctx, t, sum, buf, pgsync.Sum); err != nil {
			return err
		}
	default:
		other := t.BarrierNB()
		q := t.Start(func(ctx context.Context, t *pgsync.Team) error { return pgsync.AllReduce(ctx, t, sum, buf, pgsync.Sum) })
		if err := errors.Join(q.Wait(ctx), other.Wait(ctx)); err != nil {
			return err
		}
	}
	return check(sum, func(i int) int64 { return all + int64(s.ranks*(i+k)) })
}

// comeAndGo makes windows, uses and frees them.
func (s *scene) comeAndGo(ctx context.Context) error {
	for k := range s.steps / 4 {
		if end, err := s.over(s.window(ctx, k)); end {
			return err
		}
	}
	return nil
}

func (s *scene) window(ctx context.Context, k int) (err error) {
	t, n := s.teams[2], 1+100*(k%5)
	var win *window.Window[int64]
	if k%2 == 0 || !s.nic {
		win, err = window.Allocate[int64](ctx, t, n)
	} else {
		win, err = window.Create(ctx, t, make([]int64, n)) // which nobody can map
	}
	if err != nil {
		return err
	}
	// Gets, because who makes a window while a rank dies may have one of which another member has given up its part, and a put to that fails
	// in the flush of whoever flushes next.
	for i := range win.Local() {
		win.Local()[i] = int64(1000*s.w.Rank() + i + k)
	}
	if err := win.Fence(ctx); err != nil {
		return err
	}
	from, have := (s.w.Rank()+1)%s.ranks, make([]int64, n)
	h, err := win.GetNB(from, 0, have)
	if err != nil {
		return err
	}
	if err := h.Wait(ctx); err != nil {
		return err
	}
	for i, v := range have {
		if want := int64(1000*from + i + k); v != want {
			return fmt.Errorf("window %d of %d elements: element %d is %d, want %d", k, n, i, v, want)
		}
	}
	return win.Free(ctx)
}
