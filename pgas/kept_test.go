package pgas_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/window"
)

// putSome makes so many large transfers that what they cost is measured.
func putSome(ctx context.Context, w *pgas.World) error {
	win, err := window.Allocate[byte](ctx, w.Team(), 256<<10)
	if err != nil {
		return err
	}
	if w.Rank() == 0 {
		src := make([]byte, 256<<10)
		for range 16 {
			if err := errors.Join(win.Put(1, 0, src), win.Flush(1)); err != nil {
				return err
			}
		}
	}
	return win.Free(ctx)
}

// TestCostsKept: what one job has measured, though it is over at once, the next one knows from the start, and adds what it measures with the other rank; unless its NIC is
// another, or what is written there is no such thing: then that job measures.
func TestCostsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "costs")
	var said atomic.Int64
	known := func(c pgastest.Config) (at time.Time, all bool) {
		t.Helper()
		c.NIC, c.Costs, c.Say = true, dir, func(text string) { said.Add(1); t.Log(text) }
		pgastest.RunConfig(t, 2, c, func(ctx context.Context, w *pgas.World) error {
			win, err := window.Allocate[byte](ctx, w.Team(), 8)
			if err != nil {
				return err
			}
			when, _ := w.Team().Engine().Kept()
			if w.Rank() == 0 {
				at, all = when, w.Team().Engine().Measured()
			}
			return errors.Join(win.Free(ctx), putSome(ctx, w))
		})
		return at, all
	}
	unknown := func(c pgastest.Config) {
		t.Helper()
		at, all := known(c)
		require.Zero(t, at)
		require.False(t, all)
	}
	pages := func() []string {
		list, err := filepath.Glob(filepath.Join(dir, "*"))
		require.NoError(t, err)
		return list
	}
	soft, tcp := pgastest.Config{Over: "soft"}, pgastest.Config{Over: "tcp"}
	unknown(soft)
	require.Len(t, pages(), 1)
	at, all := known(soft)
	require.WithinDuration(t, time.Now(), at, time.Minute)
	require.False(t, all, "how far the other rank is")
	at, all = known(soft)
	require.NotZero(t, at)
	require.True(t, all)
	require.Zero(t, said.Load())
	if raceEnabled {
		return // measuring takes long there
	}
	bounce := soft
	bounce.Eager = "bounce"
	unknown(bounce)
	unknown(tcp)
	require.Len(t, pages(), 3)
	at, _ = known(tcp)
	require.NotZero(t, at)

	for _, page := range pages() {
		require.NoError(t, os.WriteFile(page, []byte("nonsense"), 0o644))
	}
	unknown(soft)
	require.EqualValues(t, 1, said.Load(), "who has not measured says it")
	at, _ = known(soft)
	require.NotZero(t, at)
	require.EqualValues(t, 1, said.Load())
	require.Len(t, pages(), 3, "nothing else is left")

	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.WriteFile(dir, nil, 0o600))
	for _, err := range pgastest.Errors(t, 2, pgastest.Config{NIC: true, Over: "soft", Costs: dir}, putSome) {
		require.ErrorIs(t, err, pgas.ErrConfig)
	}
}

// TestCostsSomewhere: what can be no directory for costs is an error of the configuration.
func TestCostsSomewhere(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, bad := range []string{file, filepath.Join(dir, "not", "there")} {
		_, err := pgas.FromEnvironment([]string{"PGAS_COSTS=" + bad})
		require.ErrorIs(t, err, pgas.ErrConfig)
		require.ErrorContains(t, err, "PGAS_COSTS="+strconv.Quote(bad))
	}
	c, err := pgas.FromEnvironment([]string{"PGAS_COSTS=" + filepath.Join(dir, "new")})
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "new"), c.Costs)
}
