package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// The shared window: lanes of the workers of all ranks, then the counters.
const (
	shortLane = 96
	longLane  = 12 << 10 // of the first worker of each rank: 96 KiB, which goes by the ways of large transfers
)

// laneOf returns where the elements of one worker of one rank are on every part.
func (p plan) laneOf(rank, worker int) (base, n int) {
	base = rank * (longLane + (p.workers-1)*shortLane)
	if worker == 0 {
		return base, longLane
	}
	return base + longLane + (worker-1)*shortLane, shortLane
}

// counter is the element of every part that all ranks add to.
func (p plan) counter() int {
	base, _ := p.laneOf(p.ranks, 0)
	return base
}

// scene is what the goroutines of one rank have in common.
type scene struct {
	plan
	w         *pgas.World
	nic       bool            // ranks reach each other by NICs
	leftovers *sync.WaitGroup // goroutines that may go on when their rank has ended
	opening   *sync.WaitGroup // ranks that have not begun
	living    *sync.WaitGroup // ranks that have not yet looked at what the one that ends has left
	kill      func()          // ends the NIC of the rank that ends before the others, without a word; may be nil

	win     *window.Window[int64]
	lock    *pgsync.Lock
	locked  *window.Window[int64] // one element on rank 0, which the lock guards
	signals *pgsync.Signals
	slots   *window.Window[int64] // what signals announce
	teams   [3]*pgsync.Team       // of the goroutines that call collectives

	taken atomic.Int64   // steps of the workers
	end   chan struct{}  // closed when so many were taken that the rank ends
	ended atomic.Bool    // it does
	added []atomic.Int64 // to the counter of each rank
	held  atomic.Int64   // how often the lock was taken
}

// play is the life of a rank.
func (s *scene) play(ctx context.Context) error {
	err := s.open(ctx)
	s.opening.Done()
	if err == nil {
		err = s.storm(ctx)
	}
	if s.dead >= 0 && s.w.Rank() != s.dead {
		s.living.Done()
		s.living.Wait() // one that leaves is gone for those that are still in a barrier
	}
	return err
}

func (s *scene) storm(ctx context.Context) error {
	errs := make(chan error, s.workers+4)
	var all sync.WaitGroup
	start := func(f func(ctx context.Context) error) {
		s.leftovers.Add(1)
		all.Go(func() {
			defer s.leftovers.Done()
			errs <- f(ctx)
		})
	}
	workers := make([]*worker, s.workers)
	for id := range workers {
		workers[id] = newWorker(s, id)
		start(workers[id].work)
	}
	start(s.lockAndCount)
	start(s.ring)
	start(s.collect)
	start(s.comeAndGo)
	if s.w.Rank() == s.dead {
		<-s.end
		s.opening.Wait()
		s.ended.Store(true)
		if s.kill != nil {
			s.kill()
		}
		return errEnd // its goroutines go on
	}
	all.Wait()
	close(errs)
	for err := range errs {
		if s.tolerate(err) != nil {
			return err
		}
	}
	if s.dead >= 0 {
		return s.survive(ctx, workers)
	}
	return s.settle(ctx, workers)
}

// open makes, with the other ranks, what the goroutines use.
func (s *scene) open(ctx context.Context) (err error) {
	t := s.w.Team()
	s.end, s.added = make(chan struct{}), make([]atomic.Int64, s.ranks)
	if s.dies == 0 {
		close(s.end)
	}
	if s.win, err = window.Allocate[int64](ctx, t, s.counter()+1); err != nil {
		return err
	}
	if s.locked, err = window.Allocate[int64](ctx, t, 1); err != nil {
		return err
	}
	if s.slots, err = window.Allocate[int64](ctx, t, s.steps); err != nil {
		return err
	}
	if s.lock, err = pgsync.NewLock(ctx, t); err != nil {
		return err
	}
	if s.signals, err = pgsync.NewSignals(ctx, t, 1); err != nil {
		return err
	}
	for i := range s.teams {
		if s.teams[i], err = t.Split(ctx, 0, s.w.Rank()); err != nil {
			return err
		}
	}
	return s.w.Barrier(ctx)
}

// step counts one more of the workers' steps.
func (s *scene) step() {
	if n := s.taken.Add(1); n == int64(s.dies) {
		close(s.end)
	}
}

// settle looks whether everything is as it must be, and gives all back.
func (s *scene) settle(ctx context.Context, workers []*worker) error {
	if err := s.win.Fence(ctx); err != nil {
		return err
	}
	for _, wk := range workers {
		if err := wk.lookAtAll(); err != nil {
			return err
		}
	}
	mine, all := make([]int64, s.ranks+1), make([]int64, s.ranks+1)
	for r := range s.ranks {
		mine[r] = s.added[r].Load()
	}
	mine[s.ranks] = s.held.Load()
	if err := pgsync.AllReduce(ctx, s.w.Team(), all, mine, pgsync.Sum); err != nil {
		return err
	}
	have := make([]int64, 1)
	for r := range s.ranks {
		if err := s.win.Get(r, s.counter(), have); err != nil {
			return err
		}
		if have[0] != all[r] {
			return fmt.Errorf("the counter of rank %d is %d after %d additions", r, have[0], all[r])
		}
	}
	if err := s.locked.Get(0, 0, have); err != nil {
		return err
	}
	if have[0] != all[s.ranks] {
		return fmt.Errorf("what the lock guards is %d after %d increments", have[0], all[s.ranks])
	}
	return errors.Join(s.win.Free(ctx), s.locked.Free(ctx), s.slots.Free(ctx), s.lock.Free(ctx), s.signals.Free(ctx), s.w.Barrier(ctx))
}

// survive goes on with those who live: what this rank has put into their parts is there, and no addition is lost.
func (s *scene) survive(ctx context.Context, workers []*worker) error {
	t, err := s.w.Team().Survivors(ctx)
	if err != nil {
		return err
	}
	if t.Size() != s.ranks-1 {
		return fmt.Errorf("%d survivors of %d ranks", t.Size(), s.ranks)
	}
	if err := t.Barrier(ctx); err != nil {
		return err
	}
	for _, wk := range workers {
		if err := wk.lookAtAll(); err != nil {
			return err
		}
	}
	mine, all := make([]int64, s.ranks), make([]int64, s.ranks)
	for r := range s.ranks {
		mine[r] = s.added[r].Load()
	}
	if err := pgsync.AllReduce(ctx, t, all, mine, pgsync.Sum); err != nil {
		return err
	}
	for r := range s.ranks {
		if r == s.dead {
			continue
		}
		have, err := window.FetchAdd(s.win, r, s.counter(), 0) // where memory is mapped the goroutines of the one that ended still add
		if err != nil {
			return err
		}
		if have < all[r] {
			return fmt.Errorf("the counter of rank %d is %d after at least %d additions", r, have, all[r])
		}
	}
	return t.Barrier(ctx)
}
