package pgas_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/bootstrap"
	"gopgas/internal/sched"
	"gopgas/pgas"
	"gopgas/transport/shm"
)

// leaving is a job whose next barrier ends a context before it begins.
type leaving struct {
	bootstrap.Job
	end context.CancelFunc // nil: none
}

func (j *leaving) Barrier(ctx context.Context) error {
	if j.end != nil {
		j.end()
	}
	return j.Job.Barrier(ctx)
}

// TestCloseThatIsLeftLast: where the context of a rank's Close ends when all have come, and only the launcher's barrier is left, that rank is gone for the others, who
// do not wait for the end of its process.
func TestCloseThatIsLeftLast(t *testing.T) {
	jobs, group := bootstrap.InProcess(3), shm.NewGroup(3, shm.Config{What: "symmetric heap"})
	first := &leaving{Job: jobs[0]}
	jobs[0] = first
	type outcome struct {
		rank int
		err  error
	}
	closed := make(chan outcome, len(jobs))
	for r, job := range jobs {
		go func() {
			w, err := pgas.Assemble(t.Context(), pgas.Config{}, pgas.Parts{
				Job: job, Mapper: group[r], Sched: func(here, _ int) *sched.Sched { return sched.Goroutine(here) },
			})
			if err == nil {
				ctx := t.Context()
				if r == 0 {
					ctx, first.end = context.WithCancel(ctx)
				}
				err = w.Close(ctx)
			}
			closed <- outcome{r, err}
		}()
	}
	for range jobs {
		select {
		case o := <-closed:
			require.ErrorContains(t, o.err, "close: ", "rank %d", o.rank)
			if o.rank == 0 {
				require.ErrorIs(t, o.err, context.Canceled)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("a rank waits for one that has left")
		}
	}
}
