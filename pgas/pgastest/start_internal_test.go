package pgastest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/bootstrap"
	"gopgas/pgas"
)

var errMadeUp = errors.New("made up")

// lastWord is a job in which one rank's exchange fails, the one after so many, when the others have got through.
type lastWord struct {
	bootstrap.Job
	before int
	failed *bool
}

func (j *lastWord) Exchange(ctx context.Context, card []byte) ([][]byte, error) {
	cards, err := j.Job.Exchange(ctx, card)
	if j.before--; j.before < 0 && err == nil && !*j.failed {
		*j.failed = true
		return nil, errMadeUp
	}
	return cards, err
}

// TestStartFailsOnOneRank: a rank whose part in the start fails at any point is gone for the others, who do not wait for it.
func TestStartFailsOnOneRank(t *testing.T) {
	worlds := map[string]func(t *testing.T, wrap func(int, bootstrap.Job) bootstrap.Job, f func(context.Context, *pgas.World) error) []error{
		"simulated": func(t *testing.T, wrap func(int, bootstrap.Job) bootstrap.Job, f func(context.Context, *pgas.World) error) []error {
			r := SimErrors(t, SimConfig{Ranks: 3, wrap: wrap, TimeLimit: 5 * time.Second}, f)
			require.Nil(t, r.Stuck)
			return r.Errors
		},
	}
	for _, p := range Paths()[:3] {
		worlds[p.Name] = func(t *testing.T, wrap func(int, bootstrap.Job) bootstrap.Job, f func(context.Context, *pgas.World) error) []error {
			p.TimeLimit, p.wrap = 5*time.Second, wrap
			return Errors(t, 3, p.Config, f)
		}
	}
	for name, run := range worlds {
		t.Run(name, func(t *testing.T) {
			failures := 0
			for before := range 20 {
				failed := false
				wrap := func(rank int, j bootstrap.Job) bootstrap.Job {
					if rank == 1 {
						return &lastWord{j, before, &failed}
					}
					return j
				}
				errs := run(t, wrap, func(ctx context.Context, w *pgas.World) error { return w.Barrier(ctx) })
				if !failed {
					require.NoError(t, errors.Join(errs...))
					break
				}
				failures++
				for rank, err := range errs {
					at := fmt.Sprintf("rank %d, after %d exchanges", rank, before)
					require.Error(t, err, at)
					if rank == 1 {
						require.ErrorIs(t, err, errMadeUp, at)
					} else if !errors.Is(err, pgas.ErrPeerGone) {
						require.ErrorIs(t, err, bootstrap.ErrRankLeft, at)
					}
				}
			}
			require.Greater(t, failures, 2)
		})
	}
}
