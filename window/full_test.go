package window_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/bootstrap"
	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/transport"
	"gopgas/transport/shm"
	"gopgas/window"
)

// full is a mapper that has no more memory from some time on.
type full struct {
	transport.Mapper
	now *atomic.Bool
}

func (m full) Alloc(bytes int) (mem.Range, transport.Token, error) {
	if m.now.Load() {
		return mem.Range{}, nil, transport.ErrLimit
	}
	return m.Mapper.Alloc(bytes)
}

// TestWindowsThatDoNotFit: a window, or a lock, of which one part fits into the heap and another one does not, leaves nothing behind.
func TestWindowsThatDoNotFit(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	const n = 2
	var now atomic.Bool
	jobs, mappers := bootstrap.InProcess(n), shm.NewGroup(n, shm.Config{What: "symmetric heap"})
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			parts := pgas.Parts{
				Job: jobs[r], Mapper: full{mappers[r], &now}, Heap: raceEnabled, Sched: func(here, _ int) *sched.Sched { return sched.Goroutine(here) },
			}
			w, err := pgas.Assemble(ctx, pgas.Config{}, parts)
			require.NoError(t, err)
			require.NoError(t, w.Barrier(ctx))
			now.Store(true)
			reserved, used := w.HeapUsage()
			free := reserved - used
			_, err = window.AllocateConfig[byte](ctx, w.Team(), free-100, window.Config{Epochs: true})
			require.ErrorIs(t, err, transport.ErrLimit)
			_, after := w.HeapUsage()
			require.Equal(t, used, after, "what was allocated for the window")
			rest, err := window.Allocate[byte](ctx, w.Team(), free-256) // room for one lock's block, and not for two
			require.NoError(t, err)
			_, used = w.HeapUsage()
			_, err = pgsync.NewRWLock(ctx, w.Team())
			require.ErrorIs(t, err, transport.ErrLimit)
			_, after = w.HeapUsage()
			require.Equal(t, used, after, "the lock's guard")
			require.NoError(t, errors.Join(rest.Free(ctx), w.Close(ctx)))
		})
	}
	wg.Wait()
}

// counted is a mapper that counts what is mapped.
type counted struct {
	transport.Mapper
	maps *atomic.Int32
}

func (m counted) Map(t transport.Token) (mem.Range, error) {
	r, err := m.Mapper.Map(t)
	if err == nil {
		m.maps.Add(1)
	}
	return r, err
}

func (m counted) Unmap(r mem.Range) error {
	m.maps.Add(-1)
	return m.Mapper.Unmap(r)
}

// TestReachOfAnotherLength: a Ref that does not fit what it names is refused, and leaves no mapping behind; a dynamic window that was freed says so at once.
func TestReachOfAnotherLength(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	const n = 2
	jobs, mappers := bootstrap.InProcess(n), shm.NewGroup(n, shm.Config{What: "symmetric heap"})
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			var maps atomic.Int32
			parts := pgas.Parts{
				Job: jobs[r], Mapper: counted{mappers[r], &maps}, Heap: raceEnabled, Sched: func(here, _ int) *sched.Sched { return sched.Goroutine(here) },
			}
			w, err := pgas.Assemble(ctx, pgas.Config{}, parts)
			require.NoError(t, err)
			d, err := window.NewDynamic[int64](ctx, w.Team())
			require.NoError(t, err)
			refs, err := window.Allocate[window.Ref](ctx, w.Team(), 1)
			require.NoError(t, err)
			ref, err := d.Alloc(10)
			require.NoError(t, err)
			require.NoError(t, errors.Join(refs.Put(1-r, 0, []window.Ref{ref}), refs.Fence(ctx)))
			before, wrong := maps.Load(), refs.Local()[0]
			wrong.Len++
			_, err = d.Reach(wrong)
			require.ErrorIs(t, err, window.ErrRange)
			require.Equal(t, before, maps.Load())
			require.NoError(t, errors.Join(refs.Free(ctx), d.Free(ctx)))
			if r == 0 { // alone
				require.ErrorIs(t, d.Free(ctx), transport.ErrClosed)
			}
			require.NoError(t, w.Close(ctx))
		})
	}
	wg.Wait()
}
