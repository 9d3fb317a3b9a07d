package bootstrap

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/pmiserver"
	"gopgas/transport"
)

// TestWhoIsMissing: a rank whose patience ends in a barrier says why, in the words of its context, and under pgasrun who has
// not come; others wait on, and learn of an end as they do of any lost rank.
func TestWhoIsMissing(t *testing.T) {
	for _, c := range []struct {
		job, text, second string
	}{
		{"PGAS_JOB=job-1", "the patience is over: ranks 1, 2, 3 have not come", "the patience is over: ranks 1, 3 have not come"},
		{"PGAS_JOB=another", "the patience is over", ""},
	} {
		envs, near := serve(t, 4, pmiserver.Config{})
		var jobs []Job
		for r := range 3 {
			j, err := Open(t.Context(), append(envs[r], c.job))
			require.NoError(t, err)
			jobs = append(jobs, j)
		}
		over := errors.New("the patience is over")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, over)
		err := jobs[0].Barrier(ctx)
		cancel()
		require.ErrorIs(t, err, over)
		require.ErrorContains(t, err, c.text)
		if c.second != "" { // who has given up has come
			ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, over)
			require.ErrorContains(t, jobs[2].Barrier(ctx), c.second)
			cancel()
		}
		require.ErrorIs(t, jobs[0].Barrier(t.Context()), over, "B1: unusable from now on")

		got := make(chan error, 1)
		go func() {
			_, err := jobs[1].Exchange(t.Context(), []byte("x"))
			got <- err
		}()
		near[3].Close()
		err = <-got
		require.ErrorIs(t, err, transport.ErrPeerGone)
		var op *transport.OpError
		require.ErrorAs(t, err, &op)
		require.Equal(t, 3, op.Rank)
		require.ErrorContains(t, err, "rank 3 has ended its PMI connection")
	}
}
