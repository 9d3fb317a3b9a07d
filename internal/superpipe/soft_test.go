package superpipe

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/shm"
	"gopgas/transport/soft"
)

// openSoft opens soft NICs whose ranks are goroutines.
func openSoft(cfg soft.Config) func(t *testing.T, n int) ([]transport.Domain, func(int)) {
	return func(t *testing.T, n int) ([]transport.Domain, func(int)) {
		group := shm.NewGroup(n, shm.Config{})
		cfg.Mapper = func(c transport.Config) (transport.Mapper, error) { return group[c.Rank], nil }
		p := soft.New(cfg)
		ds := make([]transport.Domain, n)
		for r := range ds {
			d, err := p.Open(t.Context(), transport.Config{Rank: r, Size: n, Job: "test", Secret: []byte("secret"), Sched: sched.Goroutine(n)})
			require.NoError(t, err)
			ds[r] = d
		}
		return ds, func(rank int) { require.NoError(t, ds[rank].Close()) }
	}
}

func TestSoft(t *testing.T) {
	for name, cfg := range map[string]soft.Config{"plain": {}, "small": {MaxPost: 4, MaxMessage: 9000}, "slow": {Latency: 30 * time.Microsecond, Bandwidth: 1 << 29}} {
		for _, policy := range []Policy{Super, PipelinedPins} {
			t.Run(fmt.Sprintf("%s/%v", name, policy), func(t *testing.T) {
				s := setup{open: openSoft(cfg), config: smallSlots()}
				s.config.Policy = policy
				r := newRig(t, 2, s)
				rng := rand.New(rand.NewPCG(1, 2))
				for i, k := range kinds {
					for j, n := range []int{1, 4089, 20_000, 100_003} {
						transfer(t, r.ranks[0], r.ranks[1], k, payload(i+j, n, rng), j%3, fmt.Sprintf("%s of %d bytes", k.name, n))
					}
				}
				r.idle()
			})
		}
	}
}
