package pgsync_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/bootstrap"
	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/transport"
	"gopgas/transport/shm"
)

// meter counts the rooms that a rank makes and gives back, and may refuse them.
type meter struct {
	transport.Mapper
	refuse        bool
	made, refuses atomic.Int32
	mu            sync.Mutex // guards the field below
	rooms         map[uint64]bool
}

func (m *meter) Alloc(bytes int) (mem.Range, transport.Token, error) {
	if bytes != 2*pgsync.RoomBytes {
		return m.Mapper.Alloc(bytes)
	}
	if m.refuse {
		m.refuses.Add(1)
		return mem.Range{}, nil, transport.ErrLimit
	}
	r, token, err := m.Mapper.Alloc(bytes)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made.Add(1)
	m.rooms[r.Addr()] = true
	return r, token, err
}

func (m *meter) Free(r mem.Range) error {
	m.mu.Lock()
	delete(m.rooms, r.Addr())
	m.mu.Unlock()
	return m.Mapper.Free(r)
}

// left is how many rooms there are.
func (m *meter) left() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.rooms)
}

// metered runs f in a world of n ranks that map each other's memory, of whom rank refuser, if there is such a one, gets no rooms.
func metered(t *testing.T, n, refuser int, f func(ctx context.Context, w *pgas.World, m *meter) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	jobs, mappers := bootstrap.InProcess(n), shm.NewGroup(n, shm.Config{What: "symmetric heap"})
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			m := &meter{Mapper: mappers[r], refuse: r == refuser, rooms: map[uint64]bool{}}
			parts := pgas.Parts{Job: jobs[r], Mapper: m, Heap: raceEnabled, Sched: func(here, _ int) *sched.Sched { return sched.Goroutine(here) }}
			w, err := pgas.Assemble(ctx, pgas.Config{IdleCores: "always", Reg: "leavepinned"}, parts)
			if err == nil {
				if err = f(ctx, w, m); err == nil {
					err = w.Close(ctx)
				} else {
					w.Fail(err)
				}
			}
			if err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
		})
	}
	wg.Wait()
}

// longCalls are calls of n elements, one behind the other, none of which waits for more than it needs; what they bring is compared.
func longCalls(ctx context.Context, t *pgsync.Team, n, seed int) error {
	me, size := t.Rank(), t.Size()
	given := func(m int) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = float64(seed+m+1) / float64(1+i%7)
		}
		return out
	}
	sum := given(0)
	for m := 1; m < size; m++ {
		for i, v := range given(m) {
			sum[i] += v
		}
	}
	for root := range size { // a root does not wait for those who read
		buf := make([]float64, n)
		if me == root {
			buf = given(root)
		}
		if err := pgsync.Broadcast(ctx, t, buf, root); err != nil {
			return err
		}
		if !slices.Equal(buf, given(root)) {
			return fmt.Errorf("broadcast of %d from %d", n, root)
		}
	}
	all, mine := make([]float64, n*size), given(me)
	if err := pgsync.AllGather(ctx, t, all, mine); err != nil {
		return err
	}
	for m := range size {
		if !slices.Equal(all[m*n:(m+1)*n], given(m)) {
			return fmt.Errorf("allgather of %d: what %d gave", n, m)
		}
	}
	if err := pgsync.AllReduce(ctx, t, mine, mine, pgsync.Sum); err != nil { // in place
		return err
	}
	if !slices.Equal(mine, sum) { // in the order of ranks, bit by bit
		return fmt.Errorf("allreduce of %d", n)
	}
	mine = given(me)
	if err := pgsync.Reduce(ctx, t, mine, mine, pgsync.Sum, seed%size); err != nil {
		return err
	}
	if me == seed%size && !slices.Equal(mine, sum) {
		return fmt.Errorf("reduce of %d to %d", n, me)
	}
	return nil
}

// TestLongCalls: calls that take several of the largest turns, short ones between them, and started ones of both sorts beside them.
func TestLongCalls(t *testing.T) {
	const parts = 2*pgsync.RoomBytes/8 + 7
	f := func(ctx context.Context, w *pgas.World) error {
		long := func(n, seed int) *pgsync.Request {
			return w.Team().Start(func(ctx context.Context, t *pgsync.Team) error { return longCalls(ctx, t, n, seed) })
		}
		started := []*pgsync.Request{long(5000, 50), long(100, 60)}
		lengths := []int{parts, 10, 3000, parts - 6, 0, 1} // the last part of the fourth goes as a slip
		if raceEnabled {
			lengths = lengths[:3]
		}
		for round, n := range lengths {
			if err := longCalls(ctx, w.Team(), n, round); err != nil {
				return err
			}
		}
		return errors.Join(started[0].Wait(ctx), started[1].Wait(ctx))
	}
	if !testing.Short() {
		t.Run("simulated", func(t *testing.T) {
			simulated(t, pgastest.SimConfig{Ranks: 4, RanksPerNode: 4, Mapped: true, Seed: 1}, f)
		})
	}
	for _, p := range pgastest.PathsOf(t) {
		for _, n := range p.Worlds([]int{2, 5}) {
			t.Run(fmt.Sprintf("%s-%d", p.Name, n), func(t *testing.T) {
				p.TimeLimit = 30 * time.Second
				pgastest.RunConfig(t, n, p.Config, f)
			})
		}
	}
}

// TestRoom: a team has larger outboxes from its first long call on, and no more after it has been freed.
func TestRoom(t *testing.T) {
	metered(t, 3, -1, func(ctx context.Context, w *pgas.World, m *meter) error {
		cast := func(t *pgsync.Team, bytes int) error {
			return pgsync.Broadcast(ctx, t, make([]byte, bytes), t.Size()-1)
		}
		started := w.Team().Start(func(_ context.Context, t *pgsync.Team) error { return cast(t, pgsync.RoomBytes) })
		if err := errors.Join(started.Wait(ctx), cast(w.Team(), outbox)); err != nil {
			return err
		}
		require.Zero(t, m.left(), "short calls and started ones need none")
		team, err := w.Team().Split(ctx, w.Rank()%2, 0)
		if err != nil {
			return err
		}
		for range 2 {
			if err := errors.Join(cast(w.Team(), outbox+1), cast(team, 3*outbox)); err != nil {
				return err
			}
		}
		want := 1
		if team.Size() == 2 {
			want++ // a team of one member talks to nobody
		}
		require.Equal(t, want, m.left())
		least := uint64(math.MaxUint64)
		for range 4 {
			before := w.Team().Barriers()
			if err := cast(w.Team(), 4*pgsync.RoomBytes); err != nil {
				return err
			}
			least = min(least, w.Team().Barriers()-before)
		}
		require.EqualValues(t, 4, least, "one for each part, in calls that do not ask whether the memory is offered")
		if err := team.Free(ctx); err != nil {
			return err
		}
		require.Equal(t, 1, m.left())
		require.EqualValues(t, want, m.made.Load())
		return nil
	})
}

// TestRoomRefused: where one member has no memory for larger outboxes nobody uses them, and nobody asks again.
func TestRoomRefused(t *testing.T) {
	metered(t, 3, 1, func(ctx context.Context, w *pgas.World, m *meter) error {
		for seed := range 2 {
			if err := longCalls(ctx, w.Team(), 9000, seed); err != nil {
				return err
			}
		}
		require.Zero(t, m.left())
		require.LessOrEqual(t, m.made.Load()+m.refuses.Load(), int32(1))
		return nil
	})
}

// TestRoomLeft: who leaves a call in which larger outboxes are being made leaves a collective: the others are told, and a team of the
// survivors makes its own.
func TestRoomLeft(t *testing.T) {
	var gaveUp sync.WaitGroup
	gaveUp.Add(1)
	errs := pgastest.Errors(t, 3, pgastest.Config{TimeLimit: 10 * time.Second}, func(ctx context.Context, w *pgas.World) error {
		if w.Rank() == 0 {
			short, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			require.ErrorIs(t, pgsync.Broadcast(short, w.Team(), make([]byte, pgsync.RoomBytes), 0), context.DeadlineExceeded)
			gaveUp.Done()
		} else {
			gaveUp.Wait()
			require.ErrorIs(t, pgsync.Broadcast(ctx, w.Team(), make([]byte, pgsync.RoomBytes), 0), pgsync.ErrAbandoned)
		}
		team, err := w.Team().Survivors(ctx)
		if err != nil {
			return err
		}
		if err := longCalls(ctx, team, 9000, 1); err != nil {
			return err
		}
		return nil // the world is closed then, which the team of all is of no more use for
	})
	for _, err := range errs {
		require.ErrorIs(t, err, pgsync.ErrAbandoned)
		require.ErrorContains(t, err, "close")
	}
}
