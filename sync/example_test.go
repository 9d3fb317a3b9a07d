package pgsync_test

import (
	"context"
	"errors"
	"fmt"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
)

// Even and odd ranks form teams, which add up without each other.
func ExampleTeam() {
	pgastest.Example(5, func(ctx context.Context, w *pgas.World) error {
		var half *pgsync.Team
		half, err := w.Team().Split(ctx, w.Rank()%2, w.Rank())
		if err != nil {
			return err
		}
		sum := []int{w.Rank()}
		if err := pgsync.AllReduce(ctx, half, sum, sum, pgsync.Sum); err != nil {
			return err
		}
		if w.Rank() == 4 {
			fmt.Println("rank", half.Rank(), "of", half.Size(), "is rank", half.WorldRank(half.Rank()), "of all; sum", sum[0])
		}
		return half.Free(ctx)
	})
	// Output: rank 2 of 3 is rank 4 of all; sum 6
}

// spread returns how far apart a number is on the ranks that have least and most of it.
func spread[T pgsync.Number](ctx context.Context, t *pgsync.Team, mine T) (T, error) {
	two := make([]T, 2)
	for i, op := range []pgsync.Op{pgsync.Min, pgsync.Max} {
		if err := pgsync.AllReduce(ctx, t, two[i:i+1], []T{mine}, op); err != nil {
			return 0, err
		}
	}
	return two[1] - two[0], nil
}

// A function over any type that can be reduced.
func ExampleNumber() {
	pgastest.Example(3, func(ctx context.Context, w *pgas.World) error {
		whole, err := spread(ctx, w.Team(), uint8(7*w.Rank()))
		if err != nil {
			return err
		}
		half, err := spread(ctx, w.Team(), 0.5*float32(w.Rank()))
		if w.Rank() == 1 {
			fmt.Println(whole, half)
		}
		return err
	})
	// Output: 14 1
}

// Who is free takes the next ten tasks.
func ExampleCounter() {
	pgastest.Example(3, func(ctx context.Context, w *pgas.World) error {
		var tasks *pgsync.Counter
		tasks, err := pgsync.NewCounter(ctx, w.Team())
		if err != nil {
			return err
		}
		done := []int64{0}
		for {
			first, err := tasks.Next(10)
			if err != nil {
				return err
			}
			if first >= 100 {
				break
			}
			done[0] += 10 // tasks first to first+9
		}
		if err := pgsync.AllReduce(ctx, w.Team(), done, done, pgsync.Sum); err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Println(done[0], "tasks done")
		}
		return tasks.Free(ctx)
	})
	// Output: 100 tasks done
}

// Several words change together under a lock.
func ExampleLock() {
	pgastest.Example(4, func(ctx context.Context, w *pgas.World) error {
		var lock *pgsync.Lock
		lock, err := pgsync.NewLock(ctx, w.Team())
		if err != nil {
			return err
		}
		p, err := pgas.Alloc[int](ctx, w.Team(), 2)
		if err != nil {
			return err
		}
		if err := lock.Lock(ctx); err != nil {
			return err
		}
		two := make([]int, 2)
		if err := p.On(0).Get(two); err != nil {
			return err
		}
		if err := errors.Join(p.On(0).Put([]int{two[0] + 1, two[1] + 10}), lock.Unlock()); err != nil { // Unlock flushes
			return err
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			mine, _ := p.Local()
			fmt.Println(mine)
		}
		return errors.Join(p.Free(ctx), lock.Free(ctx))
	})
	// Output: [4 40]
}

// A token goes around: each rank waits for its predecessor only.
func ExampleSignals() {
	pgastest.Example(3, func(ctx context.Context, w *pgas.World) error {
		var set *pgsync.Signals
		set, err := pgsync.NewSignals(ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		token := set.Signal(0)
		next := (w.Rank() + 1) % w.Size()
		if w.Rank() == 0 {
			if err := token.Set(next, 100); err != nil {
				return err
			}
		}
		atLeast := pgsync.GreaterOrEqual
		v, err := token.WaitUntil(ctx, atLeast, 100)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Println("back with", v)
		} else if err := token.Set(next, v+1); err != nil {
			return err
		}
		return set.Free(ctx)
	})
	// Output: back with 102
}

// The owner takes posts, whoever they are from; what was put before a post is there.
func ExampleEvent() {
	pgastest.Example(3, func(ctx context.Context, w *pgas.World) error {
		var filled *pgsync.Event
		filled, err := pgsync.NewEvent(ctx, w.Team())
		if err != nil {
			return err
		}
		p, err := pgas.Alloc[int](ctx, w.Team(), w.Size())
		if err != nil {
			return err
		}
		if w.Rank() != 0 {
			err = errors.Join(p.On(0).Add(w.Rank()).Store(10*w.Rank()), filled.Post(0, 1))
		} else if err = filled.Wait(ctx, 2); err == nil {
			mine, _ := p.Local()
			fmt.Println(mine, filled.Count(), filled.TryWait(1))
		}
		return errors.Join(err, p.Free(ctx), filled.Free(ctx))
	})
	// Output: [0 10 20] 0 false
}

// Readers share the lock, a writer has it alone.
func ExampleRWLock() {
	pgastest.Example(4, func(ctx context.Context, w *pgas.World) error {
		var lock *pgsync.RWLock
		lock, err := pgsync.NewRWLock(ctx, w.Team())
		if err != nil {
			return err
		}
		p, err := pgas.Alloc[int](ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		if err := lock.Lock(ctx); err != nil {
			return err
		}
		n, err := p.On(0).Load()
		if err := errors.Join(err, p.On(0).Store(n+1), lock.Unlock()); err != nil { // Unlock flushes
			return err
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if err := lock.RLock(ctx); err != nil {
			return err
		}
		if err := w.Barrier(ctx); err != nil { // all four hold it now
			return err
		}
		n, err = p.On(0).Load()
		if w.Rank() == 2 {
			fmt.Println("written", n, "times")
		}
		return errors.Join(err, lock.RUnlock(), p.Free(ctx), lock.Free(ctx))
	})
	// Output: written 4 times
}

// A reader does something else as long as somebody writes.
func ExampleRWLock_TryRLock() {
	pgastest.Example(2, func(ctx context.Context, w *pgas.World) error {
		lock, err := pgsync.NewRWLock(ctx, w.Team())
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			if err := lock.Lock(ctx); err != nil {
				return err
			}
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if w.Rank() == 1 {
			ok, err := lock.TryRLock()
			if err != nil {
				return err
			}
			fmt.Println("may read:", ok)
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			if err := lock.Unlock(); err != nil {
				return err
			}
		}
		return lock.Free(ctx)
	})
	// Output: may read: false
}

// A sum over all ranks is on its way while each computes.
func ExampleRequest() {
	pgastest.Example(4, func(ctx context.Context, w *pgas.World) error {
		sum := []int{w.Rank() + 1}
		r := w.Team().Start(func(ctx context.Context, t *pgsync.Team) error {
			return pgsync.AllReduce(ctx, t, sum, sum, pgsync.Sum)
		})
		square := (w.Rank() + 1) * (w.Rank() + 1) // and whatever else does not touch sum
		if err := r.Wait(ctx); err != nil {
			return err
		}
		if w.Rank() == 3 {
			fmt.Println(square, sum[0], r.Done())
		}
		return nil
	})
	// Output: 16 10 true
}
