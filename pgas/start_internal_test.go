//go:build linux

package pgas

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/bootstrap"
	"gopgas/internal/control"
	"gopgas/internal/sched"
	"gopgas/transport/shm"
)

// TestLauncherHearsOfTheStart: a rank that waits for others to start says so, and what the launcher tells it meanwhile is known when
// it has joined.
func TestLauncherHearsOfTheStart(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	far, err := control.Adopt(fds[0])
	require.NoError(t, err)
	near, err := control.Adopt(fds[1])
	require.NoError(t, err)
	c := control.NewClient(far, nil)
	go func() { _ = c.Run() }()

	jobs, group := bootstrap.InProcess(2), shm.NewGroup(2, shm.Config{What: "symmetric heap"})
	worlds, errs := make([]*World, 2), make(chan error, 2)
	join := func(rank int, p Parts) {
		p.Job, p.Mapper, p.Sched = jobs[rank], group[rank], func(here, _ int) *sched.Sched { return sched.Goroutine(here) }
		var err error
		worlds[rank], err = Assemble(t.Context(), Config{}, p)
		errs <- err
	}
	go join(0, Parts{control: near})
	waits, err := c.Waits(t.Context())
	require.NoError(t, err)
	require.Len(t, waits, 1)
	require.Equal(t, "start", waits[0].Op)
	require.Equal(t, -1, waits[0].Peer)
	require.Contains(t, waits[0].Where, "start_internal_test.go:")
	s, err := c.Stats(t.Context())
	require.NoError(t, err)
	require.Empty(t, s.Transports)
	require.NoError(t, c.Gone(1, "was killed by SIGSEGV"))
	_, err = c.Waits(t.Context()) // the channel's lines are read in turn
	require.NoError(t, err)

	go join(1, Parts{})
	require.NoError(t, errors.Join(<-errs, <-errs))
	waits, err = c.Waits(t.Context())
	require.NoError(t, err)
	require.Empty(t, waits)
	require.ErrorContains(t, worlds[0].Failed()[1], "rank 1 was killed by SIGSEGV")
	for _, w := range worlds {
		w.Fail(errors.New("the test is over"))
	}
}

// TestStartThatFails: nothing of a world that was never made goes on.
func TestStartThatFails(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	far, err := control.Adopt(fds[0])
	require.NoError(t, err)
	near, err := control.Adopt(fds[1])
	require.NoError(t, err)
	c, ran := control.NewClient(far, nil), make(chan error)
	go func() { ran <- c.Run() }()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, errors.New("no patience"))
	defer cancel()
	_, err = Assemble(ctx, Config{Stats: true}, Parts{
		Job: bootstrap.InProcess(2)[0], control: near, Sched: func(here, _ int) *sched.Sched { return sched.Goroutine(here) },
	})
	require.ErrorContains(t, err, "no patience")
	require.NoError(t, <-ran, "the channel is closed")
}
