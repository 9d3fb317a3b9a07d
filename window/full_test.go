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
