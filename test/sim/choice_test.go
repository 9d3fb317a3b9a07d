package sim

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/selector"
	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	simnic "gopgas/transport/sim"
	"gopgas/window"
)

// TestChoiceIsOfTheMachine: what is chosen for a put and its flush, and for a get, of memory that is new, takes no more than 5 % longer
// than the best that can be forced, on machines that differ by ten years. What fits into a slot goes through one: it is not cut.
func TestChoiceIsOfTheMachine(t *testing.T) {
	ways := []selector.Protocol{selector.None, selector.Bounce, selector.Direct, selector.Pipe, selector.Hybrid}
	for _, model := range []simnic.Model{simnic.Graphene(), simnic.Modern()} {
		pgastest.RunSim(t, pgastest.SimConfig{Ranks: 2, Model: model}, func(ctx context.Context, w *pgas.World) error {
			const most, slot = 4 << 20, 64 << 10
			win, err := window.Allocate[byte](ctx, w.Team(), most)
			if err != nil {
				return err
			}
			e := w.Team().Engine()
			transfer := func(get bool, n int) (time.Duration, error) {
				b, begun := make([]byte, n), e.Sched.Now()
				if get {
					err := win.Get(1, 0, b)
					return e.Sched.Now() - begun, err
				}
				err := errors.Join(win.Put(1, 0, b), win.Flush(1))
				return e.Sched.Now() - begun, err
			}
			for k := 0; w.Rank() == 0 && k < 10; k++ { // what it costs counts from the eighth on
				if _, err := transfer(false, 1<<20); err != nil {
					return err
				}
			}
			for _, get := range []bool{false, true} {
				for n := 4 << 10; w.Rank() == 0 && n <= most; n *= 2 {
					var took [5]time.Duration // by ways
					best := time.Hour
					for i, p := range ways {
						e.Force(p)
						for range 5 { // that a flush follows is learned, at first; the memory is another one each time
							if took[i], err = transfer(get, n); err != nil {
								return err
							}
						}
						if i > 0 && (n > slot || p == selector.Bounce || p == selector.Direct) {
							best = min(best, took[i])
						}
					}
					e.Force(selector.None)
					t.Logf("%s, get %v, %d bytes: %v", model.Name, get, n, took)
					require.LessOrEqual(t, float64(took[0]), 1.05*float64(best), "%s, get %v, %d bytes: %v", model.Name, get, n, took)
				}
			}
			if err := win.Fence(ctx); err != nil {
				return err
			}
			return win.Free(ctx)
		})
	}
}

// TestChoiceFollowsHabits: a program gets into the same buffers over and over, then, by the same line of it, into a new one each time. After a
// few it is believed: the new habit costs no more than that few registrations beyond the best that can be forced for it.
func TestChoiceFollowsHabits(t *testing.T) {
	const bytes, old, uses, fresh, vain = 256 << 10, 50, 20, 60, 4
	for _, model := range []simnic.Model{simnic.Graphene(), simnic.Modern()} {
		pgastest.RunSim(t, pgastest.SimConfig{Ranks: 2, Model: model}, func(ctx context.Context, w *pgas.World) error {
			win, err := window.Allocate[byte](ctx, w.Team(), bytes)
			if err != nil {
				return err
			}
			// All are alive, so that no address comes again, and in a row, which is how the fewest share a place where they are remembered.
			e, bufs, all := w.Team().Engine(), make([][]byte, old+4*fresh), make([]byte, (old+4*fresh)*bytes)
			for i := range bufs {
				bufs[i] = all[i*bytes:][:bytes:bytes]
			}
			registrations := func() uint64 {
				s, _ := w.Registered()
				return s.Registrations
			}
			gets := func(bufs [][]byte, times int) (took time.Duration, registered uint64, err error) {
				begun, before := e.Sched.Now(), registrations()
				for _, b := range bufs {
					for range times {
						err = errors.Join(err, win.Get(1, 0, b))
					}
				}
				return e.Sched.Now() - begun, registrations() - before, err
			}
			best, took, direct, registered := time.Hour, time.Duration(0), time.Duration(0), uint64(0)
			for i := 0; w.Rank() == 0 && i < 5; i++ { // one line: what calls the library is the same, all the way up
				some, times, force := bufs[max(0, i-1)*fresh:][:fresh], 1, selector.None
				switch i {
				case 0:
					some, times = bufs[len(bufs)-old:], uses
				case 2, 3, 4:
					force = [...]selector.Protocol{selector.Bounce, selector.Direct, selector.Pipe}[i-2]
				}
				e.Force(force)
				now, more, err := gets(some, times)
				switch {
				case err != nil:
					return err
				case i == 0:
					require.EqualValues(t, old, more, "what comes back pays on %s", model.Name)
				case i == 1:
					took, registered = now, more
				case force == selector.Direct:
					direct = now
				}
				if i > 1 {
					best = min(best, now)
				}
			}
			if w.Rank() == 0 {
				e.Force(selector.None)
				t.Logf("%s: %d of %d registered in vain, %v; the best that is forced %v", model.Name, registered, fresh, took, best)
				require.LessOrEqual(t, registered, uint64(vain), model.Name)
				require.LessOrEqual(t, took, best+vain*direct/fresh, model.Name)
			}
			if err := win.Fence(ctx); err != nil {
				return err
			}
			return win.Free(ctx)
		})
	}
}
