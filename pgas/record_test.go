package pgas_test

import (
	"context"
	"errors"
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
		dir := filepath.Join(t.TempDir(), "made by it")
		var bufs, parts [2]uint64
		pgastest.RunConfig(t, 2, pgastest.Config{NIC: nic, Trace: dir}, func(ctx context.Context, w *pgas.World) error {
			win, err := window.Allocate[int64](ctx, w.Team(), 4096)
			if err != nil {
				return err
			}
			buf := make([]int64, 4096)
			bufs[w.Rank()] = uint64(uintptr(unsafe.Pointer(&buf[0])))
			parts[w.Rank()] = uint64(uintptr(unsafe.Pointer(&win.Local()[0])))
			if _, err := window.FetchAdd(win, 1-w.Rank(), 4000, 1); err != nil {
				return err
			}
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
			atomics := 0
			for _, e := range f.Events {
				require.GreaterOrEqual(t, e.At, last)
				last = e.At
				if e.Kind == trace.Atomic {
					require.Equal(t, [2]uint64{parts[1-rank] + 32000, 8}, [2]uint64{e.To.Start + e.Off, e.Bytes})
					atomics++
				}
				if e.Addr != bufs[rank] { // the library's own
					continue
				}
				require.EqualValues(t, 1-rank, e.Peer)
				require.Equal(t, e.Bytes == 24000, e.Kind == trace.Get)
				require.True(t, e.To.Holds(e.Off, e.Bytes), "%+v", e)
				disp := map[bool]uint64{true: 2048 * 8}[e.Bytes == 16384]
				require.Equal(t, parts[1-rank]+disp, e.To.Start+e.Off)
				if sites[e.Bytes] == nil {
					sites[e.Bytes] = map[[trace.MaxStack]uintptr]int{}
				}
				sites[e.Bytes][e.Stack]++
			}
			require.Len(t, sites, 3)
			require.Equal(t, nic, atomics == 1, "those of the CPU leave nothing")
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

// TestTraceOfRuns: a transfer of many runs leaves an event for each, with its own memory and all of one call site, and how long it
// took, which of a non-blocking one nobody knows.
func TestTraceOfRuns(t *testing.T) {
	const rows, stride, row = 10, 3000, 2000 // in elements
	for _, nic := range []bool{false, true} {
		dir := t.TempDir()
		var base uint64
		pgastest.RunConfig(t, 2, pgastest.Config{NIC: nic, Trace: dir}, func(ctx context.Context, w *pgas.World) error {
			win, err := window.Allocate[int64](ctx, w.Team(), rows*stride)
			if err != nil || w.Rank() != 0 {
				return errors.Join(err, win.Fence(ctx), win.Free(ctx))
			}
			buf := make([]int64, rows*stride)
			base = uint64(uintptr(unsafe.Pointer(&buf[0])))
			s := window.Section{Rows: rows, Cols: row, Stride: stride, Step: 1, NearStride: stride, NearStep: 1}
			err = errors.Join(win.PutSection(1, 0, buf, s), win.GetSection(1, 0, buf, s))
			hs, nberr := win.GetSectionNB(1, 0, buf, s)
			err = errors.Join(err, nberr, hs.Wait(ctx), win.Fence(ctx), win.Free(ctx))
			runtime.KeepAlive(buf)
			return err
		})
		files, err := trace.ReadDir(dir)
		require.NoError(t, err)
		calls := map[[trace.MaxStack]uintptr][]trace.Event{}
		for _, e := range files[0].Events {
			if e.Addr >= base && e.Addr < base+8*rows*stride {
				require.EqualValues(t, 1, e.Peer)
				calls[e.Stack] = append(calls[e.Stack], e)
			}
		}
		require.Len(t, calls, 3, "one call site each")
		unknown, kinds := 0, map[trace.Kind]int{}
		for _, events := range calls {
			require.Len(t, events, rows)
			kinds[events[0].Kind]++
			if events[0].Took == 0 {
				unknown++
			}
			for i, e := range events {
				require.EqualValues(t, 8*row, e.Bytes)
				require.Equal(t, base+uint64(8*stride*i), e.Addr)
				require.Equal(t, events[0].At, e.At)
				require.Equal(t, events[0].Took, e.Took)
			}
		}
		require.Equal(t, map[trace.Kind]int{trace.Put: 1, trace.Get: 2}, kinds)
		require.LessOrEqual(t, unknown, 1)
		require.True(t, nic || unknown == 0, "a copy is over at once")
	}
}

func TestTraceThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, err := range pgastest.Errors(t, 1, pgastest.Config{Trace: file}, func(context.Context, *pgas.World) error { return nil }) {
		require.ErrorContains(t, err, "PGAS_TRACE")
	}
}
