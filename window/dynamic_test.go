package window_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/transport/transporttest"
	"gopgas/window"
)

// TestAttachAndDetach: every rank attaches memory of its own, of its own size, at its own time; its neighbour is told by
// data only, and reaches it with operations of every kind.
func TestAttachAndDetach(t *testing.T) {
	sizes(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		d, err := window.NewDynamic[int32](ctx, w.Team())
		if err != nil {
			return err
		}
		refs, err := window.Allocate[window.Ref](ctx, w.Team(), 2)
		if err != nil {
			return err
		}
		next, prev := (w.Rank()+1)%w.Size(), (w.Rank()+w.Size()-1)%w.Size()
		mapped := w.Size() > 1 && w.Team().Engine().NIC() == ""
		for round := range 3 {
			var given [2]window.Ref
			if given[0], err = d.Alloc(10 + w.Rank()); err != nil {
				return err
			}
			n := 1 // how many were given
			slice := make([]int32, 20+w.Rank())
			given[1], err = d.Attach(slice)
			if mapped {
				require.ErrorIs(t, err, pgas.ErrUnsupported)
				require.ErrorContains(t, err, "Config.NIC")
				require.ErrorContains(t, err, "use Alloc")
			} else if n++; err != nil {
				return err
			}
			if err := errors.Join(refs.Put(prev, 0, given[:n]), refs.Fence(ctx)); err != nil {
				return err
			}
			for k, ref := range refs.Local()[:n] {
				require.Equal(t, next, ref.Member)
				require.Equal(t, 10*(k+1)+next, ref.Len)
				win, err := d.Reach(ref)
				if err != nil {
					return err
				}
				require.Equal(t, ref.Len, win.Len(next))
				if w.Size() > 1 {
					require.Zero(t, win.Len(w.Rank()))
					require.ErrorIs(t, win.Put(w.Rank(), 0, []int32{1}), window.ErrRange)
				}
				_, err = window.FetchAdd(win, next, 0, int32(w.Rank()))
				if err := errors.Join(err, win.Put(next, 2, []int32{5, 6, 7}), win.PutStrided(next, 5, 2, []int32{8, 9}, 1, 2)); err != nil {
					return err
				}
				if err := window.Accumulate(win, next, 3, []int32{100}, pgsync.Sum); err != nil {
					return err
				}
				got := make([]int32, 8)
				if err := errors.Join(win.Flush(next), win.Get(next, 0, got)); err != nil {
					return err
				}
				require.Equal(t, []int32{int32(w.Rank()), 0, 5, 106, 7, 8, 0, 9}, got)
				require.ErrorIs(t, win.Get(next, ref.Len, got[:1]), window.ErrRange)
				if err := win.Free(ctx); err != nil {
					return err
				}
				require.ErrorIs(t, win.Put(next, 0, got), pgas.ErrClosed)
			}
			if err := w.Barrier(ctx); err != nil { // the previous rank is done with mine
				return err
			}
			require.Equal(t, []int32{int32(prev), 0, 5, 106, 7, 8, 0, 9}, d.Local(given[0])[:8])
			if n == 2 {
				require.Equal(t, []int32{int32(prev), 0, 5, 106, 7, 8, 0, 9}, slice[:8])
			}
			require.Nil(t, d.Local(window.Ref{Member: w.Rank() + 1, Len: 1}))
			if round < 2 { // the last are left to Free
				for _, ref := range given[:n] {
					require.NoError(t, d.Detach(ref))
					require.ErrorIs(t, d.Detach(ref), window.ErrRange)
					_, err := d.Reach(ref)
					require.ErrorIs(t, err, window.ErrRange, "detached")
				}
			}
		}
		_, err = d.Alloc(0)
		require.ErrorIs(t, err, window.ErrRange)
		_, err = d.Attach(nil)
		require.ErrorIs(t, err, window.ErrRange)
		for _, bad := range []window.Ref{{}, {Member: -1, Len: 1}, {Member: w.Size(), Len: 1}, {Member: next, Len: 1}} {
			_, err = d.Reach(bad)
			require.Error(t, err)
		}
		if err := errors.Join(refs.Free(ctx), d.Free(ctx)); err != nil {
			return err
		}
		_, err = d.Alloc(1)
		require.ErrorIs(t, err, pgas.ErrClosed)
		require.ErrorIs(t, d.Free(ctx), pgas.ErrClosed)
		return nil
	})
}

// TestUseAfterDetach: through a NIC, using memory that its owner has detached is an error. The NIC refuses it and breaks
// the connection, so it is this rank's last.
func TestUseAfterDetach(t *testing.T) {
	errs := pgastest.Errors(t, 2, pgastest.Config{NIC: true}, func(ctx context.Context, w *pgas.World) error {
		d, err := window.NewDynamic[int64](ctx, w.Team())
		if err != nil {
			return err
		}
		refs, err := window.Allocate[window.Ref](ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		ref, err := d.Attach(make([]int64, 4))
		if err != nil {
			return err
		}
		if err := errors.Join(refs.Put(1-w.Rank(), 0, []window.Ref{ref}), refs.Fence(ctx)); err != nil {
			return err
		}
		win, err := d.Reach(refs.Local()[0])
		if err != nil {
			return err
		}
		if err := errors.Join(win.Put(1-w.Rank(), 0, []int64{1}), win.Fence(ctx), d.Detach(ref), w.Barrier(ctx)); err != nil {
			return err
		}
		if w.Rank() == 0 {
			return win.Get(1, 0, make([]int64, 1))
		}
		return w.Barrier(ctx)
	})
	require.ErrorContains(t, errs[0], "the memory was freed, or its key is wrong")
	require.ErrorIs(t, errs[1], pgas.ErrPeerGone)
}

// TestAttachBeyondTheLimit: memory that is longer than all that the NIC may register can be attached; it is reached through its owner's
// CPU, by messages where it is little and by leases where it is much.
func TestAttachBeyondTheLimit(t *testing.T) {
	const limit, n, long = 10 << 20, 3 << 20, 1 << 18
	c := pgastest.Config{NIC: true, Fabric: transporttest.FabricConfig{MaxPinned: limit}}
	pgastest.RunConfig(t, 2, c, func(ctx context.Context, w *pgas.World) error {
		d, err := window.NewDynamic[int32](ctx, w.Team())
		if err != nil {
			return err
		}
		refs, err := window.Allocate[window.Ref](ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		other, mine := 1-w.Rank(), make([]int32, n)
		ref, err := d.Attach(mine)
		if err != nil {
			return err
		}
		if err := errors.Join(refs.Put(other, 0, []window.Ref{ref}), refs.Fence(ctx)); err != nil {
			return err
		}
		win, err := d.Reach(refs.Local()[0])
		if err != nil {
			return err
		}
		src, back := make([]int32, long), make([]int32, long)
		for i := range src {
			src[i] = int32(i*3 + w.Rank())
		}
		h, err := win.PutNB(other, long, src)
		if err == nil {
			err = h.Wait(ctx)
		}
		if err := errors.Join(err, win.Put(other, 0, []int32{1, 2, 3}), win.Put(other, 3*long, src), win.PutStrided(other, 10, 2, []int32{8, 9}, 1, 2)); err != nil {
			return err
		}
		if err := errors.Join(win.Flush(other), window.Accumulate(win, other, 1, []int32{100}, pgsync.Sum), win.Flush(other)); err != nil {
			return err
		}
		old, err := window.FetchAdd(win, other, 0, 41)
		require.Equal(t, int32(1), old)
		if err := errors.Join(err, win.Get(other, long, back)); err != nil {
			return err
		}
		require.Equal(t, src, back)
		few := make([]int32, 13)
		if err := errors.Join(win.Get(other, 0, few), w.Barrier(ctx)); err != nil {
			return err
		}
		require.Equal(t, []int32{42, 102, 3, 0, 0, 0, 0, 0, 0, 0, 8, 0, 9}, few)
		require.Equal(t, few, mine[:13])
		require.Equal(t, int32(3+other), mine[3*long+1])
		require.Positive(t, w.Stats()["loopback"]["lease"].Ops)
		if err := errors.Join(win.Free(ctx), d.Detach(ref), w.Barrier(ctx), refs.Free(ctx)); err != nil {
			return err
		}
		return d.Free(ctx)
	})
}

// TestRefOfAnotherWindow: what is attached to one dynamic window is none of another's, though both count what they have from 1 on.
func TestRefOfAnotherWindow(t *testing.T) {
	each(t, 2, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		var windows [2]*window.Dynamic[int32]
		var refs [2]window.Ref
		for i := range windows {
			d, err := window.NewDynamic[int32](ctx, w.Team())
			if err != nil {
				return err
			}
			if refs[i], err = d.Alloc(3); err != nil {
				return err
			}
			d.Local(refs[i])[0] = int32(i + 1)
			windows[i] = d
		}
		for i, d := range windows {
			other := refs[1-i]
			require.Nil(t, d.Local(other))
			_, err := d.Reach(other)
			require.ErrorIs(t, err, window.ErrRange)
			require.ErrorIs(t, d.Detach(other), window.ErrRange)
			require.Equal(t, []int32{int32(i + 1), 0, 0}, d.Local(refs[i]), "it is there still")
		}
		return errors.Join(windows[0].Detach(refs[0]), windows[1].Detach(refs[1]), windows[0].Free(ctx), windows[1].Free(ctx))
	})
}
