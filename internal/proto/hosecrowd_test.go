package proto

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// gated is a NIC that has no room for long writes while it is shut.
type gated struct {
	transport.Domain
	shut atomic.Bool
}

func (g *gated) Post(ops []transport.Op) (int, error) {
	for i := range ops {
		if ops[i].Kind == transport.OpWrite && ops[i].SGE[0].Mem.Bytes > nic.ScratchBytes && g.shut.Load() {
			return g.Domain.Post(ops[:i])
		}
	}
	return g.Domain.Post(ops)
}

// TestCrowdBesidePipesIntoBuckets: pipes that have all buckets that may be held come to their end, and give them back, though
// others who wait for buckets have all pieces.
func TestCrowdBesidePipesIntoBuckets(t *testing.T) {
	const unit, share = 32 << 10, 48 // of three quarters of what may be registered for this
	var gate *gated
	tm := newTeamWith(t, 2, pipedBytes, transporttest.FabricConfig{MaxPinned: pipedPins},
		func(d transport.Domain) transport.Domain { gate = &gated{Domain: d}; return gate }, func(c *Config) {
			forcedBulk(t, "superpipe", 1000)(c)
			c.Registration.Bytes = 2 << 20
		})
	e, to := tm.e[0], &tm.of[0][1]
	n := e.nic()
	require.NoError(t, e.FixBuckets(unit))
	require.EqualValues(t, share, n.hoses.Budget().Share)
	gate.shut.Store(true)
	var wg sync.WaitGroup
	const putters, others, small, apart = 2, 2 * nic.Pieces, 8 << 20, 8 << 10
	errs := make([]error, putters+others)
	src := filled(share * unit * 3 / 4)
	for i := range putters { // each has claims on two quarters of the share, and waits for the first
		wg.Go(func() {
			h, err := e.PutNB(to, i*4<<20, src)
			errs[i] = errors.Join(err, h.Wait(context.Background()))
		})
	}
	require.Eventually(t, func() bool {
		held := n.flights.Levels().Flights == 2*putters
		for i := range putters {
			held = held && n.hoses.Held(to.hosed, to.raddr+uint64(i*4<<20+share/2*unit-unit), 8)
		}
		return held
	}, 30*time.Second, time.Millisecond)
	for i := range others {
		wg.Go(func() {
			word := [1]uint64{uint64(i)}
			errs[putters+i] = e.Put(to, small+i*apart, mem.Of(word[:]))
		})
	}
	require.Eventually(t, func() bool {
		id, ok := n.TryAcquire(1, false)
		if ok {
			n.Abandon(id)
		}
		return !ok
	}, 30*time.Second, time.Millisecond)
	gate.shut.Store(false)
	n.Domain.Wake()
	over := make(chan struct{})
	go func() { wg.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(20 * time.Second):
		t.Fatal("those who wait for buckets and those who have them wait for each other")
	}
	require.NoError(t, errors.Join(errs...))
	require.NoError(t, e.Flush(to))
	for i := range putters {
		require.Equal(t, src.Data(), tm.mem[1].Slice(i*4<<20, src.Bytes).Data())
	}
	for i := range others {
		require.EqualValues(t, i, tm.mem[1].Word64(small+i*apart).Load())
	}
	tm.freeAll(t)
}
