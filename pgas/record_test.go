package pgas_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"gopgas/internal/trace"
	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/window"
)

// TestTrace: each rank's transfers are in its file, with their memory, their peers and their call sites.
func TestTrace(t *testing.T) {
	const rounds = 50
	for _, nic := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "made", "by it")
		var bufs [2]uint64
		pgastest.RunConfig(t, 2, pgastest.Config{NIC: nic, Trace: dir}, func(ctx context.Context, w *pgas.World) error {
			win, err := window.Allocate[int64](ctx, w.Team(), 4096)
			if err != nil {
				return err
			}
			buf := make([]int64, 4096)
			bufs[w.Rank()] = uint64(uintptr(unsafe.Pointer(&buf[0])))
			for range rounds {
				if err := win.Put(1-w.Rank(), 0, buf[:1024]); err != nil {
					return err
				}
				if err := win.Put(1-w.Rank(), 2048, buf[:2048]); err != nil {
					return err
				}
				if err := win.Fence(ctx); err != nil {
					return err
				}
				h, err := win.GetNB(1-w.Rank(), 0, buf[:3000])
				if err != nil {
					return err
				}
				if err := h.Wait(ctx); err != nil {
					return err
				}
				if err := win.Fence(ctx); err != nil {
					return err
				}
			}
			runtime.KeepAlive(buf)
			return win.Free(ctx)
		})
		files, err := trace.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, files, 2)
		for rank, f := range files {
			require.Zero(t, f.Lost)
			sites := map[uint64]map[[trace.MaxStack]uintptr]int{}
			last := int64(0)
			for _, e := range f.Events {
				require.GreaterOrEqual(t, e.At, last)
				last = e.At
				if e.Addr != bufs[rank] { // the library's own
					continue
				}
				require.EqualValues(t, 1-rank, e.Peer)
				require.Equal(t, e.Bytes == 24000, e.Kind == trace.Get)
				if sites[e.Bytes] == nil {
					sites[e.Bytes] = map[[trace.MaxStack]uintptr]int{}
				}
				sites[e.Bytes][e.Stack]++
			}
			require.Len(t, sites, 3)
			seen := map[[trace.MaxStack]uintptr]bool{}
			for bytes, stacks := range sites {
				require.Len(t, stacks, 1, "%d bytes come from one line", bytes)
				for s, n := range stacks {
					require.Equal(t, rounds, n)
					require.False(t, seen[s], "two lines, one call site")
					seen[s] = true
				}
			}
		}
	}
}

func TestTraceThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, err := range pgastest.Errors(t, 1, pgastest.Config{Trace: file}, func(context.Context, *pgas.World) error { return nil }) {
		require.ErrorContains(t, err, "PGAS_TRACE")
	}
}
