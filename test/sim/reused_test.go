package sim

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/proto"
	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/sync/coll"
	simnic "gopgas/transport/sim"
)

// TestCollectivesFromReusedBuffers is figure 8 of M. J. Rashti and A. Afsahi (Cluster Computing, 2011) in virtual time: broadcasts and
// scatters from the same buffers, a rank on each node, through the slots, past them, and as chosen. Where they are few the root pushes from its buffer to their
// outboxes, else they read from its outbox into theirs: past the slots saves a copy, and never costs anything but the first registration.
func TestCollectivesFromReusedBuffers(t *testing.T) {
	const again = 10
	sizes := []int{512, 2 << 10, 8 << 10}
	models := []simnic.Model{simnic.Graphene(), simnic.Modern()}[:machines]
	for _, model := range models {
		for _, ranks := range []int{4, 16} {
			for _, name := range []string{"broadcast", "scatter"} {
				first := 40
				if ranks == 4 {
					first = 600 // as chosen, nothing is looked at before 4 MiB, nor registered before a quarter of its break-even count
				}
				took := map[string][]time.Duration{} // of one call and its barrier, by way and size
				var past uint64
				for _, way := range []string{"bounce", "bypass", "auto"} {
					pgastest.RunSim(t, pgastest.SimConfig{Ranks: ranks, Model: model, Eager: way}, func(ctx context.Context, w *pgas.World) error {
						for _, n := range sizes {
							d, err := collectives(ctx, w, name, n, first, again)
							if err != nil {
								return err
							}
							if w.Rank() == 0 {
								took[way] = append(took[way], d)
							}
						}
						if way == "bypass" { // in virtual time ranks run one after the other
							past += w.Team().Engine().Stats()[proto.PathBypass].Ops
						}
						return nil
					})
				}
				if t.Failed() {
					return
				}
				relayed := ranks == 16 && name == "broadcast" // from outbox to outbox, which are registered
				require.Equal(t, !relayed, past > 0, "what went past the slots: %d", past)
				for i, n := range sizes {
					bounce, bypass, auto := took["bounce"][i], took["bypass"][i], took["auto"][i]
					gain := func(d time.Duration) float64 { return 100 * (1 - float64(d)/float64(bounce)) }
					t.Logf("%s, %d ranks, %s of %d bytes: %v through slots, past them %.1f %% less, as chosen %.1f %%",
						model.Name, ranks, name, n, bounce, gain(bypass), gain(auto))
					require.LessOrEqual(t, auto, bounce)
					if ranks > 4 { // else root pushes, and past the slots it is not done with the copy, but when its buffer is its own again
						require.LessOrEqual(t, bypass, bounce)
					}
				}
			}
		}
	}
}

// collectives returns the time of one collective of n bytes to each member and a barrier behind it, from and to buffers that have been used before.
func collectives(ctx context.Context, w *pgas.World, name string, n, first, again int) (time.Duration, error) {
	t := w.Team()
	dst, src := make([]byte, n), []byte(nil)
	if w.Rank() == 0 {
		src = make([]byte, n*t.Size())
		for i := range src {
			src[i] = byte(i*7 + 1)
		}
		copy(dst, src)
	}
	var begun time.Duration
	for k := range first + again {
		if k == first {
			begun = t.Engine().Sched.Now()
		}
		var err error
		if name == "broadcast" {
			err = pgsync.Broadcast(ctx, t, dst, 0)
		} else {
			err = coll.Scatter(ctx, t, dst, src, 0)
		}
		if err == nil {
			err = w.Barrier(ctx)
		}
		if err != nil {
			return 0, err
		}
	}
	return (t.Engine().Sched.Now() - begun) / time.Duration(again), nil
}
