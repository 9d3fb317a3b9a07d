package sim

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/transport/sim"
	"gopgas/window"
)

// TestKilledRankHoldsNoMemory: what a rank had registered when it was killed is not pinned any more when its world is garbage; the runtime ends the
// program for such a pin. It is killed in the midst of a transfer, of a registration and of the end of one, among others.
func TestKilledRankHoldsNoMemory(t *testing.T) {
	const bytes = 256 << 10
	for at := time.Millisecond; at < 2*time.Millisecond; at += 20 * time.Microsecond {
		c := pgastest.SimConfig{Ranks: 2, Bulk: "register", Machine: sim.Config{MaxPinned: 8 << 20}}
		c.Faults.Kill = []sim.Fault{{Rank: 1, At: at}}
		r := pgastest.SimErrors(t, c, func(ctx context.Context, w *pgas.World) error {
			win, err := window.Allocate[byte](ctx, w.Team(), bytes)
			for w.Rank() == 1 && err == nil { // until it is killed
				err = errors.Join(win.Put(0, 0, make([]byte, bytes)), win.Flush(0))
			}
			return errors.Join(err, w.Barrier(ctx))
		})
		require.ErrorIs(t, r.Errors[1], pgastest.ErrKilled, "killed at %v", at)
	}
	for range 3 { // pins are looked for behind collections
		runtime.GC()
		time.Sleep(10 * time.Millisecond)
	}
}
