package crew

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseStat(t *testing.T) {
	state, ticks, ok := parseStat([]byte("12 (a) b ) (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15"))
	require.True(t, ok)
	require.EqualValues(t, 'S', state)
	require.EqualValues(t, 11+12, ticks)
	for _, bad := range []string{"", "12", "12 (a)", "12 (a) S 1 2", "1 (a) SS 1 2 3 4 5 6 7 8 9 10 11 12 13", "1 (a) S 1 2 3 4 5 6 7 8 9 10 x y 13"} {
		_, _, ok := parseStat([]byte(bad))
		require.False(t, ok, bad)
	}
}

func TestCatches(t *testing.T) {
	const status = "Name:\tx\nSigIgn:\t0000000000000004\nSigCgt:\tfffffffd7fc1fefb\n"
	require.False(t, catches([]byte(status), syscall.SIGQUIT))
	require.True(t, catches([]byte(status), syscall.SIGINT))
	require.True(t, catches([]byte("SigCgt:\t0000000000000004\n"), syscall.SIGQUIT))
	require.False(t, catches([]byte("Name:\tx\n"), syscall.SIGQUIT))
	require.False(t, catches([]byte("SigCgt:\t?\n"), syscall.SIGQUIT))
}

func TestShowsStacks(t *testing.T) {
	require.True(t, showsStacks(os.Getpid()))
	require.False(t, showsStacks(0))
}
