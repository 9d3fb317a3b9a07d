package main

import (
	"context"
	"encoding/csv"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestSeatsFigure makes the figure as a user does, by the two programs beside each other. What it measures is not looked at, but for who has a helper
// and what is posted.
func TestSeatsFigure(t *testing.T) {
	if testing.Short() {
		t.Skip("starts seventy jobs: run without -short")
	}
	var may unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &may))
	if may.Count() < 2 {
		t.Skip("the figure wants two cores")
	}
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", dir+string(filepath.Separator), ".", "../pgasrun").CombinedOutput()
	require.NoError(t, err, "%s", out)
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "pgasbench"), "reg", "--csv", "--bytes", "65536", "--iterations", "5", "--compute", "100us", "seats")
	var said strings.Builder
	cmd.Stderr = &said
	out, err = cmd.Output()
	require.NoError(t, err, "%s", said.String())
	r := csv.NewReader(strings.NewReader(string(out)))
	r.Comment = '#'
	rows, err := r.ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 1+2*6)
	for _, row := range rows[1:] {
		if row[0] == "4" && row[1] != "always" || strings.HasPrefix(row[1], "none") {
			require.Equal(t, []string{"0", "0"}, row[2:4], "helpers of %s ranks under %s", row[0], row[1])
		}
	}
}

// TestOnCores: who is started may use so many cores, and this thread all that it could before.
func TestOnCores(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, during, after unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &before))
	require.NoError(t, onCores(1, func() error { return unix.SchedGetaffinity(0, &during) }))
	require.NoError(t, unix.SchedGetaffinity(0, &after))
	require.Equal(t, 1, during.Count())
	require.Equal(t, before, after)
	failed := errors.New("it did not start")
	require.ErrorIs(t, onCores(1, func() error { return failed }), failed)
	require.ErrorContains(t, onCores(before.Count()+1, func() error { return nil }), "this process may use")
}

// TestNoLauncher: without pgasrun the error says where it was looked for.
func TestNoLauncher(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoFileExists(t, filepath.Join(filepath.Dir(self), "pgasrun"))
	require.ErrorContains(t, startRanks(context.Background(), 1, 1, nil), "neither beside pgasbench")
}
