package proto

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/peers"
	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// TestForcedWayThatIsNone: what cannot be as it is forced to be is an error at the start, which names the limit and the settings.
func TestForcedWayThatIsNone(t *testing.T) {
	const little = 4 << 20
	for _, c := range []struct {
		bulk   string
		limit  int64
		leases int
		poor   bool
		why    []string // nil: it can be
	}{
		{bulk: "superpipe", limit: little, why: []string{"PGAS_BULK=superpipe", "4.0 MiB", "6.0 MiB", "PGAS_MAX_PINNED"}},
		{bulk: "flat", limit: little, why: []string{"PGAS_BULK=flat"}},
		{bulk: "lease", limit: little, why: []string{"PGAS_BULK=lease", "PGAS_MAX_PINNED"}},
		{bulk: "lease", leases: -1, why: []string{"PGAS_BULK=lease", "PGAS_LEASES=-1"}},
		{bulk: "lease", poor: true, why: []string{"PGAS_BULK=lease", "this NIC"}},
		{bulk: "superpipe", poor: true},
		{bulk: "superpipe", leases: -1},
		{bulk: "register", limit: little},
		{bulk: "auto", limit: little, leases: -1},
	} {
		b, err := ParseBulk(c.bulk)
		require.NoError(t, err)
		require.Equal(t, c.bulk, b.String())
		e := New(Config{
			Size: 1, Sched: sched.Goroutine(1), Peers: peers.New(1), NICName: "loopback", Nodes: []int{0}, Bulk: b, Leases: c.leases,
			OpenNIC: func(ctx context.Context) (transport.Domain, error) {
				f := transporttest.FabricConfig{MaxPinned: c.limit, NoSends: c.poor, NoWriteImm: c.poor}
				return transporttest.NewFabric(1, f).Provider(0).Open(ctx, transport.Config{Size: 1, Job: "test", Sched: sched.Goroutine(1)})
			},
		})
		err = e.openNIC(t.Context())
		if c.why == nil {
			require.NoError(t, err, c.bulk)
			require.NoError(t, e.Close())
			continue
		}
		require.Error(t, err, c.bulk)
		for _, part := range c.why {
			require.ErrorContains(t, err, part)
		}
		require.Nil(t, e.nic())
	}
}

// TestOtherwiseIsCounted: a transfer that does not travel as it is forced to is counted, by why.
func TestOtherwiseIsCounted(t *testing.T) {
	const n = 16 << 20
	var stack [100_000]byte
	putGet := func(e *Engine, to *Remote, user mem.Range) {
		require.NoError(t, errors.Join(e.Put(to, 0, user), e.Flush(to), e.Get(to, 0, user)))
	}
	// Of the owner's buckets so few may be held at once that no pipe's chunks would grow in them.
	few := newTeamWith(t, 2, n, transporttest.FabricConfig{MaxPinned: 10 << 20}, nil, func(c *Config) {
		forcedBulk(t, "superpipe", 1000)(c)
		c.Registration.Bytes = 256 << 10
	})
	require.NotNil(t, few.of[0][1].hosed)
	putGet(few.e[0], &few.of[0][1], filled(1_000_000))
	require.Equal(t, map[Obstacle]uint64{InBuckets: 2}, few.e[0].Otherwise())

	whole := newTeamWith(t, 2, n, transporttest.FabricConfig{}, nil, forcedBulk(t, "superpipe", 1000))
	putGet(whole.e[0], &whole.of[0][1], filled(100_000))
	require.Empty(t, whole.e[0].Otherwise())
	p, ok := whole.e[0].Pipes()
	require.True(t, ok)
	require.EqualValues(t, 200_000, p.Copied)
	require.Zero(t, p.Direct)
	require.Equal(t, mem.Unknown, mem.OriginOf(mem.Of(stack[:])))
	require.NoError(t, whole.e[0].Put(&whole.of[0][1], 0, mem.Of(stack[:])))
	require.Equal(t, map[Obstacle]uint64{OnStack: 1}, whole.e[0].Otherwise())

	// A target without slots of its own grants no lease; the origin's get needs its own, which the budget has no room for.
	leases := newTeamWith(t, 2, 1<<20, transporttest.FabricConfig{}, nil, func(c *Config) {
		if forcedBulk(t, "lease", 1000)(c); c.Rank == 1 {
			c.Bulk, c.Leases = Bulk{}, -1
		} else {
			c.Registration.Bytes = 64 << 10
		}
	})
	putGet(leases.e[0], &leases.of[0][1], filled(100_000))
	require.Equal(t, map[Obstacle]uint64{NoLease: 2}, leases.e[0].Otherwise())
	times, why := leases.e[0].nic().flights.Unready()
	require.EqualValues(t, 1, times)
	require.Error(t, why)
	_, refused, _ := leases.e[0].Registered()
	require.ErrorIs(t, refused, why)
}
