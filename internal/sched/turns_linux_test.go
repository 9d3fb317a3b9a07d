package sched

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestTurns: a swap is measured, it takes longer than nothing and less than a slice, and nothing is left of the measurement: no file,
// and no thread that is bound.
func TestTurns(t *testing.T) {
	s := Process(2)
	var all, after unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &all))
	require.True(t, all.IsSet(ownCore()))
	files := func() int {
		fd, err := unix.Dup(0)
		require.NoError(t, err)
		require.NoError(t, unix.Close(fd))
		return fd
	}
	before := files()
	got := s.Turns(time.Millisecond)
	require.Positive(t, got.Swap)
	require.Less(t, got.Swap, 10*time.Millisecond)
	if a, err := unix.SchedGetAttr(0, 0); err == nil {
		require.Equal(t, time.Duration(a.Runtime), got.Slice)
	}
	require.Equal(t, before, files())
	require.NoError(t, unix.SchedGetaffinity(0, &after))
	require.Equal(t, all, after)
}

func TestSwapOf(t *testing.T) {
	for _, c := range []struct{ both, alone, want time.Duration }{
		{5000, 600, 1900}, // two system calls are 600
		{1000, 600, 1},    // measured in a bad moment: as little as can be
		{0, 600, 0},
		{5000, 0, 0},
	} {
		require.Equal(t, c.want, swapOf(c.both, c.alone), "%+v", c)
	}
	require.Zero(t, Process(1).bestOf(time.Millisecond, func() error { return errors.New("no pipe") }))
}
