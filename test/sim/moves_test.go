package sim

import (
	"context"
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"gopgas/internal/selector"
	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/window"
)

// TestChoiceBehindMoves: where buckets have to be asked for first, what is chosen by costs takes no longer than the best of what can be
// forced, but for what sizes of a class have in common; in virtual time, where a model's costs are what things cost.
func TestChoiceBehindMoves(t *testing.T) {
	forced := []selector.Protocol{selector.None, selector.Bounce, selector.Direct, selector.Pipe, selector.Hybrid}
	sizes := []int{100_000, 300_000, 1 << 20}
	took := map[selector.Protocol]map[string]time.Duration{}
	var cells []string
	for _, p := range forced {
		took[p] = map[string]time.Duration{}
		c := pgastest.SimConfig{Ranks: 2}
		c.Machine.MaxPinned = 24 << 20
		skew := 0 // buckets begin where addresses say, not where windows do
		pgastest.RunSim(t, c, func(ctx context.Context, w *pgas.World) error {
			win, err := window.Allocate[byte](ctx, w.Team(), 32<<20)
			if err != nil {
				return err
			}
			if w.Rank() == 1 {
				skew = int(uintptr(unsafe.Pointer(&win.Local()[0])) % (1 << 20))
			}
			if err := win.Fence(ctx); err != nil {
				return err
			}
			if w.Rank() == 0 {
				e := w.Team().Engine()
				if err := win.Get(1, 0, make([]byte, 40_000)); err != nil { // connects
					return err
				}
				e.Force(p)
				at := 4<<20 - skew
				for _, n := range sizes {
					for _, op := range []string{"put", "get"} {
						for _, held := range []bool{false, true} { // the second is of the same buckets
							buf, begun := make([]byte, n), e.Sched.Now()
							if op == "get" {
								err = win.Get(1, at, buf)
							} else if err = win.Put(1, at, buf); err == nil {
								err = win.Flush(1)
							}
							if err != nil {
								return err
							}
							name := fmt.Sprintf("%s of %d, held %v", op, n, held)
							took[p][name] = e.Sched.Now() - begun
							if p == selector.None {
								cells = append(cells, name)
							}
						}
						at += 4 << 20
					}
				}
			}
			if err := win.Fence(ctx); err != nil {
				return err
			}
			return win.Free(ctx)
		})
	}
	for _, c := range cells {
		best := took[selector.Bounce][c]
		for _, p := range forced[1:] {
			best = min(best, took[p][c])
		}
		t.Logf("%-28s chosen %v bounce %v direct %v pipe %v hybrid %v", c, took[selector.None][c], took[selector.Bounce][c], took[selector.Direct][c], took[selector.Pipe][c], took[selector.Hybrid][c])
		require.LessOrEqual(t, float64(took[selector.None][c]), 1.3*float64(best), c)
	}
}
