package window_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// calls are all operations of a window on target at disp with n elements.
func calls(win *window.Window[int32], target, disp, n int) map[string]error {
	buf := make([]int32, max(n, 0))
	one := func(v int32, err error) error { return err }
	out := map[string]error{
		"put": win.Put(target, disp, buf), "get": win.Get(target, disp, buf),
		"accumulate": window.Accumulate(win, target, disp, buf, pgsync.Sum),
	}
	_, out["put nb"] = win.PutNB(target, disp, buf)
	_, out["get nb"] = win.GetNB(target, disp, buf)
	if n == 1 {
		out["load"] = one(window.Load(win, target, disp))
		out["store"] = window.Store(win, target, disp, 1)
		_, out["load nb"] = window.LoadNB(win, target, disp, &buf[0])
		out["add"] = one(window.FetchAdd(win, target, disp, 1))
		out["swap"] = one(window.Swap(win, target, disp, 1))
		out["cas"] = one(window.CompareSwap(win, target, disp, 0, 1))
		out["and"] = one(window.FetchAnd(win, target, disp, 1))
		out["or"] = one(window.FetchOr(win, target, disp, 1))
		out["xor"] = one(window.FetchXor(win, target, disp, 1))
	}
	return out
}

func TestRefusedBeforeAnythingMoves(t *testing.T) {
	sizes(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		const n = 9
		win, err := window.Allocate[int32](ctx, w.Team(), n)
		if err != nil {
			return err
		}
		for i := range win.Local() {
			win.Local()[i] = -5
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		refused := func(want error, target, disp, k int) {
			for name, err := range calls(win, target, disp, k) {
				require.ErrorIs(t, err, want, "%s at %d, %d: %d elements", name, target, disp, k)
				var oe *pgas.OpError
				require.ErrorAs(t, err, &oe, name)
				require.Equal(t, target, oe.Rank, name)
			}
		}
		for target := range w.Size() {
			for _, c := range [][2]int{{n, 1}, {-1, 1}, {0, n + 1}, {n - 1, 2}, {math.MaxInt, 1}, {math.MinInt, 1}, {n + 1, 0}, {-1, 0}, {math.MaxInt / 4, 2}} {
				refused(window.ErrRange, target, c[0], c[1])
			}
		}
		for _, target := range []int{-1, w.Size(), math.MaxInt, math.MinInt} {
			refused(window.ErrTarget, target, 0, 1)
			require.ErrorIs(t, win.Flush(target), window.ErrTarget)
			require.ErrorIs(t, win.Order(target), window.ErrTarget)
			require.Zero(t, win.Len(target))
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		require.Equal(t, []int32{-5, -5, -5, -5, -5, -5, -5, -5, -5}, win.Local())
		if err := win.Free(ctx); err != nil {
			return err
		}
		for target := range w.Size() {
			refused(pgas.ErrClosed, target, 0, 1)
			require.ErrorIs(t, win.Flush(target), pgas.ErrClosed)
			require.ErrorIs(t, win.Order(target), pgas.ErrClosed)
		}
		require.ErrorIs(t, win.FlushAll(), pgas.ErrClosed)
		require.ErrorIs(t, win.Fence(ctx), pgas.ErrClosed)
		require.ErrorContains(t, win.Fence(ctx), "fence:")
		require.ErrorIs(t, win.Free(ctx), pgas.ErrClosed)
		require.Empty(t, win.Local())
		return nil
	})
}

// TestErrorsNameRanksOfTheWorld: in a team whose members have other numbers than in the world, too.
func TestErrorsNameRanksOfTheWorld(t *testing.T) {
	each(t, 3, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		team, err := w.Team().Split(ctx, min(w.Rank(), 1), -w.Rank()) // 0, and 2 and 1
		if err != nil {
			return err
		}
		win, err := window.Allocate[int32](ctx, team, 4)
		if err != nil {
			return err
		}
		buf := make([]int32, 2)
		names := func(want error, call func(target int) error) {
			t.Helper()
			for target := range team.Size() {
				err := call(target)
				require.ErrorIs(t, err, want)
				var oe *pgas.OpError
				require.ErrorAs(t, err, &oe)
				require.Equal(t, team.WorldRank(target), oe.Rank, "%v", err)
			}
		}
		beyond := func(target int) []window.Piece {
			return []window.Piece{{Target: target, Near: len(buf) + 1, Section: window.Packed(1, 1, 1)}}
		}
		names(window.ErrRange, func(target int) error { return win.PutSections(buf, beyond(target)) })
		names(window.ErrRange, func(target int) error { return win.GetSections(buf, beyond(target)) })
		names(window.ErrRange, func(target int) error { return win.Put(target, 3, buf) })
		if err := win.Free(ctx); err != nil {
			return err
		}
		names(pgas.ErrClosed, func(target int) error { return win.Put(target, 0, buf) })
		names(pgas.ErrClosed, win.Flush)
		return nil
	})
}

func TestUseAfterFreeOfAnEmptyWindow(t *testing.T) {
	each(t, 2, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		win, err := window.Allocate[int32](ctx, w.Team(), 0)
		if err != nil {
			return err
		}
		require.NoError(t, errors.Join(win.Put(1, 0, nil), win.Flush(1), win.Order(1), win.FlushAll(), win.Fence(ctx)))
		require.ErrorIs(t, win.Put(1, 0, make([]int32, 1)), window.ErrRange)
		if err := win.Free(ctx); err != nil {
			return err
		}
		require.ErrorIs(t, win.Put(1, 0, nil), pgas.ErrClosed)
		return nil
	})
}

func TestTypesThatCannotBeShared(t *testing.T) {
	each(t, 2, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		_, e1 := window.Allocate[*int](ctx, w.Team(), 1)
		_, e2 := window.Allocate[string](ctx, w.Team(), 1)
		_, e3 := window.Create(ctx, w.Team(), make([][]byte, 1))
		_, e4 := window.Allocate[struct{ A any }](ctx, w.Team(), 1)
		_, e5 := window.Allocate[struct{}](ctx, w.Team(), 1)
		for i, err := range []error{e1, e2, e3, e4, e5} {
			require.ErrorIs(t, err, mem.ErrElem, "%d", i)
		}
		for _, n := range []int{-1, math.MaxInt, math.MaxInt / 8} {
			_, err := window.Allocate[int64](ctx, w.Team(), n)
			require.ErrorIs(t, err, window.ErrRange)
		}
		win, err := window.Allocate[int64](ctx, w.Team(), 1) // and the team still works
		if err != nil {
			return err
		}
		return win.Free(ctx)
	})
}

// TestMembersDisagree: sizes, types or calls that differ between members are an error of all, and no window.
func TestMembersDisagree(t *testing.T) {
	each(t, 3, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		var err error
		expect := func(what string) {
			require.ErrorIs(t, err, pgsync.ErrMismatch, what)
			var oe *pgas.OpError
			require.ErrorAs(t, err, &oe)
			require.NotEqual(t, w.Rank(), oe.Rank, "it names another")
		}
		_, err = window.Allocate[int64](ctx, w.Team(), 10+w.Rank()%2)
		expect("sizes")
		if w.Rank() == 1 {
			_, err = window.Allocate[int32](ctx, w.Team(), 10)
		} else {
			_, err = window.Allocate[int64](ctx, w.Team(), 10)
		}
		expect("types")
		if w.Rank() == 2 {
			_, err = window.Create(ctx, w.Team(), make([]int64, 10))
		} else {
			_, err = window.Allocate[int64](ctx, w.Team(), 10)
		}
		expect("calls")
		if w.Rank() == 1 {
			_, err = window.Allocate[*int](ctx, w.Team(), 10)
			require.ErrorIs(t, err, mem.ErrElem)
		} else {
			_, err = window.Allocate[int64](ctx, w.Team(), 10)
			expect("a member refused")
		}
		_, used := w.HeapUsage()
		win, err := window.Allocate[int64](ctx, w.Team(), 10)
		if err != nil {
			return err
		}
		if err := win.Free(ctx); err != nil {
			return err
		}
		_, after := w.HeapUsage()
		require.Equal(t, used, after)
		return nil
	})
}
