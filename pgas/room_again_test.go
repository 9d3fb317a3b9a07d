package pgas_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/transport/transporttest"
	"gopgas/window"
)

// TestRoomAgain: that a window left the NIC no room for a large transfer is forgotten when the window is freed: buffers that are used by turns stay registered.
func TestRoomAgain(t *testing.T) {
	const size, bytes, rounds = 8 << 20, 256 << 10, 8
	c := pgastest.Config{NIC: true, Fabric: transporttest.FabricConfig{MaxPinned: 32 << 20}, Reg: "leavepinned", Bulk: "register"}
	pgastest.RunConfig(t, 2, c, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Create(ctx, w.Team(), make([]byte, size))
		if err != nil {
			return err
		}
		large, err := window.Create(ctx, w.Team(), make([]byte, 2*size))
		if err != nil {
			return err
		}
		if err := win.Put(1-w.Rank(), 0, make([]byte, size)); err != nil {
			return err
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		s, _ := w.Registered()
		require.Positive(t, s.Refused, "there is no room beside both windows")
		if err := large.Free(ctx); err != nil {
			return err
		}
		var bufs [38][]byte
		for i := range bufs {
			bufs[i] = make([]byte, bytes)
		}
		before := uint64(0)
		for round := range 2 * rounds {
			if round == rounds {
				s, _ = w.Registered()
				before = s.Registrations
			}
			for _, b := range bufs {
				if err := win.Put(1-w.Rank(), 0, b); err != nil {
					return err
				}
			}
		}
		s, _ = w.Registered()
		require.Equal(t, before, s.Registrations, "registered anew though there is room")
		return win.Free(ctx)
	})
}
