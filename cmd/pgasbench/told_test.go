package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUntilTold(t *testing.T) {
	if signal.Ignored(syscall.SIGINT) { // by a shell without job control that runs this in the background: untilTold would leave it so
		signal.Notify(make(chan os.Signal, 1), syscall.SIGINT)
	}
	never := func(s os.Signal) { t.Errorf("ended by %v", s) }
	failed := errors.New("failed")
	require.NoError(t, untilTold(t.Context(), never, func(context.Context) error { return nil }))
	require.ErrorIs(t, untilTold(t.Context(), never, func(context.Context) error { return failed }), failed)

	var ended os.Signal
	tidied := false
	err := untilTold(t.Context(), func(s os.Signal) { ended = s; require.True(t, tidied) }, func(ctx context.Context) error {
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGTERM))
		<-ctx.Done()
		tidied = true
		return ctx.Err()
	})
	require.Equal(t, syscall.SIGTERM, ended)
	require.ErrorContains(t, err, "told to end")

	stay := make(chan struct{})
	defer close(stay)
	ended = nil
	err = untilTold(t.Context(), func(s os.Signal) { ended = s }, func(ctx context.Context) error { // the second one is not to wait
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGINT))
		<-ctx.Done()
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGTERM))
		<-stay
		return nil
	})
	require.Equal(t, syscall.SIGINT, ended)
	require.Error(t, err)
}
